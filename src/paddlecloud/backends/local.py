"""This machine as a backend: tasks are processes that outlive the server, told and known by files alone.

start   <root>/<handle>/ appears by a rename, complete; then the forking helper makes a supervisor for each task
report  each task's folder says what became of it (localtask.py); all of an earlier boot are lost
stop    <handle>/stop, durably, then SIGTERM to the supervisors; one that comes later finds the file
clean   <root>/<handle>/ and its control groups are removed
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from paddlecloud.backends.base import WHOLE_MACHINE, BusyError, Launch, RefusedError, View
from paddlecloud.backends.forking import Forker
from paddlecloud.backends.hidden import Hidden
from paddlecloud.backends.localtask import LocalTask
from paddlecloud.backends.orders import Here, render
from paddlecloud.backends.spares import Spares
from paddlecloud.backends.taskreports import by_role_and_number
from paddlecloud.model.errors import ConfigError, ConflictError, NotFoundError, UnreachableError
from paddlecloud.model.job import Placement, Resources
from paddlecloud.model.task import Report, TaskState
from paddlecloud.runtime import ports, processes, removal, rootless, taskfile, wake
from paddlecloud.runtime.folder import TaskFolder, stop_file, sync_folder, write_durably
from paddlecloud.runtime.layer import commands

log = logging.getLogger(__name__)

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_WITHOUT = "this machine has no mount namespaces"
_TO_HAVE_THEM = (
    "allow user namespaces on it (kernel.unprivileged_userns_clone=1, user.max_user_namespaces), run the server as root"
)
_ONE_ACCOUNT = "all tasks run as one account and this kernel has no Landlock"
_TO_PART_THEM = "give the server's account a range in /etc/subuid, run the server as root, or use Linux 5.19 or newer"
_TO_LIMIT_MEMORY = "delegate a cgroup with the memory controller to the server: Delegate=yes in its systemd unit"
_NOT_WANTED = "tasks are not kept apart, as isolate = false asks"
_KNOCKS_AT_ONCE = 4096
_KNOCKS_REST_SECONDS = 0.005  # in which those of many tasks gather; between two rounds there is no less


class LocalBackend:
    def __init__(
        self,
        root: Path,
        *,
        capacity: Resources,
        clock: Callable[[], datetime],
        wake: Callable[[], None] = lambda: None,
        grace_seconds: float = 30.0,
        gate_seconds: float = 60.0,
        build_seconds: float = 1800.0,
        python: str | None = None,
        environments: Path | None = None,  # where virtual environments are kept, by user; None: none are made
        uv: str | None = None,  # the program that builds them; None: pip does
        pids_limit: int = 4096,
        hidden: Sequence[Path] = (),  # what tasks must not reach, but for what is their own
        view: Callable[[], View] = lambda: WHOLE_MACHINE,  # what tasks see of the machine, asked at each start
        own_accounts: bool = False,  # each launch names an account of its user's
        namespaces: bool = True,  # False, here and below: do without, also where the machine allows them
        cgroups: bool = True,
        allow_unisolated: Callable[[], bool] = lambda: True,  # asked at each start where tasks cannot be kept apart
    ) -> None:
        self._root = root.absolute()
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for pattern in (".new-*", ".trash-*", ".spare-*", ".probe-*"):
            for unfinished in self._root.glob(pattern):
                _remove(unfinished)
        self._capacity = capacity
        self._namespaces = namespaces
        self._allow_unisolated = allow_unisolated
        self._clock = clock
        self._wake = wake
        self._grace_seconds = grace_seconds
        self._gate_seconds = gate_seconds
        self._build_seconds = build_seconds
        self._pids_limit = pids_limit
        self._hidden = Hidden(hidden)
        self._view = view
        self._own_accounts = own_accounts
        self._interpreter = interpreter_path(python)
        self._environments = environments
        self._uv = uv
        self._search_path = _search_path(self._root, self._interpreter)
        self._account = rootless.own_name()
        self._held: dict[str, Sequence[LocalTask]] = {}
        self._spares = Spares(self._root)
        self._users: dict[str, str] = {}  # whose the handles are that were started here
        group = f"paddlecloud-{hashlib.sha256(os.fsencode(self._root)).hexdigest()[:12]}"
        self._forker = Forker(self._root, group, namespaces=namespaces, cgroups=cgroups)
        self._knocks = _Knocks(self._root, wake)
        log.info("tasks in %s: %s", self._root, self.isolation)
        if not self.isolated:
            log.warning(
                "%s: tasks can reach all users' files and the server's own, and jobs of several users are run only if "
                "the config allows it",
                self._lack[0],
            )
        if not self.limits_memory:
            log.warning(
                "the memory limit holds per process only: a task above its limit as a whole is ended about a second "
                "later; %s",
                _TO_LIMIT_MEMORY if cgroups else "set isolate = true for this cluster",
            )

    @property
    def isolation(self) -> str:
        """How tasks are kept apart and limited on this machine, in words."""
        account = "an account for each user" if self._own_accounts else "one account for all tasks"
        return f"{account}, {self._forker.isolation}"

    @property
    def isolated(self) -> bool:
        """Whether a task can reach neither the files of other users nor the server's own: by a root folder of its own,
        and an account of its own or Landlock, since it may be handed descriptors from outside that folder."""
        return self._forker.mounts and (self._own_accounts or self._forker.landlock > 0)

    @property
    def _lack(self) -> tuple[str, str]:
        """What this machine lacks to keep tasks apart, and what to do about it."""
        if not self._namespaces:
            return _NOT_WANTED, "set it to true"
        return (_ONE_ACCOUNT, _TO_PART_THEM) if self._forker.mounts else (_WITHOUT, _TO_HAVE_THEM)

    @property
    def limits_memory(self) -> bool:
        """Whether the kernel limits the memory of a task as a whole, not of each of its processes alone."""
        return self._forker.limits_memory

    @property
    def helper_pid(self) -> int:
        return self._forker.pid

    def capacity(self) -> Resources:
        return self._capacity

    def start(self, launch: Launch) -> None:
        folder = self._folder(launch.handle)
        if not os.path.isdir(folder):
            self._check_isolation()
            _check_ports(launch.placement)
            self._write(launch, folder)
        if not os.path.exists(stop_file(folder)):
            starting = [task for task in self._tasks(launch.handle) if task.look().state is TaskState.STARTING]
            self._forker.ask([task.folder.path for task in starting])

    def report(self, handles: Collection[str]) -> Mapping[str, Report]:
        reports = {}
        for handle in handles:
            try:
                reports[handle] = Report(tasks=tuple(task.look() for task in self._tasks(handle)))
            except NotFoundError:
                continue
            except OSError as error:
                raise UnreachableError(f"cannot read what became of {handle}: {error}") from None
        return reports

    def stop(self, handle: str) -> None:
        try:
            tasks = self._tasks(handle)
        except NotFoundError:
            return
        mark = stop_file(self._folder(handle))
        if not os.path.exists(mark):
            write_durably(mark, b"")
        for task in tasks:
            task.terminate()
        self._wake()

    def clean(self, handles: Collection[str]) -> None:
        ended = self.report(handles)
        for handle in handles:
            if handle in ended and not ended[handle].ended:
                raise ConflictError(f"{handle} has not ended; stop it, and clean it once nothing of it runs")
        for handle in ended:
            os.rename(self._folder(handle), self._trash(handle))
        if ended:
            sync_folder(str(self._root))
        for handle in handles:
            tasks = self._held.pop(handle, ())
            for task in tasks:
                task.remove_groups()
            user = self._users.pop(handle, "")
            if not user or not self._spares.put(self._trash(handle), user, [task.name for task in tasks]):
                _remove(Path(self._trash(handle)))

    def close(self) -> None:
        self._knocks.close()
        self._forker.close()
        self._hidden.close()

    def _folder(self, handle: str) -> str:
        if not handle or handle.startswith(".") or "/" in handle or "\0" in handle:
            raise RefusedError(f"{handle!r} cannot be the name of a handle", field="handle")
        return f"{self._root}/{handle}"

    def _trash(self, handle: str) -> str:
        return f"{self._root}/.trash-{handle}"

    def _tasks(self, handle: str) -> Sequence[LocalTask]:
        """The tasks of a handle, in the order that they are reported in."""
        if handle not in self._held:
            folder = self._folder(handle)
            try:
                names = [name for name in os.listdir(folder) if os.path.exists(f"{folder}/{name}/task.json")]
            except FileNotFoundError:
                raise NotFoundError(f"{handle} is not here") from None
            self._hold(handle, names)
            for task in self._held[handle]:
                if task.folder.boot != processes.boot_id():
                    task.lose()
        return self._held[handle]

    def _hold(self, handle: str, names: Iterable[str]) -> None:
        folders = [TaskFolder(f"{self._root}/{handle}/{name}") for name in sorted(names, key=by_role_and_number)]
        self._held[handle] = [LocalTask(folder, self._clock) for folder in folders]

    def _check_isolation(self) -> None:
        if self.isolated or self._allow_unisolated():
            return
        why, remedy = self._lack
        raise RefusedError(
            f"{why}, so a task could read every user's files and the server's keys: {remedy}, or let the server's "
            "config allow tasks that are not isolated"
        )

    def _write(self, launch: Launch, folder: str) -> None:
        """All of the launch's task files, in place at once."""
        part, view = f"{self._root}/.new-{launch.handle}", self._view()
        here = Here(
            folder=Path(folder),
            mounts=self._forker.mounts,
            own_accounts=self._forker.mounts,
            account=self._account,
            search_path=self._search_path,
            grace_seconds=self._grace_seconds,
            gate_seconds=self._gate_seconds,
            build_seconds=self._build_seconds,
            interpreter=self._interpreter,
            environments=self._environments,
            uv=self._uv,
            pids_limit=self._pids_limit,
            hidden=self._hidden.now(),
            whole_machine=view.whole_machine,
            visible=view.visible,
            visible_writable=view.visible_writable,
            wake=self._root,
            boot=processes.boot_id(),
        )
        orders = render(launch, here)
        try:
            removal.remove(str(self._root), os.path.basename(part))
            if not self._spares.take(part, launch.user, orders):
                os.mkdir(part, 0o700)
            for name, task_file in orders.items():
                TaskFolder(f"{part}/{name}").create(taskfile.encode(task_file))
            os.rename(part, folder)
        except OSError as error:
            if error.errno in _FULL:
                raise BusyError(f"no space left in {self._root} to start {launch.handle}; free some") from None
            raise UnreachableError(f"cannot write {part}: {error.strerror}") from None
        self._hold(launch.handle, orders)
        self._users[launch.handle] = launch.user


