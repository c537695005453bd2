"""Tasks on this machine: whoever is killed, everything of a task ends with it, once, and its end is told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from paddlecloud.backends.base import RefusedError
from paddlecloud.model.task import TaskState
from paddlecloud.runtime.folder import Ended
from tests.contract.local import PYTHON_FORKED_AWAY, Room, is_dead, living, log
from tests.launches import ended, started, wait_for
from tests.waiting import wait_until

FOREVER = "sleep 1000"
DEAF = 'trap "" TERM; echo ready; while :; do sleep 0.05; done'


def test_a_task_that_left_its_group_and_session_ends_with_its_job(room: Room) -> None:
    away = f'python -c \'{PYTHON_FORKED_AWAY} import time; open("away", "w"); time.sleep(1000)\''
    launch = room.launch(f"{away}; until [ -e away ]; do sleep 0.01; done")
    assert room.run(launch).state is TaskState.SUCCEEDED
    assert living(launch.handle) == []


def test_a_stop_reaches_what_left_its_group_and_session(room: Room) -> None:
    launch = room.launch(f"python -c '{PYTHON_FORKED_AWAY} import time; print(\"away\"); time.sleep(1000)'; {FOREVER}")
    room.backend.start(launch)
    wait_for(room.backend, launch.handle, started)
    wait_until(lambda: "away" in log(launch), "the child has left")
    room.backend.stop(launch.handle)
    wait_for(room.backend, launch.handle, ended)
    assert living(launch.handle) == []


def test_a_trainer_may_finish_its_work_after_its_shell_has_been_stopped(room: Room) -> None:
    save = 'trap "sleep 0.3; echo saved; exit 0" TERM; echo ready; while :; do sleep 0.05; done'
    launch = room.launch(f"sh -c '{save}'; echo never")
    room.backend.start(launch)
    wait_for(room.backend, launch.handle, started)
    wait_until(lambda: "ready" in log(launch), "the trainer runs")
    room.backend.stop(launch.handle)
    [task] = wait_for(room.backend, launch.handle, ended).tasks
    assert (task.state, task.signal) == (TaskState.FAILED, signal.SIGTERM)
    assert "saved" in log(launch)
    assert "never" not in log(launch)


def test_a_task_that_ends_well_when_asked_to_stop_has_succeeded(room: Room) -> None:
    launch = room.launch('trap "exit 0" TERM; echo ready; while :; do sleep 0.05; done')
    room.backend.start(launch)
    wait_for(room.backend, launch.handle, started)
    wait_until(lambda: "ready" in log(launch), "the task runs")
    room.backend.stop(launch.handle)
    assert wait_for(room.backend, launch.handle, ended).tasks[0].state is TaskState.SUCCEEDED


@pytest.mark.parametrize("isolated", [True, False])
def test_a_deaf_task_is_killed_after_its_grace_time(tmp_path: Path, isolated: bool) -> None:
    with Room(tmp_path, isolated=isolated, grace_seconds=0.3) as room:
        launch = room.launch(DEAF)
        room.backend.start(launch)
        wait_for(room.backend, launch.handle, started)
        wait_until(lambda: "ready" in log(launch), "the task is deaf")
        room.backend.stop(launch.handle)
        [task] = wait_for(room.backend, launch.handle, ended).tasks
        assert task.outcome == "killed: did not end within 0.3 s of being asked to"
        assert task.signal == signal.SIGKILL


def test_a_task_cannot_stop_its_own_supervisor(tmp_path: Path) -> None:
    with Room(tmp_path) as room:
        if "PID" not in room.backend.isolation:
            pytest.skip(room.backend.isolation)
        launch = room.launch("kill -TERM 1; kill -KILL 1; echo alive; exit 3")
        assert room.run(launch).exit_code == 3
        assert log(launch).endswith("alive\n")


def test_with_its_supervisor_killed_a_task_is_lost_and_nothing_of_it_is_left(room: Room) -> None:
    launch = room.launch(f"python -c '{PYTHON_FORKED_AWAY} import time; print(\"away\"); time.sleep(1000)'; {FOREVER}")
    room.backend.start(launch)
    wait_for(room.backend, launch.handle, started)
    wait_until(lambda: "away" in log(launch), "the child has left")
    os.kill(room.supervisor(launch), signal.SIGKILL)
    [task] = wait_for(room.backend, launch.handle, ended).tasks
    assert task.state is TaskState.LOST
    assert task.started_at is not None
    assert living(launch.handle) == []
    room.backend.start(launch)
    assert room.backend.report([launch.handle])[launch.handle].tasks == (task,)


def test_with_its_supervisor_killed_a_task_ends_also_when_no_one_looks(room: Room) -> None:
    launch = room.launch(f"python -c '{PYTHON_FORKED_AWAY} import time; print(\"away\"); time.sleep(1000)'; {FOREVER}")
    room.backend.start(launch)
    wait_for(room.backend, launch.handle, started)
    wait_until(lambda: "away" in log(launch), "the child has left")
    os.kill(room.supervisor(launch), signal.SIGKILL)
    wait_until(lambda: living(launch.handle) == [], "all of the task is gone")


def test_a_supervisor_shares_no_group_with_the_server_or_the_helper_and_is_no_child_of_them(room: Room) -> None:
    launch = room.launch(FOREVER)
    room.backend.start(launch)
    wait_for(room.backend, launch.handle, started)
    supervisor = room.supervisor(launch)
    parent = int(Path(f"/proc/{supervisor}/stat").read_text().rpartition(")")[2].split()[1])
    assert parent not in (os.getpid(), room.backend.helper_pid)
    assert os.getpgid(supervisor) == supervisor
    assert os.getsid(supervisor) != os.getsid(0)


def test_with_the_whole_family_of_processes_killed_what_hid_is_found_by_its_mark(room: Room) -> None:
    launch = room.launch(f"python -c '{PYTHON_FORKED_AWAY} import time; print(\"away\"); time.sleep(1000)'; {FOREVER}")
    room.backend.start(launch)
    wait_for(room.backend, launch.handle, started)
    wait_until(lambda: "away" in log(launch), "the child has left")
    supervisor = room.supervisor(launch)
    inside = int(Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()[0])
    os.kill(supervisor, signal.SIGSTOP)
    os.kill(inside, signal.SIGKILL)
    os.kill(supervisor, signal.SIGKILL)
    assert wait_for(room.backend, launch.handle, ended).tasks[0].state is TaskState.LOST
    assert living(launch.handle) == []


def test_tasks_go_on_and_new_ones_start_after_the_helper_was_killed(room: Room) -> None:
    before = room.launch(FOREVER)
    room.backend.start(before)
    wait_for(room.backend, before.handle, started)
    helper = room.backend.helper_pid
    os.kill(helper, signal.SIGKILL)
    wait_until(lambda: is_dead(helper), "the helper is gone")
    after = room.launch("exit 5")
    assert room.run(after).exit_code == 5
    assert room.backend.helper_pid != helper
    assert room.backend.report([before.handle])[before.handle].tasks[0].state is TaskState.RUNNING


def test_a_helper_that_dies_over_a_request_is_replaced_and_the_task_runs_once(room: Room) -> None:
    helper = room.backend.helper_pid
    os.kill(helper, signal.SIGSTOP)
    launch = room.launch("echo once")
    room.backend.start(launch)
    os.kill(helper, signal.SIGKILL)
    wait_until(lambda: is_dead(helper), "the helper is gone")
    room.run(launch)
    assert log(launch) == "once\n"


def test_tasks_outlive_a_killed_server_and_the_helper_does_not(room: Room, tmp_path: Path) -> None:
    launch = room.launch("sleep 0.5; echo done; exit 7", FOREVER)
    room.backend.close()
    server = subprocess.Popen(
        [sys.executable, "-c", _SERVER, str(tmp_path), str(room.isolated), launch.job],
        stdout=subprocess.PIPE,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert server.stdout is not None
    helper = int(server.stdout.readline())
    server.kill()
    server.wait()
    server.stdout.close()
    wait_until(lambda: is_dead(helper), "the helper ends with its server")
    room.backend = room.open()
    report = wait_for(room.backend, launch.handle, lambda report: report.tasks[0].state.ended)
    assert (report.tasks[0].exit_code, report.tasks[1].state) == (7, TaskState.RUNNING)
    assert log(launch) == "done\n"


def test_a_task_that_was_written_down_but_never_asked_for_starts_with_the_next_start(room: Room) -> None:
    launch = room.launch("echo once")
    room.write_down(launch)
    assert room.backend.report([launch.handle])[launch.handle].tasks[0].state is TaskState.STARTING
    assert room.run(launch).state is TaskState.SUCCEEDED
    assert log(launch) == "once\n"


def test_a_task_that_was_stopped_before_it_started_never_starts(room: Room) -> None:
    launch = room.launch("echo once")
    room.write_down(launch)
    room.backend.stop(launch.handle)
    [task] = room.backend.report([launch.handle])[launch.handle].tasks
    assert (task.state, task.reason) == (TaskState.FAILED, "stopped before it started")
    room.backend.start(launch)
    room.reopen()
    assert room.backend.report([launch.handle])[launch.handle].tasks == (task,)
    assert not launch.results.exists()


def test_a_supervisor_that_comes_after_the_stop_does_not_run_the_command(room: Room) -> None:
    launch = room.launch("echo once")
    room.write_down(launch)
    (room.tasks / launch.handle / "stop").touch()
    room.backend._forker.ask([room.task_folder(launch).path])
    wait_until(lambda: room.task_folder(launch).ended, "the supervisor settles it")
    [task] = room.backend.report([launch.handle])[launch.handle].tasks
    assert (task.state, task.reason) == (TaskState.FAILED, "stopped before it started")
    assert log(launch) == "paddlecloud: stopped before it started\n"


def test_a_task_that_has_ended_is_not_run_again_by_a_late_supervisor(room: Room) -> None:
    launch = room.launch("echo once")
    room.run(launch)
    room.backend._forker.ask([room.task_folder(launch).path])
    after = room.launch("true")
    room.run(after)
    assert log(launch) == "once\n"


def test_many_supervisors_of_one_task_run_it_once(room: Room) -> None:
    launch = room.launch("echo once; sleep 0.2")
    room.write_down(launch)
    others = [room.open() for _ in range(2)]
    for backend in (*others, room.backend):
        backend.start(launch)
    for backend in others:
        backend.close()
    wait_for(room.backend, launch.handle, ended)
    assert log(launch) == "once\n"


def test_what_is_left_of_an_earlier_boot_is_lost_and_never_starts(room: Room) -> None:
    """After a power cut any file may be missing, half-written or another task's, and nothing can be running."""
    whole, torn, begun, used, other = (room.launch("echo once") for _ in range(5))
    for launch in (whole, torn, begun, used, other):
        room.write_down(launch, boot="an earlier one")
    Path(room.task_folder(torn).task_file).write_bytes(b"")
    Path(room.task_folder(begun).path, "pid").write_bytes(b"\0" * 100)
    room.task_folder(other).write_ended(Ended(exit_code=0))
    Path(room.task_folder(other).path, "exit").rename(Path(room.task_folder(used).path, "exit"))
    for launch in (whole, torn, begun, used):
        room.backend.start(launch)
        [task] = room.backend.report([launch.handle])[launch.handle].tasks
        assert (task.state, task.reason) == (TaskState.LOST, "this machine was restarted")
        assert log(launch) == ""
    room.reopen()
    assert room.backend.report([whole.handle])[whole.handle].tasks[0].state is TaskState.LOST


