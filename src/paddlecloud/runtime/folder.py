"""A task's folder: every name in it, and the files that say what became of the task.

`pid` and `exit` appear whole and once. Space for them is kept from the start, so that a full disk cannot lose the exit
code of a task. Who holds the lock alone may write them; with either there, the command is never started again.

A folder means something for as long as the machine runs: with a new boot nothing of it runs any more, whatever is left
of its files, so only `exit`, which tells an end that no one may have read yet, is made to outlast a power cut.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time
from contextlib import suppress
from typing import Any, NamedTuple

from paddlecloud.runtime import smallfiles
from paddlecloud.runtime.processes import Identity

_PID_BYTES = 4096
_EXIT_BYTES = 16384
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


class Begun(NamedTuple):
    """The content of `pid`: who watches the task, since when, and the cgroups it is in."""

    identity: Identity
    started_at: float
    groups: tuple[str, ...]


class Ended(NamedTuple):
    """The content of `exit`. `tail` is the end of the log of a task that failed."""

    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""
    started_at: float | None = None
    ended_at: float | None = None
    tail: str = ""
    lost: bool = False
    restarts: int = 0
    told: bool = False  # to stop, whatever it made of that


class SoFar(NamedTuple):
    """The content of `so-far`, which alone changes while the task runs. `building` is there before `pid`."""

    restarts: int = 0  # how often it was started again
    quiet_since: float | None = None  # it does nothing any more
    building: str = ""  # its program has not begun: its environment is built, from this
    began: float | None = None  # when its program did, if its environment had to be built first

    def started_at(self, begun_at: float) -> float | None:
        """When its program began, of a task that is watched since `begun_at`; None: it has not."""
        return None if self.building else self.began or begun_at


class TaskFolder:
    def __init__(self, path: str) -> None:
        self.path = path
        self.task_file = f"{path}/task.json"
        self.own = f"{path}/own"  # all of it that the task may see
        self.work = f"{path}/own/work"
        self.home = f"{path}/own/home"
        # Beside `own`, in which a task may put a link in the place of any name: mounts are made from and at these two.
        self.temporary = f"{path}/tmp"
        self.mount = f"{path}/mount"
        self.script = f"{path}/own/command"  # the command of a task that is run by bash, as a file of its own
        self.inputs = f"{path}/inputs"  # where it sees what comes from elsewhere
        self.upper = f"{path}/upper"
        self.overlay_work = f"{path}/overlay"
        self._pid = f"{path}/pid"
        self._exit = f"{path}/exit"
        self._so_far = f"{path}/so-far"

    @property
    def task(self) -> str:
        return os.path.basename(self.path)

    @property
    def handle(self) -> str:
        return os.path.basename(os.path.dirname(self.path))

    def create(self, task_file: bytes) -> None:
        """The folder and all in it that a supervisor needs; the caller makes it appear by renaming its parent. What is
        left of one that was reset is used."""
        _make(self.path, 0o700)
        for folder in (self.own, self.work, self.home, self.temporary):
            _make(folder, 0o755)
        _make(self.mount, 0o555)
        _write(self.task_file, task_file, durably=False)
        _reserve(self._pid + ".part", _PID_BYTES)
        _reserve(self._exit + ".part", _EXIT_BYTES)

    def reset(self) -> bool:
        """Make the folder of a task that is over one that `create` can use; False: there is more in it than that."""
        found = {
            self.path: {"own", "tmp", "mount", "task.json", "pid", "exit"},
            self.own: {"work", "home"},
            **{folder: set() for folder in (self.work, self.home, self.temporary, self.mount)},
        }
        if self.path.startswith(("/tmp/", "/var/tmp/")):
            _remove_empty_folders(self.temporary)
        if any(set(os.listdir(folder)) != names for folder, names in found.items()):
            return False
        os.rename(self._pid, self._pid + ".part")
        os.rename(self._exit, self._exit + ".part")
        os.truncate(self.task_file, 0)  # its command may hold a secret, and nobody knows when the next one comes
        return True

    @property
    def boot(self) -> str | None:
        """The boot of the machine that the task was to run in, if its task file survived that."""
        plain = _read(self.task_file)
        return None if plain is None else plain.get("boot")

    @property
    def stopped(self) -> bool:
        return os.path.exists(stop_file(os.path.dirname(self.path)))

    @property
    def begun(self) -> Begun | None:
        plain = self._said(self._pid)
        if plain is None:
            return None
        identity = Identity(boot=plain["boot"], pid=plain["pid"], start=plain["start"])
        return Begun(identity=identity, started_at=plain["started_at"], groups=tuple(plain["groups"]))

    @property
    def ended(self) -> Ended | None:
        plain = self._said(self._exit)
        return None if plain is None else Ended(**plain)

    @property
    def so_far(self) -> SoFar:
        plain = self._said(self._so_far)
        return SoFar() if plain is None else SoFar(**plain)

    @property
    def untouched(self) -> bool:
        return not os.path.exists(self._pid) and not os.path.exists(self._exit)

    def lock(self) -> int | None:
        """The lock as an open file, or None while another process has it or where the folder is gone; closing the file
        lets go of it."""
        try:
            fd = os.open(self.task_file, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return None
        return fd

    def write_begun(self, begun: Begun) -> None:
        plain = {**begun.identity._asdict(), "started_at": begun.started_at, "groups": begun.groups}
        _write(self._pid + ".part", self._saying(plain), durably=False)
        os.rename(self._pid + ".part", self._pid)

    def write_so_far(self, so_far: SoFar) -> None:
        write_durably(self._so_far, self._saying(so_far._asdict()))

    def forget_so_far(self) -> None:
        os.unlink(self._so_far)

    def write_ended(self, ended: Ended) -> None:
        text = self._saying(ended._asdict())
        if len(text) > _EXIT_BYTES:
            text = self._saying(ended._replace(tail=ended.tail[-512:])._asdict())
        write_durably(self._exit, text)

    def _saying(self, plain: dict[str, Any]) -> bytes:
        return json.dumps({"handle": self.handle, **plain}).encode()

    def _said(self, path: str) -> dict[str, Any] | None:
        """What is said in a file of this handle: after a power cut, one of the task that had the folder before may be
        back."""
        plain = _read(path)
        return plain if plain is not None and plain.pop("handle", self.handle) == self.handle else None


def leave(folder: TaskFolder, ended: Ended) -> None:
    """Write the exit file; on a full disk keep trying, since without it the outcome would be lost."""
    while True:
        try:
            return folder.write_ended(ended)
        except FileNotFoundError:
            return None  # the folder was removed: no one wants to know
        except OSError as error:
            if error.errno not in _FULL:
                raise
            time.sleep(1.0)


def claim(handle_folder: str, by: str) -> str:
    """Who runs the tasks of a handle: this one, if it is the first to say so. A cluster that was asked twice, since its
    answer to the first was lost, starts all of them twice, and tasks of the one must not meet those of the other."""
    path, own = claim_file(handle_folder), f"{handle_folder}/.claim-{os.urandom(8).hex()}"
    smallfiles.write_new(own, by.encode("utf-8", "replace"), 0o600)
    try:
        os.link(own, path)
    except FileExistsError:
        pass
    finally:
        os.unlink(own)
    return smallfiles.read(path).decode()


def claim_file(handle_folder: str) -> str:
    return f"{handle_folder}/claimed"


def stop_file(handle_folder: str) -> str:
    return f"{handle_folder}/stop"


def write_durably(path: str, content: bytes) -> None:
    """The whole file or none of it, also after a crash of the machine."""
    write_synced(path + ".part", content)
    os.rename(path + ".part", path)
    sync_folder(os.path.dirname(path))


def write_synced(path: str, content: bytes) -> None:
    """The content is on disk; that the file has its name, who syncs its folder makes sure."""
    _write(path, content, durably=True)


def sync_folder(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _make(path: str, mode: int) -> None:
    try:
        os.mkdir(path, mode)
    except FileExistsError:
        _take_back(path, mode)


def _take_back(path: str, mode: int) -> None:
    """Own a folder again that a task had: until then who was handed a descriptor of it may put links into it."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(folder).st_uid != os.geteuid():
            os.fchown(folder, os.geteuid(), os.getegid())
        os.fchmod(folder, mode)
    finally:
        os.close(folder)


def _remove_empty_folders(top: str) -> None:
    """Remove what mounts below /tmp left in the task's own one: the empty folders that they were made at."""
    for folder, names, _ in os.walk(top, topdown=False):
        for name in names:
            with suppress(OSError):
                os.rmdir(os.path.join(folder, name))


def _write(path: str, content: bytes, *, durably: bool) -> None:
    # Written over, not truncated first: the space that was kept for it stays ours on a full disk.
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        smallfiles.write_all(fd, content)
        os.ftruncate(fd, len(content))
        if durably:
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
        plain: dict[str, Any] = json.loads(smallfiles.read(path))
    except (FileNotFoundError, ValueError):
        return None  # what is there but makes no sense was being written when the power went
    return plain
