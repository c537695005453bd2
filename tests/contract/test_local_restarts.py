"""A failed task is started again by its own supervisor while the others go on, as often as its role allows."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from paddlecloud.backends.base import Launch
from paddlecloud.model.task import TaskState
from tests.contract.local import PYTHON_FORKED_AWAY, Room, living, log
from tests.launches import ended, started, wait_for
from tests.waiting import wait_until

FOREVER = "sleep 1000"
COUNT = "echo x >> count; runs=$(wc -l < count)"
DEAF = 'trap "" TERM; echo ready; while :; do sleep 0.05; done'


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "count").touch()
    return folder


def test_a_restart_goes_on_in_the_same_folder_place_and_log(room: Room, tree: Path) -> None:
    launch = room.launch(
        f"{COUNT}; echo $POD_IP $PADDLE_PORT; exit $((3 - runs))",
        tree=tree,
        restarts=3,
        address="127.0.0.9",
        ports=[21017],
    )
    task = room.run(launch)
    assert (task.state, task.exit_code, task.restarts, task.tail) == (TaskState.SUCCEEDED, 0, 2, "")
    here = "127.0.0.9 21017"
    assert log(launch).splitlines() == [
        here,
        "--- restart 1 of 3: exit code 2 ---",
        here,
        "--- restart 2 of 3: exit code 1 ---",
        here,
    ]
    assert (tree / "count").read_text() == ""


def test_a_task_that_fails_more_often_than_it_may_has_failed_and_says_so(room: Room) -> None:
    launch = room.launch("echo run; kill -9 $$", restarts=1)
    task = room.run(launch)
    assert (task.state, task.signal, task.restarts) == (TaskState.FAILED, signal.SIGKILL, 1)
    assert task.outcome == "killed by SIGKILL, after 1 of 1 restarts"
    assert task.tail == f"run\npaddlecloud: {task.outcome}"
    assert log(launch) == f"run\n--- restart 1 of 1: killed by SIGKILL ---\n{task.tail}\n"


def test_a_restart_is_counted_while_the_task_runs_and_the_others_go_on(room: Room) -> None:
    launch = room.launch(f"{COUNT}; [ $runs = 1 ] && exit 1; {FOREVER}", f"echo once; {FOREVER}", restarts=3)
    room.backend.start(launch)
    wait_for(room.backend, launch.handle, started)
    first = wait_for(room.backend, launch.handle, lambda report: report.tasks[0].restarts == 1)
    assert [task.state for task in first.tasks] == [TaskState.RUNNING, TaskState.RUNNING]
    assert first.tasks[1].restarts == 0
    room.reopen()
    assert room.backend.report([launch.handle])[launch.handle] == first
    wait_until(lambda: "once" in log(launch, "trainer-1"), "the other has started")
    assert log(launch, "trainer-1") == "once\n"


def test_the_server_is_woken_by_a_restart(room: Room) -> None:
    launch = room.launch(f"{COUNT}; sleep 0.3; [ $runs = 1 ] && exit 1; {FOREVER}", restarts=1)
    room.backend.start(launch)
    while room.backend.report([launch.handle])[launch.handle].tasks[0].restarts == 0:
        room.woken.clear()
        if room.backend.report([launch.handle])[launch.handle].tasks[0].restarts == 0:
            assert room.woken.wait(10)


def test_nothing_of_the_failed_run_is_left_in_the_next(room: Room) -> None:
    away = f'python -c \'{PYTHON_FORKED_AWAY} import time; open("away", "w"); time.sleep(1000)\''
    first = f"{away}; until [ -e away ]; do sleep 0.01; done; exit 1"
    launch = room.launch(f"{COUNT}; if [ $runs = 1 ]; then {first}; fi; echo again; {FOREVER}", restarts=1)
    room.backend.start(launch)
    wait_until(lambda: "again" in log(launch), "the task runs again")
    programs = [Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0] for pid in living(launch.handle)]
    assert set(programs) <= {b"sh", b"sleep"}


def stop(room: Room, launch: Launch) -> None:
    room.backend.stop(launch.handle)


def terminate(room: Room, launch: Launch) -> None:
    """As an operator or systemd would, who leave no stop file."""
    os.kill(room.supervisor(launch), signal.SIGTERM)


@pytest.mark.parametrize("end", [stop, terminate])
def test_a_stopped_task_is_not_started_again(room: Room, end: Callable[[Room, Launch], None]) -> None:
    launch = room.launch(f"{COUNT}; echo run; [ $runs = 1 ] && exit 1; {FOREVER}", restarts=5)
    room.backend.start(launch)
    wait_for(room.backend, launch.handle, lambda report: report.tasks[0].restarts == 1)
    wait_until(lambda: log(launch).count("run\n") == 2, "it runs again")
    end(room, launch)
    [task] = wait_for(room.backend, launch.handle, ended).tasks
    assert (task.state, task.restarts, task.outcome) == (TaskState.FAILED, 1, "killed by SIGTERM")


@pytest.mark.parametrize("end", [stop, terminate])
def test_a_stop_is_heard_between_two_starts(room: Room, end: Callable[[Room, Launch], None]) -> None:
    launch = room.launch("echo run; exit 7", restarts=5)
    room.backend.start(launch)
    wait_until(lambda: log(launch).count("run\n") == 3, "the second restart")
    wait_until(lambda: living(launch.handle) == [], "it has failed again")
    end(room, launch)
    [task] = wait_for(room.backend, launch.handle, ended).tasks
    assert (task.state, task.restarts, task.outcome) == (TaskState.FAILED, 2, "exit code 7")


def test_the_grace_time_holds_after_a_restart(tmp_path: Path) -> None:
    with Room(tmp_path, grace_seconds=0.3) as room:
        launch = room.launch(f"{COUNT}; [ $runs = 1 ] && exit 1; {DEAF}", restarts=5)
        room.backend.start(launch)
        wait_until(lambda: "ready" in log(launch), "the task is deaf")
        room.backend.stop(launch.handle)
        [task] = wait_for(room.backend, launch.handle, ended).tasks
        assert task.outcome == "killed: did not end within 0.3 s of being asked to"


def test_a_task_that_cannot_start_is_not_tried_again(room: Room, tmp_path: Path) -> None:
    task = room.run(room.launch("true", tree=tmp_path / "gone", restarts=3))
    assert task.reason.startswith("could not start: ")
    assert task.restarts == 0


def test_a_task_that_ran_out_of_memory_is_not_started_again(room: Room) -> None:
    launch = room.launch("python -c 'x = bytearray(500 << 20)'; exit $?", memory_bytes=64 << 20, restarts=3)
    task = room.run(launch)
    assert task.outcome.startswith("out of memory: ")
    assert task.restarts == 0


def test_with_its_supervisor_killed_a_restarted_task_is_lost_with_its_count(room: Room) -> None:
    launch = room.launch(f"{COUNT}; [ $runs = 1 ] && exit 1; {FOREVER}", restarts=3)
    room.backend.start(launch)
    wait_for(room.backend, launch.handle, lambda report: report.tasks[0].restarts == 1)
    wait_for(room.backend, launch.handle, started)
    os.kill(room.supervisor(launch), signal.SIGKILL)
    [task] = wait_for(room.backend, launch.handle, ended).tasks
    assert (task.state, task.restarts) == (TaskState.LOST, 1)
    assert living(launch.handle) == []
