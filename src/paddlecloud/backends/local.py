"""This machine as a backend: tasks are processes that outlive the server, told and known by files alone.

start   <root>/<handle>/ appears by a rename, complete; then the forking helper makes a supervisor for each task
report  exit file: ended · pid file of a living supervisor: running · of a dead one: lost · neither: starting
stop    <handle>/stop, durably, then SIGTERM to the supervisors; one that comes later finds the file
clean   <root>/<handle>/ and its control groups are removed
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import pwd
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from paddlecloud.backends.base import BusyError, Launch, RefusedError
from paddlecloud.backends.forking import Forker
from paddlecloud.backends.leftovers import end_leftovers, remove_tree
from paddlecloud.backends.orders import Here, render
from paddlecloud.model.errors import ConfigError, ConflictError, NotFoundError, UnreachableError
from paddlecloud.model.job import Placement, Resources
from paddlecloud.model.task import Report, TaskReport, TaskState
from paddlecloud.runtime import processes, taskfile, wake
from paddlecloud.runtime.cgroups import remove as remove_groups
from paddlecloud.runtime.folder import Begun, Ended, TaskFolder, stop_file, sync_folder, write_durably

log = logging.getLogger(__name__)

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


class LocalBackend:
    def __init__(
        self,
        root: Path,
        *,
        capacity: Resources,
        clock: Callable[[], datetime],
        wake: Callable[[], None] = lambda: None,
        grace_seconds: float = 30.0,
        python: str | None = None,
        pids_limit: int = 4096,
        hidden: Sequence[Path] = (),  # what tasks must not reach, but for what is their own
        namespaces: bool = True,  # False, here and below: do without, also where the machine allows them
        cgroups: bool = True,
    ) -> None:
        self._root = root.absolute()
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for unfinished in [*self._root.glob(".new-*"), *self._root.glob(".trash-*"), *self._root.glob(".probe-*")]:
            remove_tree(unfinished)
        self._capacity = capacity
        self._clock = clock
        self._wake = wake
        self._grace_seconds = grace_seconds
        self._pids_limit = pids_limit
        self._hidden = [folder.absolute() for folder in hidden]
        self._search_path = _search_path(self._root, _interpreter(python))
        self._account = _account()
        self._tasks: dict[str, tuple[str, ...]] = {}
        self._ended: dict[Path, TaskReport] = {}
        group = f"paddlecloud-{hashlib.sha256(os.fsencode(self._root)).hexdigest()[:12]}"
        self._forker = Forker(self._root, group, namespaces=namespaces, cgroups=cgroups)
        self._knocks = _Knocks(self._root, wake)
        log.info("tasks in %s: %s", self._root, self.isolation)

    @property
    def isolation(self) -> str:
        """How tasks are kept apart and limited on this machine, in words."""
        return self._forker.isolation

    @property
    def helper_pid(self) -> int:
        return self._forker.pid

    def capacity(self) -> Resources:
        return self._capacity

    def start(self, launch: Launch) -> None:
        folder = self._folder(launch.handle)
        if not folder.is_dir():
            _check_ports(launch.placement)
            self._write(launch, folder)
        if Path(stop_file(str(folder))).exists():
            return
        waiting = [folder / name for name in self._names(launch.handle)]
        self._forker.ask([path for path in waiting if TaskFolder(str(path)).untouched])

    def report(self, handles: Collection[str]) -> Mapping[str, Report]:
        reports = {}
        for handle in handles:
            try:
                names = self._names(handle)
                reports[handle] = Report(tasks=tuple(self._look(self._folder(handle) / name) for name in names))
            except NotFoundError:
                continue
            except OSError as error:
                raise UnreachableError(f"cannot read what became of {handle}: {error}") from None
        return reports

    def stop(self, handle: str) -> None:
        try:
            names = self._names(handle)
        except NotFoundError:
            return
        folder = self._folder(handle)
        mark = stop_file(str(folder))
        if not os.path.exists(mark):
            write_durably(mark, b"")
        for name in names:
            if not self._look(folder / name).state.ended:
                _terminate(TaskFolder(str(folder / name)))
        self._wake()

    def clean(self, handle: str) -> None:
        folder, trash = self._folder(handle), self._root / f".trash-{handle}"
        if folder.is_dir():
            report = self.report([handle])[handle]
            if not report.ended:
                raise ConflictError(f"{handle} has not ended; stop it, and clean it once nothing of it runs")
            begun = [TaskFolder(str(folder / task.name)).begun for task in report.tasks]
            for one in begun:
                if one is not None:
                    remove_groups(one.groups)
            remove_tree(trash)
            folder.rename(trash)
            sync_folder(str(self._root))
        remove_tree(trash)
        for name in self._tasks.pop(handle, ()):
            self._ended.pop(folder / name, None)

    def close(self) -> None:
        self._knocks.close()
        self._forker.close()

    def _folder(self, handle: str) -> Path:
        if not handle or handle.startswith(".") or "/" in handle or "\0" in handle:
            raise RefusedError(f"{handle!r} cannot be the name of a handle", field="handle")
        return self._root / handle

    def _names(self, handle: str) -> tuple[str, ...]:
        """The tasks of a handle, in the order that they are reported in."""
        if handle not in self._tasks:
            try:
                found = [path.name for path in self._folder(handle).iterdir() if (path / "task.json").exists()]
            except OSError:
                raise NotFoundError(f"{handle} is not here") from None
            self._tasks[handle] = tuple(sorted(found, key=_by_role_and_number))
        return self._tasks[handle]

    def _write(self, launch: Launch, folder: Path) -> None:
        """All of the launch's task files, in place at once."""
        part = self._root / f".new-{launch.handle}"
        here = Here(
            folder=folder,
            mounts=self._forker.mounts,
            account=self._account,
            search_path=self._search_path,
            grace_seconds=self._grace_seconds,
            pids_limit=self._pids_limit,
            hidden=self._hidden,
            wake=self._root,
        )
        try:
            remove_tree(part)
            part.mkdir(mode=0o700)
            (part / "mount").mkdir(mode=0o555)
            for name, orders in render(launch, here).items():
                TaskFolder(str(part / name)).create(taskfile.encode(orders))
            sync_folder(str(part))
            part.rename(folder)
            sync_folder(str(self._root))
        except OSError as error:
            if error.errno in _FULL:
                raise BusyError(f"no space left in {self._root} to start {launch.handle}; free some") from None
            raise UnreachableError(f"cannot write {part}: {error.strerror}") from None

    def _look(self, path: Path) -> TaskReport:
        """What became of one task; what can be settled only from outside of it is settled here."""
        if path in self._ended:
            return self._ended[path]
        folder = TaskFolder(str(path))
        begun = folder.begun
        ended = folder.ended or self._settle(folder, begun)
        if ended is not None:
            self._ended[path] = _report_end(path.name, ended)
            return self._ended[path]
        if begun is None:
            return TaskReport(name=path.name, state=TaskState.STARTING)
        return TaskReport(name=path.name, state=TaskState.RUNNING, started_at=_time(begun.started_at))

    def _settle(self, folder: TaskFolder, begun: Begun | None) -> Ended | None:
        """The end of a task that has no one to write it: stopped before it started, or its supervisor was killed."""
        if begun.identity.alive if begun else not folder.stopped:
            return None
        lock = folder.lock()
        if lock is None:
            return None  # its supervisor is about to write what we look for
        try:
            if folder.begun != begun or folder.ended is not None:
                return folder.ended
            if begun is None:
                ended = Ended(reason="stopped before it started", ended_at=self._clock().timestamp())
            elif end_leftovers(folder, begun):
                reason = "its supervisor was killed, or this machine was restarted"
                ended = Ended(reason=reason, started_at=begun.started_at, ended_at=self._clock().timestamp(), lost=True)
            else:
                return None
            folder.write_ended(ended)
            return ended
        finally:
            os.close(lock)


