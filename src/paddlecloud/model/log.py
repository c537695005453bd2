"""What crosses the wire of logs."""

from __future__ import annotations

from msgspec import Struct

from paddlecloud.model.state import JobState


class LogPiece(Struct, frozen=True, kw_only=True):
    """Some text of one task's log. `offset` is the byte after it, where the next piece of the task begins."""

    task: str
    offset: int
    text: str


class LogLength(Struct, frozen=True, kw_only=True):
    """The answer to a piece of a log: how many bytes of it are durable, where the next piece begins."""

    length: int


class LogEnd(Struct, frozen=True, kw_only=True):
    """Closes a stream of logs: the state that the job was in when all of its log had been sent."""

    state: JobState
