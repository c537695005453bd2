"""What becomes of jobs on a real Slurm: every way that one ends there is told as what it was."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.backends import slurmscript
from paddlecloud.backends.base import Launch, RefusedError
from paddlecloud.backends.slurmcalls import Commands
from paddlecloud.model.state import StopReason
from paddlecloud.model.task import Report, TaskState
from paddlecloud.runtime.allocation import expand
from tests import slurm as engine
from tests.contract.slurmroom import FOREVER, SlurmRoom, now
from tests.launches import make_launch, started, wait_for
from tests.slurm import CGROUPS, Slurm
from tests.slurm_conf import address
from tests.waiting import wait_until

SAVES = "trap 'echo saved >> $OUTPUT_PATH/saved; exit 0' TERM; echo ready; while :; do sleep 0.1; done"


@pytest.fixture
def room(slurm: Slurm, tmp_path: Path) -> Iterator[SlurmRoom]:
    made = SlurmRoom(tmp_path, slurm)
    yield made
    made.close()


def ready(room: SlurmRoom, launch: object) -> None:
    path = launch.results / "log" / "trainer-0.log"  # type: ignore[attr-defined]
    wait_until(lambda: path.exists() and "ready" in path.read_text(), "the task has set its trap")


def end_in(room: SlurmRoom, job: str, seconds: int) -> None:
    at = (now() + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")
    room.slurm.run("scontrol", "update", f"JobId={job}", f"EndTime={at}", env={"TZ": "UTC"})


def test_success_and_failure_are_told_by_the_task_itself(room: SlurmRoom) -> None:
    good, bad = room.start("true"), room.start("exit 7")
    assert (report := room.end_of(good)).stop is None
    assert report.tasks[0].state is TaskState.SUCCEEDED
    report = room.end_of(bad)
    assert (report.stop, report.tasks[0].exit_code) == (None, 7)


@pytest.mark.parametrize("command", [FOREVER, SAVES], ids=["dies", "saves"])
def test_a_time_limit_of_slurm_is_wall_time_whatever_the_task_makes_of_it(room: SlurmRoom, command: str) -> None:
    launch = room.running(command)
    if command == SAVES:
        ready(room, launch)
    end_in(room, room.job_of(launch), 2)
    seen: list[Report] = []

    def over(report: Report) -> bool:
        seen.append(report)
        return report.ended

    report = wait_for(room.backend, launch.handle, over)
    assert (report.stop, report.tasks[0].state) == (StopReason.WALL_TIME, TaskState.FAILED)
    assert "longer than Slurm allows" in report.why
    assert {task.state for one in seen[:-1] for task in one.tasks} == {TaskState.RUNNING}


def test_slurms_time_leaves_room_for_packages_to_be_built(room: SlurmRoom, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "requirements.txt").write_text("--no-index\n")

    def minutes(launch: Launch) -> str:
        [job] = room.jobs_of(launch)
        return room.slurm.run("squeue", "--noheader", "-j", job, "--format=%l").strip()

    def started_with(**more: Any) -> str:
        launch = dataclasses.replace(room.launch(FOREVER, tree=tree, **more), wall_time_seconds=60)
        room.backend.start(launch)
        wait_for(room.backend, launch.handle, started)
        limit = minutes(launch)
        room.backend.stop(launch.handle)
        room.end_of(launch)
        return limit

    assert started_with() == "31:00"
    assert started_with(requirements="none") == "1:00"
    assert started_with(options={"partition": "short"}) == "1:00", "which gives no more"


@pytest.mark.root
def test_out_of_memory_is_told_as_that(tmp_path: Path) -> None:
    if os.geteuid() != 0 or not (CGROUPS / "memory").is_dir():
        pytest.skip("needs root and control groups of version 1")
    with engine.running(nodes=2, rest=False, accounting=False, proctrack="cgroup") as cluster:
        room = SlurmRoom(tmp_path, cluster)
        greedy = f"{sys.executable} -c \"b'x' * (300 << 20)\""
        alone = room.start(greedy, memory_bytes=60 << 20)
        both = room.start(greedy, FOREVER, memory_bytes=60 << 20)
        report = room.end_of(alone)
        assert report.tasks[0].state is TaskState.FAILED
        assert "out of memory" in report.tasks[0].outcome
        report = wait_for(room.backend, both.handle, lambda report: report.tasks[0].state.ended)
        assert "out of memory" in report.tasks[0].outcome
        # Several processes at once, quicker than the supervisor looks: the kernel kills one, and Slurm is silent
        # until the whole gang has ended.
        fill = f"{sys.executable} -c \"import time; held = b'x' * (45 << 20); time.sleep(3)\""
        apart = {"ntasks-per-node": "1"}
        several = room.start(f"{fill} & {fill} & {fill} & wait; exit 1", FOREVER, memory_bytes=100 << 20, options=apart)
        report = wait_for(room.backend, several.handle, lambda report: report.tasks[0].state.ended)
        assert "out of memory" in report.tasks[0].outcome
        room.close()


def test_where_slurm_does_not_limit_memory_the_supervisor_does(room: SlurmRoom) -> None:
    fill = "import time; filled = bytes(b'x') * (60 << 20); time.sleep(1000)"
    launch = room.start(f'for _ in 1 2 3 4 5; do {sys.executable} -c "{fill}" & done; wait', memory_bytes=200 << 20)
    assert room.end_of(launch).tasks[0].outcome == "out of memory: used more than its limit of 200.0 MiB"


@pytest.mark.slow
@pytest.mark.parametrize("tasks", [1, 2])
def test_a_dead_node_is_a_lost_one(room: SlurmRoom, tasks: int) -> None:
    # The one that dies is not where the batch script is: srun must not tell the end before Slurm does.
    options = {"nodelist": "n4"} if tasks == 1 else {"nodelist": "n3,n4", "ntasks-per-node": "1"}
    launch = room.running(*[FOREVER] * tasks, options=options)
    room.slurm.kill_node("n4")
    try:
        report = wait_for(room.backend, launch.handle, lambda report: report.ended or report.stop is not None)
        assert report.stop is StopReason.NODE_LOST
        assert report.tasks[-1].state is TaskState.LOST
        room.end_of(launch)
    finally:
        room.slurm.start_node("n4")
        room.slurm.wait_for_nodes()


@pytest.mark.parametrize("command", [FOREVER, SAVES], ids=["dies", "saves"])
def test_who_is_evicted_for_another_is_preempted(room: SlurmRoom, command: str) -> None:
    room.slurm.wait_for_nodes()
    low = room.running(*[command] * 4, options={"qos": "low", "exclusive": "true", "ntasks-per-node": "1"})
    if command == SAVES:
        ready(room, low)
    high = room.start(FOREVER, options={"qos": "high", "exclusive": "true"})
    report = room.end_of(low)
    assert report.stop is StopReason.PREEMPTED
    assert not any(task.state is TaskState.SUCCEEDED for task in report.tasks)
    wait_for(room.backend, high.handle, started)


@pytest.mark.parametrize("command", [FOREVER, SAVES], ids=["dies", "saves"])
def test_what_an_administrator_cancels_while_it_runs_is_killed(room: SlurmRoom, command: str) -> None:
    launch = room.running(command, FOREVER)
    if command == SAVES:
        ready(room, launch)
    room.slurm.run("scancel", room.job_of(launch))
    report = room.end_of(launch)
    assert (report.stop, report.tasks[0].state) == (StopReason.ASKED, TaskState.FAILED)
    assert "cancelled in Slurm" in report.why


def test_what_is_cancelled_while_it_waits_has_never_started(room: SlurmRoom) -> None:
    launch = room.start(FOREVER, options={"hold": "true"})
    report = wait_for(room.backend, launch.handle, lambda report: "held" in report.waits)
    assert [task.state for task in report.tasks] == [TaskState.STARTING]
    room.slurm.run("scancel", room.job_of(launch))
    report = room.end_of(launch)
    assert (report.stop, report.started_at) == (StopReason.ASKED, None)


def test_a_requeue_is_not_gone_on_with(room: SlurmRoom) -> None:
    beats = room.folder / "beats"
    launch = room.running(f"echo run >> {beats}; {FOREVER}")
    wait_until(beats.exists, "its command runs")
    job = room.job_of(launch)
    room.slurm.run("scontrol", "update", f"JobId={job}", "Requeue=1")
    room.slurm.run("scontrol", "requeue", job)
    report = room.end_of(launch)
    assert report.stop is StopReason.PREEMPTED
    assert "back into its queue" in report.why
    room.backend.clean([launch.handle])
    wait_until(lambda: room.slurm.job_state(job) == "CANCELLED", "nothing of it is left in Slurm's queue")
    assert beats.read_text() == "run\n"


def test_python_that_a_node_does_not_have_is_named(room: SlurmRoom) -> None:
    room.open(python="/no/such/python3")
    report = room.end_of(room.start("true"))
    assert report.tasks[0].state is TaskState.FAILED
    assert "/no/such/python3" in report.tasks[0].reason
    assert "not found" in report.tasks[0].reason
    assert "/no/such/python3" in room.end_of(room.start("true", "true")).tasks[0].reason


def test_parts_with_and_without_gpus_meet(room: SlurmRoom) -> None:
    """On nodes in another order than the tasks', too."""
    show = "echo $CUDA_VISIBLE_DEVICES $PADDLE_TRAINER_ENDPOINTS $PADDLE_PSERVERS_IP_PORT_LIST $POD_IP >&2"
    others = [
        room.slurm.submit("sleep 1000", f"--account={room.slurm.account}", f"--nodelist={node}", "--gres=gpu:4")
        for node in ("n1", "n2")
    ]
    wait_until(lambda: {room.slurm.job_state(job) for job in others} == {"RUNNING"}, "n1 and n2 have no GPU left")
    room.slurm.run("scontrol", "update", "NodeName=n4", "State=DRAIN", "Reason=test")
    try:
        launch = room.start(show, show, pservers=[show], gpus={"trainer": 2}, ports=[21001, 21002, 21003])
        report = room.end_of(launch)
    finally:
        room.slurm.run("scontrol", "update", "NodeName=n4", "State=RESUME")
        room.slurm.run("scancel", *others)
    assert {task.state for task in report.tasks} == {TaskState.SUCCEEDED}, report
    said = {name: room.log(launch, name).split() for name in ("trainer-0", "trainer-1", "pserver-0")}
    assert (said["trainer-0"][0], said["trainer-1"][0]) == ("0,1", "2,3")
    trainers, pserver = said["trainer-0"][1].split(","), said["trainer-0"][2]
    assert said["trainer-1"][1:3] == [",".join(trainers), pserver]
    assert said["pserver-0"][-3:-1] == [",".join(trainers), pserver]
    assert {endpoint.partition(":")[0] for endpoint in trainers} == {said["trainer-0"][-1]}
    assert pserver.partition(":")[0] == said["pserver-0"][-1] < said["trainer-0"][-1]


