"""What crosses the wire between the server and a job's own tasks on machines that do not share its disk."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class Run(Struct, frozen=True, kw_only=True):
    """One run of a task on a node: which of the job's tasks, from 0, and what the cluster calls the run."""

    number: int
    by: str


class Claim(Struct, frozen=True, kw_only=True):
    """The answer to a task that asks what it is: its name, and its task file as it is."""

    task: str
    order: dict[str, Any]
    brings_tree: bool  # there are files to fetch


class TaskEnd(Struct, frozen=True, kw_only=True):
    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""
    ended_at: float | None = None
    tail: str = ""
    lost: bool = False
    told: bool = False  # to stop, whatever it made of that


class TaskNews(Struct, frozen=True, kw_only=True):
    """What became of a task so far. Its end is told last: all that it has left has come by then."""

    started_at: float
    restarts: int = 0
    quiet_since: float | None = None
    building: str = ""  # what its environment is built from, before its program begins
    began: float | None = None  # when its program did, if its environment had to be built first
    end: TaskEnd | None = None


class OutputLength(Struct, frozen=True, kw_only=True):
    """The answer to a piece of a file: where the next one begins; `whole`: it is with the job's results now."""

    length: int
    whole: bool = False
