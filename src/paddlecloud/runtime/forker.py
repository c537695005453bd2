"""The forking helper: a small process with one thread that makes a supervisor for each task by two forks.

A fork of it costs a millisecond where a fresh interpreter costs fifty, and, unlike the server's, is safe, since no
thread can hold a lock meanwhile. Supervisors are no one's children; the helper ends with the server, they go on.
"""

from __future__ import annotations

import gc
import json
import os
import select
import time
from typing import NamedTuple, NoReturn

from paddlecloud.runtime import allowed, cgroups, namespaces, processes
from paddlecloud.runtime.cgroups import Groups
from paddlecloud.runtime.etc import EtcFolders
from paddlecloud.runtime.folder import sync_folder
from paddlecloud.runtime.inside import describe
from paddlecloud.runtime.machine import Machine, survey
from paddlecloud.runtime.namespaces import Isolation
from paddlecloud.runtime.order import Order, read_order
from paddlecloud.runtime.root import etc_files
from paddlecloud.runtime.run import supervise
from paddlecloud.runtime.taskfile import TaskFile

REQUEST_BYTES = 8192
_AT_ONCE = 64
_LOOK_AGAIN_SECONDS = 1.0


def main(channel: int, root: str, group: str, with_namespaces: str, with_cgroups: str) -> None:
    """Serve requests from a socket that keeps packets apart, until the server is gone: each is the path of a task's
    folder, and many are answered at once, by {"requests": how many, "error": what kept us from some of them, or ""}.

    `root` holds the folders of all handles. `group` names the folder of our control groups; an empty `with_…` leaves
    that kind of isolation out.
    """
    isolation = allowed.probe_in(root) if with_namespaces else Isolation()
    # The end of a PID namespace kills all in it.
    groups = cgroups.find(group, cgroups.hierarchies_of() if with_cgroups else [], to_kill=not isolation.pid)
    forks = _Forks(channel, isolation, groups, os.getpid(), allowed.can_leave(isolation))
    processes.boot_id()  # known from here on, in every fork
    gc.collect()
    gc.freeze()  # a collection in a child would copy every page of ours
    hello = {"mount": isolation.mount, "landlock": isolation.landlock, "memory": "memory" in groups.limiting}
    _answer(channel, {**hello, "isolation": f"{isolation}; {groups}"})
    looks = _Looks(EtcFolders(root))
    while folders := _requests(channel):
        orders = [read_order(folder, looks.at if isolation.mount else None) for folder in folders]
        # What is started must leave a trace: a task that takes the machine down with it is an attempt that was made.
        sync_folder(root)
        _answer(channel, {"requests": len(folders), "error": forks.make(orders)})
    groups.remove()


def _requests(channel: int) -> list[str]:
    """The next request, and those that came with it; none: the server is gone."""
    waiting = select.poll()
    waiting.register(channel, select.POLLIN)
    folders: list[str] = []
    while not folders or (len(folders) < _AT_ONCE and waiting.poll(0)):
        try:
            request = os.read(channel, REQUEST_BYTES)
        except ConnectionResetError:
            continue  # the server is gone with an answer unread; what it had asked for is still to be read
        if not request:
            break
        folders.append(os.fsdecode(request))
    return folders


class _Looks:
    """Looks at this machine once for all tasks that start within a moment."""

    def __init__(self, etc: EtcFolders) -> None:
        self._etc = etc
        self._found: dict[tuple[str, ...], tuple[float, Machine]] = {}

    def at(self, task: TaskFile) -> Machine:
        wanted = (task.interpreter, *task.hidden)
        at, found = self._found.get(wanted, (0.0, None))
        now = time.monotonic()
        if found is None or now - at > _LOOK_AGAIN_SECONDS:
            found = survey(task.interpreter, task.hidden)
            self._found = {wanted: (now, found)}
        if task.whole_machine:
            return found
        return found._replace(etc=self._etc.folder(etc_files(task, found), found.etc_folders))


class _Forks(NamedTuple):
    """What is known in every fork of the helper."""

    channel: int
    isolation: Isolation
    groups: Groups
    helper: int
    several: bool  # one process may make several PID namespaces, one after the other

    def make(self, orders: list[Order]) -> str:
        """Make a supervisor for each task; what kept us from some of them, or ""."""
        each = len(orders) if self.several else 1
        between: list[int] = []
        error = ""
        for start in range(0, len(orders), each):
            try:
                child = os.fork()
            except OSError as refused:
                error = f"cannot start a process: {refused.strerror}"
                break
            if child == 0:
                self._go_between(orders[start : start + each])
            between.append(child)
        failed = [child for child in between if os.waitpid(child, 0)[1] != 0]
        return "cannot start a process: too many are running" if failed else error

    def _go_between(self, orders: list[Order]) -> NoReturn:
        """Fork each supervisor into the namespaces of its task; without a PID namespace, into the care of a guard."""
        code = 1
        try:
            os.close(self.channel)
            for order in orders:
                if not self.isolation.pid:
                    if os.fork() == 0:
                        self._guard(order)
                    continue
                entered = self._enter(order)
                if os.fork() == 0:
                    self._supervise(entered)
                if self.several:
                    namespaces.leave()
            code = 0
        except OSError:
            pass
        finally:
            os._exit(code)

    def _guard(self, order: Order) -> NoReturn:
        """Stay until the supervisor has ended, and end what it leaves if it was killed."""
        try:
            entered = self._enter(order)
            namespaces.become_subreaper()
            supervisor = os.fork()
            if supervisor == 0:
                namespaces.become_subreaper()
                self._supervise(entered)
            os.waitpid(supervisor, 0)
            processes.end_all_children()
        finally:
            os._exit(0)

    def _enter(self, order: Order) -> Order:
        """Enter new namespaces for a task; the task, with what kept us from it."""
        try:
            namespaces.enter(self.isolation)
        except OSError as error:
            return order._replace(problem=describe(error))
        return order

    def _supervise(self, order: Order) -> NoReturn:
        code = 1
        try:
            # Not a session of its own: the kernel shares the CPU between sessions, and the server's is but one of them.
            os.setpgid(0, 0)
            supervise(order, self.isolation, self.groups, time.time)
            if not os.path.exists(f"/proc/{self.helper}"):
                self.groups.remove()  # the helper could not, while this task was running
            code = 0
        except BaseException:  # nothing may unwind into the helper's loop in this process
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)


def _answer(channel: int, words: dict[str, object]) -> None:
    try:
        os.write(channel, json.dumps(words).encode())
    except OSError:
        return  # the server is gone, as the next read will tell
