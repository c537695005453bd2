"""Without control groups, a task whose processes together use more memory than its limit is ended, and no other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlecloud.backends.base import Launch
from paddlecloud.model.task import TaskState
from tests.contract.local import PYTHON_FORKED_AWAY, Room, living, log
from tests.launches import ended, wait_for
from tests.waiting import wait_until

LIMIT_BYTES = 200 << 20
OUT_OF_MEMORY = "out of memory: used more than its limit of 200.0 MiB"
LOOKS = 3

FORKED = """
import os, time
for _ in range({processes}):
    if os.fork() == 0:
        filled = b"x" * ({mebibytes} << 20)
        print("filled", flush=True)
        time.sleep(1000)
"""
FORKED_BY_A_THREAD = f"""
import threading
def fork():
    exec(\"\"\"{FORKED}\"\"\")
    time.sleep(1000)
threading.Thread(target=fork, daemon=True).start()
"""
# As workers of PyTorch's DataLoader do.
SHARING = """
import os, time
filled = bytearray(b"x") * (90 << 20)
for _ in range(4):
    if os.fork() == 0:
        {worker}
        print("filled", flush=True)
        time.sleep(1000)
"""
COPYING = 'filled[::4096] = b"y" * (len(filled) // 4096)'
# RLIMIT_DATA does not count a shared mapping.
MAPPED = """
import mmap
shared = mmap.mmap(-1, 300 << 20)
for _ in range(300):
    shared.write(b"x" * (1 << 20))
"""
UNTIL_TOLD = """
import os, time
while not os.path.exists(os.environ["OUTPUT_PATH"] + "/end"):
    time.sleep(0.05)
os._exit(0)
"""


@pytest.fixture(params=[True, False], ids=["isolated", "bare"])
def room(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Room]:
    with Room(tmp_path, isolated=request.param, cgroups=False) as room:
        yield room


def task(room: Room, program: str, *, then: str) -> Launch:
    (room.folder / "program.py").write_text(program + UNTIL_TOLD)
    return room.launch(f"python {room.folder}/program.py; {then}", memory_bytes=LIMIT_BYTES, restarts=3)


def switches(pid: int) -> int:
    """How often a process has waited: a supervisor does so after each look."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches:"))


@pytest.mark.parametrize(
    "program",
    [
        FORKED.format(processes=5, mebibytes=60),
        PYTHON_FORKED_AWAY + FORKED.format(processes=5, mebibytes=60),
        FORKED_BY_A_THREAD.format(processes=5, mebibytes=60),
        SHARING.format(worker=COPYING),
        MAPPED,
    ],
    ids=["forked", "forked away", "forked by a thread", "copied", "mapped"],
)
def test_processes_together_above_the_limit_are_ended(room: Room, program: str) -> None:
    launch = task(room, program, then="sleep 1000")
    report = room.run(launch)
    assert report.outcome == OUT_OF_MEMORY
    assert (report.state, report.signal, report.restarts) == (TaskState.FAILED, 9, 0)
    assert living(launch.handle) == []


@pytest.mark.parametrize(
    ("program", "processes"),
    [(FORKED.format(processes=3, mebibytes=52), 3), (SHARING.format(worker="pass"), 4)],
    ids=["just below", "shared"],
)
def test_processes_together_below_the_limit_live(room: Room, program: str, processes: int) -> None:
    launch = task(room, program, then="exit $?")
    room.backend.start(launch)
    wait_until(lambda: log(launch).count("filled") == processes, "its processes have filled their memory")
    supervisor = room.supervisor(launch)
    before = switches(supervisor)
    wait_until(lambda: switches(supervisor) >= before + LOOKS, "its supervisor has looked at it")
    (launch.results / "rank-0" / "end").touch()
    assert wait_for(room.backend, launch.handle, ended).tasks[0].state is TaskState.SUCCEEDED