def test_a_full_partition_says_why_and_when(room: SlurmRoom) -> None:
    room.slurm.wait_for_nodes()
    whole = {"exclusive": "true", "ntasks-per-node": "1"}
    full = room.running(*[FOREVER] * 4, options=whole)
    launch = room.start("true", options=whole)
    report = wait_for(room.backend, launch.handle, lambda report: report.about_at is not None)
    assert "not enough is free (Resources)" in report.waits
    assert f"job {room.job_of(launch)}" in report.waits
    assert report.about_at is not None
    assert report.about_at > now()
    room.backend.stop(full.handle)
    assert room.end_of(launch).tasks[0].state is TaskState.SUCCEEDED


def test_options_of_a_job_reach_slurm_and_what_it_will_not_have_is_refused(room: SlurmRoom) -> None:
    launch = room.running(FOREVER, options={"partition": "low", "constraint": "rack2", "nice": "1"})
    told = room.slurm.run("scontrol", "show", "job", room.job_of(launch))
    assert "Partition=low" in told
    assert "Features=rack2" in told
    assert "Nice=1" in told
    for wrong in ({"partition": "munge"}, {"constraint": "slurmctld"}, {"partition": "Connection refused"}):
        with pytest.raises(RefusedError, match="Slurm refuses it"):
            room.start("true", options=wrong)
        room.backend.report([launch.handle])  # the cluster is not taken to be silent
    with pytest.raises(RefusedError, match="slurm.output|set by the server"):
        room.start("true", options={"output": "/etc/passwd"})