def test_an_end_that_no_one_read_before_the_machine_went_down_is_known_after_it(room: Room) -> None:
    launch = room.launch("exit 6")
    room.write_down(launch, boot="an earlier one")
    room.task_folder(launch).write_ended(Ended(exit_code=6, ended_at=1.0))
    assert room.backend.report([launch.handle])[launch.handle].tasks[0].exit_code == 6


def test_a_folder_that_tasks_left_as_it_was_is_used_again_by_as_many(room: Room) -> None:
    first, second, third = room.launch("true", "true"), room.launch("exit 3"), room.launch("exit 4", "exit 5")
    room.run_and_clean(first)
    [spare] = room.tasks.glob(".spare-*")
    assert [file.read_bytes() for file in spare.glob("*/task.json")] == [b"", b""], "a command may have held a secret"
    assert room.run(second).exit_code == 3
    assert spare.exists()
    room.run(third)
    assert not spare.exists()
    assert [task.exit_code for task in room.backend.report([third.handle])[third.handle].tasks] == [4, 5]


@pytest.mark.parametrize(
    "leave",
    [
        "touch .x",
        "touch $HOME/x",
        "mkdir $TMPDIR/x",
        "chgrp 1 .",
        "chattr +S $HOME",
        'cd $TMPDIR; python3 -c \'import os; os.setxattr(".", "user.x", b"1")\'',
    ],
)
def test_nothing_that_a_task_leaves_reaches_another(room: Room, leave: str) -> None:
    launch = room.launch(leave)
    if room.run(launch).exit_code != 0:
        pytest.skip(f"{leave} cannot be done here: {log(launch)}")
    room.backend.clean([launch.handle])
    assert not list(room.tasks.glob(".spare-*"))


