"""The memory of several processes: quickly, and exactly."""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from paddlecloud.runtime import processes
from paddlecloud.runtime.memory import MemoryWatch, exact_sum, quick_sizes

FILLED_BYTES = 32 << 20
SLACK_BYTES = 4 << 20
PR_SET_DUMPABLE = 4
PR_SET_NAME = 15


@contextmanager
def children(count: int, prepare: Callable[[], object] = lambda: None) -> Iterator[list[int]]:
    """Forks of this process that have prepared themselves, and wait."""
    reader, writer = os.pipe()
    pids = []
    try:
        for _ in range(count):
            pid = os.fork()
            if pid == 0:
                prepare()
                os.write(writer, b".")
                signal.pause()
                os._exit(0)
            pids.append(pid)
        for _ in pids:
            os.read(reader, 1)
        yield pids
    finally:
        processes.send(pids, signal.SIGKILL)
        for pid in pids:
            os.waitpid(pid, 0)
        os.close(reader)
        os.close(writer)


def prctl(option: int, argument: int | bytes) -> None:
    ctypes.CDLL(None).prctl(option, argument)


def test_shared_memory_counts_for_each_process_quickly_and_once_exactly() -> None:
    with mmap.mmap(-1, FILLED_BYTES) as shared:
        with children(4) as pids:
            before = exact_sum(quick_sizes(os.getpid()))
        shared.write(b"x" * FILLED_BYTES)
        with children(4, lambda: shared[:: mmap.PAGESIZE]) as pids:
            sizes = quick_sizes(os.getpid())
            assert set(pids) <= set(sizes)
            assert min(sizes[pid] for pid in pids) >= FILLED_BYTES
            # A fifth of it is of this process, which is not below itself.
            assert exact_sum(sizes) - before < FILLED_BYTES + SLACK_BYTES


def test_a_process_that_may_not_be_looked_at_counts_with_all_that_it_shares() -> None:
    with children(1, lambda: prctl(PR_SET_DUMPABLE, 0)) as pids:
        sizes = {pid: size for pid, size in quick_sizes(os.getpid()).items() if pid in pids}
        assert exact_sum(sizes) > 0


def test_a_process_cannot_lie_by_its_name() -> None:
    with children(1, lambda: prctl(PR_SET_NAME, b"\nRssAnon: 0 kB")) as pids:
        assert quick_sizes(os.getpid())[pids[0]] > 1 << 20


def test_children_are_those_that_a_look_at_all_processes_finds() -> None:
    with children(3) as pids:
        assert set(pids) <= set(quick_sizes(os.getpid())) <= set(processes.descendants(os.getpid()))


def test_a_limit_stays_exceeded() -> None:
    watch = MemoryWatch(1 << 20)
    with children(2):
        assert watch.look()
    assert watch.look()
