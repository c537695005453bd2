"""One task on a node of a cluster: finds out which of its job's tasks it is and where the others are, supervises it,
and ends as the task has ended.

The cluster's own manager signals and kills this process and what is below it, so nothing here outlives its step.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Mapping

from paddlecloud.runtime import allocation, allowed, cgroups, layer, namespaces, ports, processes, smallfiles
from paddlecloud.runtime.allocation import AllocationError
from paddlecloud.runtime.folder import Ended, TaskFolder, claim
from paddlecloud.runtime.inside import describe
from paddlecloud.runtime.machine import Machine, survey
from paddlecloud.runtime.namespaces import Isolation
from paddlecloud.runtime.noted import Note
from paddlecloud.runtime.order import Order, read_order
from paddlecloud.runtime.run import supervise
from paddlecloud.runtime.taskfile import TaskFile

TASKS = "tasks"  # a file in the handle's folder: the names of its tasks, by number
_NOT_STARTED = 126
_SYSTEM_PATH = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]
_NO_NAMESPACES = "this node has no namespaces"


def main(handle: str, runtime: str, environ: Mapping[str, str]) -> int:
    """Run the task of the handle's folder that the cluster has started here; the exit code for the cluster. `runtime`
    is the folder that this is run from."""
    names = smallfiles.read(f"{handle}/{TASKS}").decode().split("\n")
    own = allocation.job(environ)
    if (first := claim(handle, own)) != own:
        print(f"paddlecloud: job {first} runs {os.path.basename(handle)} already", file=sys.stderr)
        return _NOT_STARTED
    folder = TaskFolder(f"{handle}/{names[allocation.number(environ)]}")
    return run(folder, environ, Note(runtime, time.time()))


def run(folder: TaskFolder, environ: Mapping[str, str], note: Note | None = None) -> int:
    """Run the task of this folder, once; `note` is what is known of this node, where it can be noted."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGCHLD})
    if not folder.untouched:
        return _started_before(folder)
    isolation = allowed.probe_in(folder.path) if note is None else note.isolation(folder.path)
    order = _order(folder, isolation, environ)
    if _lost(folder, order):
        return _NOT_STARTED
    return _wait_for(_fork(order, isolation, note))


def _order(folder: TaskFolder, isolation: Isolation, environ: Mapping[str, str]) -> Order:
    def settled(task: TaskFile) -> TaskFile:
        here = task._replace(search_path=_search_path(folder), interpreter=sys.executable)
        return _as_isolated(allocation.settle(here, environ), folder, isolation)

    try:
        order = read_order(folder.path, _survey if isolation.mount else None, settled)
    except AllocationError as error:
        return Order(folder, None, {}, None, None, str(error))
    parted = isolation.mount and isolation.landlock > 0
    if order.task is not None and not parted and not order.task.unisolated:
        lack = "this node has no Landlock" if isolation.mount else _NO_NAMESPACES
        return order._replace(
            problem=f"{lack}, so the task could reach every user's files: allow user namespaces on it, use Linux 5.19 "
            "or newer, map users to accounts of their own, or let the server's config allow tasks that are not isolated"
        )
    return order


def _survey(task: TaskFile) -> Machine:
    return survey(task.interpreter, task.hidden)


def _as_isolated(task: TaskFile, folder: TaskFolder, isolation: Isolation) -> TaskFile:
    """What the task is told of paths, by what this node can show it."""
    if isolation.mount:
        return task
    task = task._replace(temporary=folder.temporary, mount=task.mount if task.tree is None else task.tree)
    if not task.mounts:
        return task
    shown = sorted((target for target in task.mounts if f"{task.cwd}/".startswith(f"{target}/")), key=len)
    cwd = task.cwd if not shown or task.cwd is None else task.mounts[shown[-1]] + task.cwd[len(shown[-1]) :]
    return task._replace(cwd=cwd, pfs=None, note=f"{_NO_NAMESPACES}, and so no /pfs")


def _search_path(folder: TaskFolder) -> list[str]:
    """PATH of the task, in which `python` is the interpreter that runs this."""
    commands = f"{folder.path}/bin"
    os.makedirs(commands, exist_ok=True)
    for name, text in layer.commands(sys.executable).items():
        smallfiles.write_new(f"{commands}/{name}", text.encode(), 0o755)
    return [commands, os.path.dirname(sys.executable), *_SYSTEM_PATH]


def _started_before(folder: TaskFolder) -> int:
    """The cluster has started it twice: once more after its node failed, say, though it was told not to. A task that
    left no end then has none, and it is for the server to make another attempt."""
    lock = folder.lock()
    if lock is not None:
        if folder.ended is None:
            folder.write_ended(Ended(reason="the cluster started it a second time", ended_at=time.time(), lost=True))
        os.close(lock)
    return _exit_code(folder.ended)


def _lost(folder: TaskFolder, order: Order) -> bool:
    """Whether someone has a port that was meant for the task: its end says so, and another attempt gets others."""
    for port in [] if order.task is None else order.task.ports:
        if why := ports.why_taken(port):
            reason = f"port {port} cannot be had on {os.uname().nodename}: {why}"
            folder.write_ended(Ended(reason=reason, ended_at=time.time(), lost=True))
            return True
    return False


def _fork(order: Order, isolation: Isolation, note: Note | None) -> int:
    """The supervisor, in the namespaces of its task."""
    namespaces.become_subreaper()
    try:
        namespaces.enter(isolation)
    except OSError as error:
        if note is not None:
            note.forget()
        order = order._replace(problem=describe(error))
    supervisor = os.fork()
    if supervisor == 0:
        code = _NOT_STARTED
        try:
            os.setpgid(0, 0)
            namespaces.become_subreaper()
            # Not read from its folder: who has read the end there may have removed it by now.
            ended = supervise(order, isolation, cgroups.find("", [], to_kill=False), time.time)
            code = _exit_code(ended)
        except BaseException:  # nothing may unwind into this process's main in the child
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)
    return supervisor


def _wait_for(supervisor: int) -> int:
    """Wait for its end, which is that of the task; a stop is passed on to it."""
    ended: int | None = None
    while ended is None:
        found = signal.sigwaitinfo({signal.SIGTERM, signal.SIGCHLD})
        if found.si_signo == signal.SIGTERM:
            os.kill(supervisor, signal.SIGTERM)
        for pid, status in processes.reap():
            ended = status if pid == supervisor else ended
    processes.end_all_children()
    return os.WEXITSTATUS(ended) if os.WIFEXITED(ended) else _NOT_STARTED


def _exit_code(ended: Ended | None) -> int:
    if ended is None or ended.lost:
        return _NOT_STARTED
    if ended.signal is not None:
        return 128 + ended.signal
    return _NOT_STARTED if ended.exit_code is None else ended.exit_code
