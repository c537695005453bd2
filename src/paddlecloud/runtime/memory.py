"""Watches the memory of a task where no control group of ours limits it, since an rlimit counts each process alone.

Invariant: a task is above its limit only if the memory that its processes share counts once. Looks take less than half
a percent of a CPU: the dearer one is, the later is the next.
"""

from __future__ import annotations

import time

from paddlecloud.runtime import cgroups, processes, smallfiles

_FIRST_LOOK_SECONDS = 0.2
_LOOK_SECONDS = 1.0
_NEVER_SECONDS = 1e8
_SHARE = 0.002  # of a CPU: the most for quick looks, and the most for exact ones
# Pages of files are left out: the kernel takes them back when it needs memory.
_QUICK = (b"\nRssAnon:", b"\nRssShmem:", b"\nVmSwap:")
_EXACT = (b"\nPss_Anon:", b"\nPss_Shmem:", b"\nSwapPss:")


class MemoryWatch:
    """Looked at now and then; `exceeded` stays true once the processes below this one are above the limit, if any."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._killed_before = cgroups.killed_for_memory_beside()
        self._harmless = 0  # quick sums up to this need no exact look before its time
        self._next_exact = 0.0
        self.next_look = time.monotonic() + (_FIRST_LOOK_SECONDS if limit_bytes > 0 else _NEVER_SECONDS)
        self.exceeded = False

    @property
    def ran_out(self) -> bool:
        """Whether the limit was exceeded, or that of the group which a cluster has put the task into."""
        return self.exceeded or cgroups.killed_for_memory_beside() > self._killed_before

    def look(self) -> bool:
        """Look again; whether the limit is exceeded."""
        began = time.thread_time()
        sizes = quick_sizes(processes.own_identity().pid)
        now, cost = time.monotonic(), time.thread_time() - began
        self.next_look = now + max(_LOOK_SECONDS, cost / _SHARE)
        total = sum(sizes.values())
        if total > self._limit and (total > self._harmless or now >= self._next_exact):
            self.exceeded = self._exactly_above(sizes) or self.exceeded
        return self.exceeded

    def _exactly_above(self, sizes: dict[int, int]) -> bool:
        began = time.thread_time()
        exact = exact_sum(sizes)
        if exact > self._limit:
            # Of processes that end during a look, the rest count what was shared with them once more.
            exact = exact_sum(quick_sizes(processes.own_identity().pid))
        self._harmless = sum(sizes.values()) + self._limit - exact
        cost = time.thread_time() - began
        self._next_exact = max(self._next_exact, time.monotonic()) + cost / _SHARE
        return exact > self._limit


def quick_sizes(root: int) -> dict[int, int]:
    """Bytes of each process below `root`, parents first; what several share is counted for each of them."""
    found: dict[int, int] = {}
    try:
        frontier = processes.children(root, 1)
    except OSError:  # a kernel without lists of children
        return {pid: _sum(_status(pid), _QUICK) or 0 for pid in processes.descendants(root)}
    while frontier:
        pid = frontier.pop(0)
        status = _status(pid)
        if not status or pid in found:
            continue
        found[pid] = _sum(status, _QUICK) or 0
        try:
            frontier += processes.children(pid, int(_value(status, b"\nThreads:") or 1))
        except OSError:
            continue  # it has ended
    return found


def exact_sum(sizes: dict[int, int]) -> int:
    """Bytes of these processes together. What is shared is divided by those who share it, where the kernel tells."""
    total = 0
    for pid, size in sizes.items():
        try:
            rollup = smallfiles.read(f"/proc/{pid}/smaps_rollup")
        except OSError:  # it forbids to be looked at, or has ended, or the kernel is older than 4.14
            total += size if _status(pid) else 0
            continue
        exact = _sum(rollup, _EXACT)
        whole = _sum(rollup, (b"\nPss:", b"\nSwapPss:"))  # before 5.4 all there is, with pages of files
        total += min(size, whole or 0) if exact is None else exact
    return total


def _status(pid: int) -> bytes:
    try:
        return smallfiles.read(f"/proc/{pid}/status")
    except OSError:
        return b""


def _sum(text: bytes, names: tuple[bytes, ...]) -> int | None:
    """Bytes of these lines in kB; None without the first of them."""
    first = _value(text, names[0])
    return None if first is None else 1024 * (first + sum(_value(text, name) or 0 for name in names[1:]))


def _value(text: bytes, name: bytes) -> int | None:
    """The number of a line. A process may choose its own name, but none with the end of a line in it."""
    at = text.find(name)
    return None if at < 0 else int(text[at + len(name) : at + len(name) + 30].split(None, 1)[0])
