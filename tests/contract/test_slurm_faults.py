"""A Slurm that answers late or not at all, forgets, or was asked twice: nothing runs twice, and nothing is lost."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from paddlecloud.backends.base import Launch
from paddlecloud.model.errors import UnreachableError
from paddlecloud.model.state import StopReason
from paddlecloud.model.task import TaskState
from tests import slurm as engine
from tests.absent import absent
from tests.contract.slurmroom import FOREVER, SlurmRoom
from tests.launches import started, wait_for
from tests.slurm import NOBODY, Slurm
from tests.waiting import wait_until

# Submits, and then says nothing.
MUTE = '#!/bin/sh\n/usr/bin/sbatch "$@" >/dev/null\nexec sleep 1000\n'
# Says nothing, and submits when it is told to: as a controller does that was busy.
LATE = """#!/bin/sh
cat > {folder}/script
(until [ -e {folder}/go ]; do sleep 0.1; done; /usr/bin/sbatch "$@" < {folder}/script) >/dev/null 2>&1 &
exec sleep 1000
"""


@pytest.fixture
def room(slurm: Slurm, tmp_path: Path) -> Iterator[SlurmRoom]:
    made = SlurmRoom(tmp_path, slurm)
    yield made
    made.close()


def wrapper(folder: Path, text: str) -> Path:
    folder.mkdir()
    (folder / "sbatch").write_text(text.format(folder=folder))
    (folder / "sbatch").chmod(0o755)
    return folder


def insist(act: Callable[[], object]) -> None:
    """Do what is refused for a while after Slurm was silent."""

    def done() -> bool:
        try:
            act()
        except UnreachableError:
            return False
        return True

    wait_until(done, "Slurm is asked again")


def start_unheard(room: SlurmRoom, sbatch: str, *commands: str) -> Launch:
    """Start by an sbatch that does not answer; then the server is another one, whose sbatch does."""
    launch = room.launch(*commands)
    backend = room.open(seconds=2, path=[wrapper(room.folder / "bin", sbatch)])
    with pytest.raises(UnreachableError, match="within 2 s"):
        backend.start(launch)
    room.open()
    return launch


def test_a_job_that_was_accepted_without_an_answer_is_found_again(room: SlurmRoom) -> None:
    runs = room.folder / "runs"
    launch = start_unheard(room, MUTE, f"echo run >> {runs}; sleep 1")
    assert room.backend.report([launch.handle])[launch.handle].tasks[0].state is not TaskState.FAILED
    room.backend.start(launch)
    wait_for(room.backend, launch.handle, started)
    room.backend.start(launch)
    assert room.end_of(launch).tasks[0].state is TaskState.SUCCEEDED
    assert len(room.jobs_of(launch)) == 1
    assert runs.read_text() == "run\n"


def test_the_same_backend_goes_on_after_it_had_no_answer(room: SlurmRoom) -> None:
    launch = room.launch("true")
    backend = room.open(seconds=2, path=[wrapper(room.folder / "bin", MUTE)])
    with pytest.raises(UnreachableError):
        backend.start(launch)
    insist(lambda: backend.start(launch))
    assert room.end_of(launch).tasks[0].state is TaskState.SUCCEEDED
    assert len(room.jobs_of(launch)) == 1


@pytest.mark.parametrize("meanwhile", ["second runs", "both wait"])
def test_a_job_that_is_accepted_late_and_one_that_was_submitted_again_run_once(room: SlurmRoom, meanwhile: str) -> None:
    runs, go = room.folder / "runs", room.folder / "bin" / "go"
    command = f"echo run >> {runs}; sleep 3"
    launch = start_unheard(room, LATE, command, command)
    if meanwhile == "both wait":
        room.slurm.run("scontrol", "update", "PartitionName=batch", "State=DOWN")
    try:
        room.backend.start(launch)
        if meanwhile == "second runs":
            wait_for(room.backend, launch.handle, started)
        go.touch()
        wait_until(lambda: len(room.jobs_of(launch)) == 2, "the first one has come too")
    finally:
        room.slurm.run("scontrol", "update", "PartitionName=batch", "State=UP")
    report = room.end_of(launch)
    assert [task.state for task in report.tasks] == [TaskState.SUCCEEDED] * 2
    assert runs.read_text() == "run\n" * 2
    over = ("COMPLETED", "FAILED", "CANCELLED")

    def both_over() -> bool:
        room.backend.report([launch.handle])
        return all(room.slurm.job_state(job) in over for job in room.jobs_of(launch))

    wait_until(both_over, "neither is left in Slurm")
    assert runs.read_text() == "run\n" * 2


def test_one_that_comes_late_is_cancelled_while_the_other_runs(room: SlurmRoom) -> None:
    launch = start_unheard(room, LATE, FOREVER)
    room.backend.start(launch)
    wait_for(room.backend, launch.handle, started)
    first = room.job_of(launch)
    room.slurm.run("scontrol", "update", "PartitionName=batch", "State=DOWN")
    try:
        (room.folder / "bin" / "go").touch()
        jobs = wait_until(lambda: found if len(found := room.jobs_of(launch)) == 2 else None, "both are there")
        [late] = set(jobs) - {first}

        def cancelled() -> bool:
            assert room.backend.report([launch.handle])[launch.handle].tasks[0].state is TaskState.RUNNING
            return room.slurm.job_state(late) == "CANCELLED"

        wait_until(cancelled, "the late one is cancelled")
        assert room.slurm.job_state(first) == "RUNNING"
    finally:
        room.slurm.run("scontrol", "update", "PartitionName=batch", "State=UP")


def test_tasks_of_two_jobs_never_mix(room: SlurmRoom) -> None:
    """Whose first task has begun has all of them: those of the other would look for their peers in vain."""
    runs = room.folder / "runs"
    launch = room.start(*[f"echo run >> {runs}"] * 2, options={"hold": "true"})
    job = room.job_of(launch)
    (room.root / launch.handle / "claimed").write_text("1")
    room.slurm.run("scontrol", "release", job)
    wait_until(lambda: room.slurm.job_state(job) == "FAILED", "it ends")
    assert not runs.exists()
    assert "job 1 runs" in (room.root / launch.handle / "slurm.out").read_text()


def test_a_second_job_that_waits_is_ended_with_the_first(room: SlurmRoom) -> None:
    launch = start_unheard(room, LATE, FOREVER)
    room.slurm.run("scontrol", "update", "PartitionName=batch", "State=DOWN")
    try:
        room.backend.start(launch)
        (room.folder / "bin" / "go").touch()
        jobs = wait_until(lambda: found if len(found := room.jobs_of(launch)) == 2 else None, "both are there")
        room.backend.stop(launch.handle)
        room.end_of(launch)
        wait_until(lambda: {room.slurm.job_state(job) for job in jobs} == {"CANCELLED"}, "both are cancelled")
    finally:
        room.slurm.run("scontrol", "update", "PartitionName=batch", "State=UP")


def test_a_job_that_comes_after_its_attempt_was_cleaned_runs_nothing(room: SlurmRoom) -> None:
    runs = room.folder / "runs"
    launch = start_unheard(room, LATE, f"echo run >> {runs}")
    room.backend.stop(launch.handle)
    assert room.end_of(launch).tasks[0].reason == "stopped before it started"
    room.backend.clean([launch.handle])
    (room.folder / "bin" / "go").touch()
    job = room.job_of(launch)
    wait_until(lambda: room.slurm.job_state(job) == "FAILED", "it ends by itself")
    assert not runs.exists()
    room.slurm.wait_for_nodes()


@pytest.mark.parametrize("how", ["stopped", "hanging"])
def test_a_controller_that_does_not_answer_changes_nothing(room: SlurmRoom, how: str) -> None:
    go = room.folder / "go"
    first = room.running(f"until [ -e {go} ]; do sleep 0.1; done; exit 5")
    late = room.launch("true")
    backend = room.open(seconds=3)
    before = wait_for(backend, first.handle, started)
    if how == "stopped":
        room.slurm.stop_controller()
    else:
        room.slurm.hang_controller()
    try:
        go.touch()
        began = time.monotonic()
        for act in (
            lambda: backend.start(late),
            lambda: backend.stop(first.handle),
            lambda: backend.report([late.handle]),
        ):
            with pytest.raises(UnreachableError):
                act()
        assert time.monotonic() - began < 8, "only the first call waits"
    finally:
        if how == "stopped":
            room.slurm.start_controller()
        else:
            room.slurm.wake_controller()
    insist(lambda: backend.report([first.handle]))
    report = wait_for(backend, first.handle, lambda report: report.ended)
    assert report.tasks[0].started_at == before.tasks[0].started_at
    assert report.tasks[0].state is TaskState.FAILED
    insist(lambda: backend.start(late))
    assert wait_for(backend, late.handle, lambda report: report.ended).tasks[0].state is TaskState.SUCCEEDED
    assert len(room.jobs_of(late)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("accounting", [True, False], ids=["accounts", "none"])
def test_a_job_that_slurm_has_forgotten_is_known_by_its_own_words_and_the_accounts(
    tmp_path: Path, accounting: bool
) -> None:
    with engine.running(nodes=1, rest=False, accounting=accounting, extra="MinJobAge=2") as cluster:
        room = SlurmRoom(tmp_path, cluster)
        told = room.start("exit 7")
        cancelled = room.start(FOREVER, options={"hold": "true"})
        room.slurm.run("scancel", room.job_of(cancelled))
        room.open(python="/no/such/python3")
        mute = room.start("true")
        # Slurm removes what has ended once a minute.
        launches = (told, cancelled, mute)
        wait_until(lambda: not any(room.jobs_of(launch) for launch in launches), "Slurm forgets them", seconds=150)
        backend = room.open()
        assert backend.report([told.handle])[told.handle].tasks[0].exit_code == 7
        if accounting:
            room.slurm.stop_accounting()
            for _ in range(2):
                reports = backend.report([told.handle, mute.handle])
                assert (reports[told.handle].ended, reports[mute.handle].ended) == (True, False)
            room.slurm.start_accounting()
            insist(lambda: backend.report([told.handle]))
        report = wait_for(backend, mute.handle, lambda report: report.ended)
        assert report.tasks[0].state is (TaskState.FAILED if accounting else TaskState.LOST)
        report = wait_for(backend, cancelled.handle, lambda report: report.ended)
        assert report.stop is (StopReason.ASKED if accounting else None)
        room.close()


@pytest.mark.root
def test_a_job_is_its_users_own_account_where_it_is_mapped(tmp_path: Path) -> None:
    python = Path("/usr/bin/python3")  # others may not look into the home of who runs the tests
    if os.geteuid() != 0 or not python.exists():
        pytest.skip("needs root, and a Python that every account may run")
    if shutil.which("sudo") is None:
        absent("sudo is not installed: make engines")
    with engine.running(nodes=1, rest=False, accounting=False) as cluster:
        # Nobody is at the other end: what is looked at is whose job it is, and that it can be ended.
        mapped = {"someone": "nobody"}
        room = SlurmRoom(tmp_path, cluster, accounts=mapped, url="http://127.0.0.1:9", python=str(python))
        launch = room.start(FOREVER)
        job = room.job_of(launch)
        assert f"UserId=nobody({NOBODY})" in cluster.run("scontrol", "show", "job", job)
        wait_until(lambda: cluster.job_state(job) == "RUNNING", "it runs")
        assert room.open().report([launch.handle])[launch.handle].waits == ""
        room.backend.stop(launch.handle)
        room.end_of(launch)
        wait_until(lambda: cluster.job_state(job) != "RUNNING", "it is ended in Slurm")
