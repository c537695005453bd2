"""A task's folder: every name in it, and the files that say what became of the task.

`pid` and `exit` appear whole, durably and once. Space for them is kept from the start, so that a full disk cannot lose
the exit code of a task. Who holds `lock` alone may write them; with either there, the command is never started again.
"""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
from dataclasses import dataclass
from typing import Any

from paddlecloud.runtime.processes import Identity

_PID_BYTES = 4096
_EXIT_BYTES = 16384


@dataclass(frozen=True)
class Begun:
    """The content of `pid`: who watches the task, since when, and the cgroups it is in."""

    identity: Identity
    started_at: float
    groups: tuple[str, ...]


@dataclass(frozen=True)
class Ended:
    """The content of `exit`. `tail` is the end of the log of a task that failed."""

    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""
    started_at: float | None = None
    ended_at: float | None = None
    tail: str = ""
    lost: bool = False


class TaskFolder:
    def __init__(self, path: str) -> None:
        self.path = path
        self.handle = os.path.basename(os.path.dirname(path))
        self.task = os.path.basename(path)
        self.task_file = os.path.join(path, "task.json")
        self.work = os.path.join(path, "work")
        self.upper = os.path.join(path, "upper")
        self.overlay_work = os.path.join(path, "overlay")
        self.home = os.path.join(path, "home")
        self.temporary = os.path.join(path, "tmp")
        self._pid = os.path.join(path, "pid")
        self._exit = os.path.join(path, "exit")
        self._stop = stop_file(os.path.dirname(path))

    def create(self, task_file: bytes) -> None:
        """The folder and all in it that a supervisor needs; the caller makes it appear by renaming its parent."""
        os.mkdir(self.path, 0o700)
        for folder in (self.work, self.upper, self.overlay_work, self.home, self.temporary):
            os.mkdir(folder, 0o755)
        _write_synced(self.task_file, task_file)
        _reserve(self._pid + ".part", _PID_BYTES)
        _reserve(self._exit + ".part", _EXIT_BYTES)
        sync_folder(self.path)

    @property
    def stopped(self) -> bool:
        return os.path.exists(self._stop)

    @property
    def begun(self) -> Begun | None:
        plain = _read(self._pid)
        if plain is None:
            return None
        identity = Identity(boot=plain["boot"], pid=plain["pid"], start=plain["start"])
        return Begun(identity=identity, started_at=plain["started_at"], groups=tuple(plain["groups"]))

    @property
    def ended(self) -> Ended | None:
        plain = _read(self._exit)
        return None if plain is None else Ended(**plain)

    @property
    def untouched(self) -> bool:
        return not os.path.exists(self._pid) and not os.path.exists(self._exit)

    def lock(self) -> int | None:
        """The lock as an open file, or None while another process has it; closing the file lets go of it."""
        fd = os.open(os.path.join(self.path, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return None
        return fd

    def write_begun(self, begun: Begun) -> None:
        plain = {
            **dataclasses.asdict(begun.identity),
            "started_at": begun.started_at,
            "groups": list(begun.groups),
        }
        write_durably(self._pid, json.dumps(plain).encode())

    def write_ended(self, ended: Ended) -> None:
        text = json.dumps(dataclasses.asdict(ended)).encode()
        if len(text) > _EXIT_BYTES:
            text = json.dumps(dataclasses.asdict(dataclasses.replace(ended, tail=ended.tail[-512:]))).encode()
        write_durably(self._exit, text)


def stop_file(handle_folder: str) -> str:
    return os.path.join(handle_folder, "stop")


def write_durably(path: str, content: bytes) -> None:
    """The whole file or none of it, also after a crash of the machine."""
    part = path + ".part"
    _write_synced(part, content)
    os.rename(part, path)
    sync_folder(os.path.dirname(path))


def sync_folder(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _write_synced(path: str, content: bytes) -> None:
    # Written over, not truncated first: the space that was kept for it stays ours on a full disk.
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        written = 0
        while written < len(content):
            written += os.write(fd, content[written:])
        os.ftruncate(fd, len(content))
        os.fsync(fd)
    finally:
        os.close(fd)


def _reserve(path: str, size: int) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(fd, 0, size)
    finally:
        os.close(fd)


def _read(path: str) -> dict[str, Any] | None:
    try:
        with open(path, "rb") as file:
            plain: dict[str, Any] = json.loads(file.read())
    except FileNotFoundError:
        return None
    return plain