class _Knocks:
    """Calls `wake` when a supervisor knocks. Without it a task's end is still seen, by polling."""

    def __init__(self, root: Path, wake_up: Callable[[], None]) -> None:
        self._pipe = wake.listen(str(root))
        self._wake_up = wake_up
        self._closed = False
        self._thread = threading.Thread(target=self._listen, name="local-knocks", daemon=True)
        self._thread.start()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            wake.knock_at(self._pipe)
            self._thread.join()
            os.close(self._pipe)

    def _listen(self) -> None:
        while os.read(self._pipe, _KNOCKS_AT_ONCE) and not self._closed:
            self._wake_up()
            time.sleep(_KNOCKS_REST_SECONDS)


def _remove(path: Path) -> None:
    """Remove what nothing needs any more; what cannot be removed, such as a file that was made immutable, stays."""
    try:
        removal.remove(str(path.parent), path.name)
    except OSError as error:
        log.warning("%s cannot be removed: %s", path, error)


def _check_ports(placement: Placement) -> None:
    for task in placement.tasks:
        for port in task.ports:
            if why := ports.why_taken(port):
                raise BusyError(f"port {port}, meant for {task.name}, cannot be had: {why}")


def _search_path(root: Path, interpreter: str) -> Sequence[str]:
    """PATH of a task; a script, not a link, stands for `python`, since an interpreter finds its library by its path."""
    folder = root / "bin"
    folder.mkdir(exist_ok=True)
    for name, text in commands(interpreter).items():
        part = folder / f".{name}"
        part.write_text(text)
        part.chmod(0o755)
        part.rename(folder / name)
    system = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]
    return list(dict.fromkeys([str(folder), str(Path(interpreter).parent), *system]))


def interpreter_path(asked: str | None) -> str:
    """The interpreter of tasks; unless another is asked for, the one behind the server's virtual environment."""
    if asked is None:
        return str(getattr(sys, "_base_executable", None) or sys.executable)
    found = shutil.which(os.path.expanduser(asked))
    if found is None:
        raise ConfigError(f"python = {asked!r} is no program on this machine; give the path of an interpreter")
    return os.path.abspath(found)


def find_uv() -> str | None:
    """The program that builds environments quickly, if the server has it beside its own or on its way."""
    beside = Path(sys.executable).with_name("uv")
    return str(beside) if os.access(beside, os.X_OK) else shutil.which("uv")