class _Knocks:
    """Calls `wake` when a supervisor knocks. Without it a task's end is still seen, by polling."""

    def __init__(self, root: Path, wake_up: Callable[[], None]) -> None:
        self._socket = wake.listen(str(root))
        self._wake_up = wake_up
        self._closed = False
        self._thread = threading.Thread(target=self._listen, name="local-knocks", daemon=True)
        self._thread.start()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._socket.shutdown(socket.SHUT_RDWR)
            self._thread.join()
            self._socket.close()

    def _listen(self) -> None:
        while self._socket.recv(16) and not self._closed:
            self._wake_up()


def _terminate(folder: TaskFolder) -> None:
    begun = folder.begun
    if begun is not None and begun.identity.alive:
        processes.send([begun.identity.pid], signal.SIGTERM)


def _check_ports(placement: Placement) -> None:
    for task in placement.tasks:
        for port in task.ports:
            # PaddlePaddle's store listens on every address, whatever it is told.
            for address in (task.address or "127.0.0.1", "0.0.0.0"):
                _check_port(address, port, task.name)


def _check_port(address: str, port: int, task: str) -> None:
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((address, port))
        except OSError as error:
            raise BusyError(f"port {port} on {address}, meant for {task}, cannot be had: {error.strerror}") from None


def _report_end(name: str, ended: Ended) -> TaskReport:
    finished = TaskState.SUCCEEDED if ended.exit_code == 0 else TaskState.FAILED
    return TaskReport(
        name=name,
        state=TaskState.LOST if ended.lost else finished,
        exit_code=ended.exit_code,
        signal=ended.signal,
        reason=ended.reason,
        started_at=_time(ended.started_at),
        ended_at=_time(ended.ended_at),
        tail=ended.tail,
    )


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _by_role_and_number(name: str) -> tuple[str, int]:
    role, _, number = name.rpartition("-")
    return role, int(number) if number.isdigit() else 0


def _search_path(root: Path, interpreter: str) -> Sequence[str]:
    """PATH of a task; a script, not a link, stands for `python`, since an interpreter finds its library by its path."""
    folder = root / "bin"
    folder.mkdir(exist_ok=True)
    quoted = "'" + interpreter.replace("'", "'\\''") + "'"
    for name in ("python", "python3"):
        part = folder / f".{name}"
        part.write_text(f'#!/bin/sh\nexec {quoted} "$@"\n')
        part.chmod(0o755)
        part.rename(folder / name)
    system = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]
    return list(dict.fromkeys([str(folder), str(Path(interpreter).parent), *system]))


def _interpreter(asked: str | None) -> str:
    """The interpreter of tasks; unless another is asked for, the one behind the server's virtual environment."""
    if asked is None:
        return str(getattr(sys, "_base_executable", None) or sys.executable)
    found = shutil.which(os.path.expanduser(asked))
    if found is None:
        raise ConfigError(f"python = {asked!r} is no program on this machine; give the path of an interpreter")
    return os.path.abspath(found)


def _account() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
