"""Who is who among processes: a process is its boot, its pid and its start time, and a zombie is dead.

A bare pid may be given to a stranger after a reboot or a long run; signalling one without this check could kill it.
"""

from __future__ import annotations

import functools
import os
import signal
import time
from contextlib import suppress
from typing import Iterable, Iterator, NamedTuple

from paddlecloud.runtime import smallfiles

_FREEZING_SECONDS = 0.5


class Identity(NamedTuple):
    boot: str
    pid: int
    start: int  # clock ticks from the boot to its start

    @property
    def alive(self) -> bool:
        if self.boot != boot_id():
            return False
        found = _stat(str(self.pid))
        return found is not None and found.start == self.start and found.state not in "ZX"


def own_identity() -> Identity:
    found = _stat("self")
    if found is None:
        raise OSError("cannot read /proc/self/stat; is /proc mounted?")
    # As /proc has it: in a PID namespace of its own, a process has another pid for itself.
    return Identity(boot=boot_id(), pid=found.pid, start=found.start)


@functools.lru_cache(maxsize=None)
def boot_id() -> str:
    """Names the time from the machine's last start to its end, and so the life of every process on it."""
    return smallfiles.read("/proc/sys/kernel/random/boot_id").decode().strip()


def descendants(*roots: int) -> list[int]:
    """Every living process below these, as /proc shows it now."""
    children: dict[int, list[int]] = {}
    for pid in pids():
        found = _stat(str(pid))
        if found is not None and found.state not in "ZX":
            children.setdefault(found.parent, []).append(pid)
    below: list[int] = []
    frontier = list(roots)
    while frontier:
        found_children = children.get(frontier.pop(), [])
        below += found_children
        frontier += found_children
    return below


def children(pid: int, threads: int | None = None) -> list[int]:
    """The children of a process, of which each thread has a list of its own; some may be missing while others end.
    `threads`: how many there are, if that is known. OSError: it has ended, or the kernel keeps no such lists."""
    if threads == 1:
        return [int(child) for child in smallfiles.read(f"/proc/{pid}/task/{pid}/children").split()]
    found: list[int] = []
    for thread in os.listdir(f"/proc/{pid}/task"):
        with suppress(OSError):  # the thread has ended
            found += map(int, smallfiles.read(f"/proc/{pid}/task/{thread}/children").split())
    return found


def walk_below(*roots: int) -> Iterator[int]:
    """The living processes below these, one after another, without a look at any other process.

    A process that ends during the walk can hide its siblings, so whoever misses one should walk again.
    """
    if not _lists_children():
        yield from descendants(*roots)
        return
    frontier = list(roots)
    while frontier:
        found: list[int] = []
        with suppress(OSError):  # it has ended
            found = children(frontier.pop())
        yield from found
        frontier += found


def ancestors(pid: int) -> list[int] | None:
    """The parent of a process, its parent, and so on; None: one of them ended meanwhile."""
    found: list[int] = []
    while pid > 0:
        here = _stat(str(pid))
        if here is None:
            return None
        pid = here.parent
        found.append(pid)
    return found


def ticks_below(root: int) -> int:
    """Clock ticks of CPU that the processes below `root` have used, with those that they have waited for."""
    return sum(found.ticks for pid in descendants(root) if (found := _stat(str(pid))) is not None)


def marked(marks: Iterable[str]) -> list[int]:
    """Every living process whose environment has all of these NAME=value marks (and that we may look at)."""
    wanted = {os.fsencode(mark) for mark in marks}
    found = []
    for pid in pids():
        try:
            if wanted <= set(smallfiles.read(f"/proc/{pid}/environ").split(b"\0")):
                found.append(pid)
        except OSError:
            continue
    return found


def send(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def send_below(number: int) -> None:
    """Send a signal to every process below this one."""
    if os.getpid() != 1:
        below = _freeze(os.getpid())
        send(below, number)
        send(below, signal.SIGCONT)
        return
    try:
        os.kill(-1, number)  # all others of our PID namespace, at once
    except ProcessLookupError:
        return


def _freeze(root: int) -> set[int]:
    """Stop every process below `root`, so that none makes another that no one has seen; what was stopped."""
    deadline = time.monotonic() + _FREEZING_SECONDS
    frozen: set[int] = set()
    while True:
        still = all(_is_still(pid) for pid in frozen)  # asked before we look: what they had begun to make is there
        new = set(descendants(root)) - frozen
        if (still and not new) or time.monotonic() > deadline:
            return frozen | new
        send(new, signal.SIGSTOP)
        frozen |= new
        if not new:
            time.sleep(0.001)


def _is_still(pid: int) -> bool:
    found = _stat(str(pid))
    return found is None or found.state in "TtZX"


def reap() -> list[tuple[int, int]]:
    """(pid, wait status) of every child that has ended by now."""
    ended: list[tuple[int, int]] = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended.append((pid, status))


def has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def end_all_children() -> None:
    """Kill and reap everything below this process, whose orphans become its own, until nothing is left.

    A killed parent's children become ours, so each pass sees what the one before it missed.
    """
    while has_children():
        send_below(signal.SIGKILL)
        signal.sigtimedwait([signal.SIGCHLD], 0.02)
        reap()


class _Stat(NamedTuple):
    pid: int
    state: str
    parent: int
    ticks: int
    start: int


def _stat(pid: str) -> _Stat | None:
    try:
        text = smallfiles.read(f"/proc/{pid}/stat")
    except OSError:
        return None
    # The command's name is in parentheses and may itself contain spaces and parentheses.
    fields = text[text.rindex(b")") + 2 :].split()
    ticks = sum(map(int, fields[11:15]))
    return _Stat(int(text[: text.index(b" ")]), fields[0].decode(), int(fields[1]), ticks, int(fields[19]))


@functools.lru_cache(maxsize=None)
def _lists_children() -> bool:
    """Whether the kernel was built with CONFIG_PROC_CHILDREN."""
    return os.path.exists("/proc/thread-self/children")


def pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]
