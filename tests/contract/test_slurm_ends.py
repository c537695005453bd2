"""A gang of which one task ignores SIGTERM, ended by Slurm in each of its ways: the job ends as Slurm says, not as its
tasks died. A task on a node that Slurm cannot reach writes nothing once the next attempt has begun."""

from __future__ import annotations

import dataclasses
import os
import signal
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from paddlecloud.backends.base import Launch
from paddlecloud.model import lifecycle, paths
from paddlecloud.model.job import Placement
from paddlecloud.model.state import JobState, StopReason
from paddlecloud.model.task import TaskState
from tests import slurm as engine
from tests.contract.records import a_job
from tests.contract.slurmroom import FOREVER, SlurmRoom, now
from tests.launches import started, wait_for
from tests.slurm import Slurm
from tests.waiting import wait_until

STUBBORN = "trap '' TERM; echo ready; while :; do sleep 0.1; done"
ONE_A_NODE = {"ntasks-per-node": "1", "qos": "low"}


@pytest.fixture
def room(slurm: Slurm, tmp_path: Path) -> Iterator[SlurmRoom]:
    made = SlurmRoom(tmp_path, slurm, grace_seconds=30)  # more than KillWait: Slurm kills the stubborn with its watcher
    slurm.wait_for_nodes()
    yield made
    made.close()


def cancelled(room: SlurmRoom, job: str) -> None:
    room.slurm.run("scancel", job)


def out_of_time(room: SlurmRoom, job: str) -> None:
    at = (now() + timedelta(seconds=2)).strftime("%Y-%m-%dT%H:%M:%S")
    room.slurm.run("scontrol", "update", f"JobId={job}", f"EndTime={at}", env={"TZ": "UTC"})


def preempted(room: SlurmRoom, _: str) -> None:
    room.start(FOREVER, options={"qos": "high", "exclusive": "true"})


def put_back(room: SlurmRoom, job: str) -> None:
    room.slurm.run("scontrol", "update", f"JobId={job}", "Requeue=1")
    room.slurm.run("scontrol", "requeue", job)


def without_a_node(room: SlurmRoom, _: str) -> None:
    room.slurm.kill_node("n4")


def without_a_slurmd(room: SlurmRoom, _: str) -> None:
    room.slurm.kill_slurmd("n4")


@pytest.fixture
def mended(slurm: Slurm) -> Iterator[None]:
    yield
    state = slurm.node_states().get("n4", "")
    if state.startswith("down") or state.endswith("*"):
        slurm.kill_node("n4")
        slurm.start_node("n4")
        slurm.wait_for_nodes()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "stop", "state"),
    [
        (cancelled, StopReason.ASKED, JobState.KILLED),
        (out_of_time, StopReason.WALL_TIME, JobState.TIMEOUT),
        (preempted, StopReason.PREEMPTED, JobState.QUEUE),
        (put_back, StopReason.PREEMPTED, JobState.QUEUE),
        (without_a_node, StopReason.NODE_LOST, JobState.QUEUE),
        (without_a_slurmd, StopReason.NODE_LOST, JobState.QUEUE),
    ],
)
@pytest.mark.usefixtures("mended")
def test_a_gang_with_a_stubborn_task_ends_as_slurm_says(
    room: SlurmRoom, end: Callable[[SlurmRoom, str], None], stop: StopReason, state: JobState
) -> None:
    launch = room.running(FOREVER, STUBBORN, FOREVER, FOREVER, options=ONE_A_NODE)
    log = launch.results / "log" / "trainer-1.log"
    wait_until(lambda: log.exists() and "ready" in log.read_text(), "the stubborn task has set its trap")
    end(room, room.job_of(launch))
    assert what_becomes_of(room, launch) == (stop, state)
    room.end_of(launch)
    ends = [Path(room.root, launch.handle, f"trainer-{number}", "exit").exists() for number in range(4)]
    assert ends[0], "one that died of SIGTERM has left its end"


def what_becomes_of(room: SlurmRoom, launch: Launch) -> tuple[StopReason | None, JobState]:
    """The state that the job goes to next, by what the scheduler makes of every report."""
    placement = Placement(cluster="hpc", tasks=launch.placement.tasks)
    job = replace(
        a_job(roles=launch.roles), state=JobState.RUNNING, attempt=1, placement=placement, running_since=now()
    )
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        report = room.backend.report([launch.handle])[launch.handle]
        move = lifecycle.advance(job, report, now(), attempts_limit=3)
        if move is not None and job.state is JobState.KILLING:
            return job.stop, move.to
        if move is not None and move.to is JobState.KILLING:
            job = lifecycle.apply(job, move)
            room.backend.stop(launch.handle)
        elif move is not None:
            return move.stop, move.to
        time.sleep(0.05)
    raise AssertionError("the job does not end")


@pytest.mark.slow
@pytest.mark.usefixtures("mended")
def test_a_task_that_slurm_cannot_reach_writes_nothing_beside_the_next_attempt(room: SlurmRoom) -> None:
    writes = "while :; do echo {} >> $OUTPUT_PATH/beats; sleep 0.02; done"
    only_there = {"nodelist": "n4", "qos": "low"}
    first = room.running(f"trap '' TERM; {writes.format('first')}", options=only_there)
    beats = first.results / "rank-0" / "beats"
    wait_until(beats.exists, "the first attempt writes")
    room.slurm.kill_slurmd("n4")
    report = room.end_of(first)
    assert report.stop is StopReason.NODE_LOST
    room.backend.clean([first.handle])
    again = room.launch(writes.format("second"), options={"qos": "low", "exclude": "n4"})
    again = _next_attempt(again, first)
    room.backend.start(again)
    wait_for(room.backend, again.handle, started)
    wait_until(lambda: beats.read_text().count("second") > 100, "the second attempt writes")
    assert beats.read_text().split()[0] == "first", "it finds what the first had written"
    assert beats.read_text().rstrip().partition("second")[2].count("first") == 0


@pytest.mark.slow
@pytest.mark.parametrize(("tasks", "step"), [(1, "batch"), (2, "batch"), (2, "0")])
def test_a_job_whose_slurmstepd_was_killed_gives_its_nodes_back(tmp_path: Path, tasks: int, step: str) -> None:
    # Slurm that takes its time, as most do: it asks nodes for their jobs only every few minutes.
    with engine.running(nodes=2, rest=False, accounting=False, timeout_seconds=300) as slurm:
        room, go = SlurmRoom(tmp_path, slurm), tmp_path / "go"
        launch = room.running(*[f"until [ -e {go} ]; do sleep 0.1; done"] * tasks, options={"ntasks-per-node": "1"})
        watchers = _stepds(f"{room.job_of(launch)}.{step}")
        assert watchers
        for pid in watchers:
            os.kill(pid, signal.SIGKILL)
        go.touch()
        report = room.end_of(launch)
        assert {task.state for task in report.tasks} == {TaskState.SUCCEEDED}
        room.backend.clean([launch.handle])

        def given_back() -> bool:
            room.backend.capacity()
            return slurm.node_states() == dict.fromkeys(slurm.nodes, "idle")

        wait_until(given_back, "every node is idle again", seconds=90)
        room.close()


def _next_attempt(launch: Launch, before: Launch) -> Launch:
    handle = paths.handle(before.job, 2)
    return dataclasses.replace(launch, job=before.job, handle=handle, attempt=2, results=before.results)


def _stepds(step: str) -> list[int]:
    """The processes that watch a step of a job, or its batch script, on every node."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if words.startswith("slurmstepd: ") and f"[{step}]" in words:
            found.append(int(place.name))
    return found