def test_a_folder_with_a_strange_name_will_do(slurm: Slurm, tmp_path: Path) -> None:
    room = SlurmRoom(tmp_path / 'a "b" 100%j ü', slurm)
    launch = room.start("true", "true")
    assert [task.outcome for task in room.end_of(launch).tasks] == ["exit code 0"] * 2
    room.close()


def test_a_script_starts_without_the_login_environment_and_without_ours(slurm: Slurm, tmp_path: Path) -> None:
    """A login shell for each job would cost more than most of what we do."""
    said = slurm.folder / "output" / "environment"
    launch = make_launch(tmp_path, "true", job="job-environment", memory_bytes=0)
    script = slurmscript.render(launch, options={}, command=["env"], output=str(said), wall_time_seconds=60)
    Commands(env={**slurm.env, "OF_THE_SERVER": "1"}).submit(script, None)
    wait_until(lambda: said.exists() and "PATH=" in said.read_text(), "the script has said its environment")
    names = {line.partition("=")[0] for line in said.read_text().splitlines()}
    assert "PATH" in names
    assert not names & {"OF_THE_SERVER", "LOGNAME", "USER", "SHELL", "HOME"}


def test_what_a_node_allows_is_noted_where_no_task_sees_it(slurm: Slurm, tmp_path: Path) -> None:
    room = SlurmRoom(tmp_path, slurm, hidden=[tmp_path])
    room.end_of(room.start("true"))
    notes = list(room.root.glob("runtime-*/allows-*"))
    if not notes:
        pytest.skip("nodes of this machine have no namespaces, which is never noted")
    before = notes[0].read_bytes()
    launch = room.start(f"ls {room.root}; echo '{{}}' > {notes[0]}; true")
    assert room.end_of(launch).tasks[0].state is TaskState.SUCCEEDED
    assert "runtime-" not in room.log(launch).partition("cannot create")[0]
    assert notes[0].read_bytes() == before
    room.close()


@pytest.mark.parametrize("names", ["n[1-4]", "a[01-03,7],b", "rack[1-2]n[09-10]", "login", "a-b[1,3-4]"])
def test_lists_of_nodes_are_read_as_slurm_reads_them(slurm: Slurm, names: str) -> None:
    assert list(expand(names)) == slurm.run("scontrol", "show", "hostnames", names).split()


def test_tasks_are_at_the_addresses_of_their_nodes(room: SlurmRoom) -> None:
    launch = room.start(
        *["echo $POD_IP $PADDLE_TRAINER_ENDPOINTS"] * 4, options={"ntasks-per-node": "1"}, ports=[21100] * 4
    )
    report = room.end_of(launch)
    assert {task.state for task in report.tasks} == {TaskState.SUCCEEDED}
    said = [room.log(launch, f"trainer-{number}").split() for number in range(4)]
    assert [here for here, _ in said] == [address(number) for number in range(1, 5)]
    assert {endpoints for _, endpoints in said} == {",".join(f"{here}:21100" for here, _ in said)}
