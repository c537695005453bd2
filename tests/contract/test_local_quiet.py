"""A task that writes no log and uses no CPU for its time is reported as quiet, and no more once it does something."""

from __future__ import annotations

import pytest

from paddlecloud.backends.base import Launch
from paddlecloud.model.task import Report
from tests.contract.local import Room, log
from tests.launches import started, wait_for
from tests.waiting import wait_until

# One waits for the other and the other for it.
DEADLOCK = """
import os, threading
first, second = threading.Lock(), threading.Lock()
first.acquire(), second.acquire()
threading.Thread(target=first.acquire, daemon=True).start()
second.acquire()
"""


def quiet(report: Report) -> bool:
    return all(task.quiet_since is not None for task in report.tasks)


def busy(report: Report) -> bool:
    return all(task.quiet_since is None for task in report.tasks)


def watched(room: Room, *commands: str) -> Launch:
    launch = room.launch(*commands, quiet_seconds=0.6)
    room.backend.start(launch)
    wait_for(room.backend, launch.handle, started)
    return launch


def test_a_deadlocked_pair_is_quiet_since_it_stopped(room: Room) -> None:
    launch = watched(room, *[f"exec python -c '{DEADLOCK}'"] * 2)
    tasks = wait_for(room.backend, launch.handle, quiet).tasks
    for task in tasks:
        assert task.quiet_since is not None
        assert task.started_at is not None
        assert task.quiet_since >= task.started_at
    room.reopen()
    assert room.backend.report([launch.handle])[launch.handle].tasks == tasks


@pytest.mark.parametrize("doing", ["while :; do :; done", "while :; do echo .; sleep 0.1; done"])
def test_what_computes_or_writes_is_not_quiet(room: Room, doing: str) -> None:
    launch = watched(room, f"[ -e go ] || sleep 2; {doing}")
    wait_for(room.backend, launch.handle, quiet)
    wait_for(room.backend, launch.handle, busy)


def test_the_server_is_woken_when_a_task_falls_silent(room: Room) -> None:
    launch = watched(room, "sleep 1000")
    while busy(room.backend.report([launch.handle])[launch.handle]):
        room.woken.clear()
        if busy(room.backend.report([launch.handle])[launch.handle]):
            assert room.woken.wait(20)


def test_nobody_is_looked_at_who_did_not_ask_for_it(room: Room) -> None:
    launch = room.launch("sleep 1; echo over; sleep 1000")
    room.backend.start(launch)
    wait_until(lambda: "over" in log(launch), "a while has passed")
    assert busy(room.backend.report([launch.handle])[launch.handle])