def test_a_folder_that_is_used_again_has_its_mode_again(room: Room) -> None:
    first, second = room.launch("chmod 700 . $HOME; chmod 1777 $TMPDIR"), room.launch("stat -c %a . $HOME $TMPDIR")
    room.run_and_clean(first)
    room.run(second)
    assert log(second) == "755\n755\n755\n"


def test_a_supervisor_that_has_not_quite_ended_keeps_no_one_else_out(room: Room) -> None:
    first, second = room.launch("true"), room.launch("exit 3")
    room.run(first)
    lock = wait_until(room.task_folder(first).lock, "the supervisor has let go")
    room.backend.clean([first.handle])
    assert not list(room.tasks.glob(".spare-*"))
    assert room.run(second).exit_code == 3
    os.close(lock)


def test_what_was_being_written_when_the_server_died_does_not_count_as_started(room: Room) -> None:
    launch = room.launch("echo once")
    half = room.tasks / f".new-{launch.handle}"
    half.mkdir()
    (half / "trainer-0").mkdir()
    assert room.backend.report([launch.handle]) == {}
    assert room.run(launch).state is TaskState.SUCCEEDED


def test_the_server_is_woken_when_a_task_ends(room: Room) -> None:
    launch = room.launch("sleep 0.2; exit 3")
    room.backend.start(launch)
    wait_for(room.backend, launch.handle, started)
    while not room.backend.report([launch.handle])[launch.handle].ended:
        room.woken.clear()
        if not room.backend.report([launch.handle])[launch.handle].ended:
            assert room.woken.wait(10)


