"""What crosses the wire of logs."""

from __future__ import annotations

from dataclasses import dataclass

from paddlecloud.model.state import JobState


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPiece:
    """Some text of one task's log. `offset` is the byte after it, where the next piece of the task begins."""

    task: str
    offset: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLength:
    """The answer to a piece of a log: how many bytes of it are durable, where the next piece begins."""

    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEnd:
    """Closes a stream of logs: the state that the job was in when all of its log had been sent."""

    state: JobState