def test_knocks_arrive_also_in_a_folder_with_a_long_path(tmp_path: Path) -> None:
    folder = tmp_path.joinpath(*["a-long-name-of-forty-characters-" + "x" * 8] * 8)
    with Room(folder) as room:
        launch = room.launch("exit 3")
        room.backend.start(launch)
        assert room.woken.wait(10)
        assert wait_for(room.backend, launch.handle, ended).tasks[0].exit_code == 3


def test_no_process_is_left_after_many_jobs(room: Room) -> None:
    launches = [room.launch("sleep 0.05 & sleep 100 & exit 0", f"{FOREVER} & exit 1") for _ in range(10)]
    for launch in launches:
        room.backend.start(launch)
    for launch in launches:
        wait_for(room.backend, launch.handle, ended)
        assert living(launch.handle) == []
    supervisors = [room.supervisor(launch, task) for launch in launches for task in ("trainer-0", "trainer-1")]
    wait_until(lambda: all(map(is_dead, supervisors)), "the supervisors end")


def test_a_handle_that_is_not_a_name_is_refused(room: Room) -> None:
    with pytest.raises(RefusedError):
        room.backend.stop("../other")


_SERVER = textwrap.dedent(
    """
    import sys, time
    from pathlib import Path
    from tests.contract.local import Room
    with Room(Path(sys.argv[1]), isolated=sys.argv[2] == "True") as room:
        room.backend.start(room.launch("sleep 0.5; echo done; exit 7", "sleep 1000", job=sys.argv[3]))
        print(room.backend.helper_pid, flush=True)
        time.sleep(1000)
        """
)
