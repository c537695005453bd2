"""What every backend promises, and the fake that stands for them: one suite for all."""

from __future__ import annotations

import secrets
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from paddlecloud.backends.base import Backend, BusyError, InputAt, Launch
from paddlecloud.backends.local import LocalBackend
from paddlecloud.backends.slurm import SlurmBackend
from paddlecloud.backends.slurmcalls import Commands
from paddlecloud.backends.slurmcluster import Cluster
from paddlecloud.model.errors import ConflictError
from paddlecloud.model.job import Input, Resources
from paddlecloud.model.task import Report, TaskState
from tests.fakes import FakeBackend
from tests.launches import ended, make_launch, started, wait_for
from tests.slurm import Slurm

FOREVER = "sleep 1000"
CAPACITY = Resources(cpus=2, memory_bytes=1 << 30)


def now() -> datetime:
    return datetime.now(UTC)


@dataclass
class Stage:
    backend: Backend
    reopen: Callable[[], Backend]  # the backend as a new server would have it
    take_port: Callable[[], int]
    results: Path
    capacity: Resources | None = CAPACITY  # None: the cluster finds nodes itself, and so sees ports there first

    def launch(self, *commands: str, **more: object) -> Launch:
        job = f"job-{secrets.token_hex(16)}"
        return make_launch(self.results / job, *commands, job=job, **more)  # type: ignore[arg-type]


@pytest.fixture(params=["fake", "local", "local-bare", "slurm"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    if request.param == "slurm":
        yield from _slurm(tmp_path, request.getfixturevalue("slurm"))
        return
    maker = _fake if request.param == "fake" else _local
    yield from maker(tmp_path, request.param == "local")


def _fake(folder: Path, _: bool) -> Iterator[Stage]:
    backend = FakeBackend(CAPACITY, clock=now)

    def take_port() -> int:
        backend.taken_ports.add(7000)
        return 7000

    yield Stage(backend, lambda: backend, take_port, folder / "results")


def _local(folder: Path, isolated: bool) -> Iterator[Stage]:
    opened: list[LocalBackend] = []

    def make() -> LocalBackend:
        for backend in opened:
            backend.close()
        backend = LocalBackend(
            folder / "tasks",
            capacity=CAPACITY,
            clock=now,
            grace_seconds=5,
            namespaces=isolated,
            cgroups=isolated,
        )
        opened.append(backend)
        return backend

    with socket.socket() as taken:

        def take_port() -> int:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            return int(taken.getsockname()[1])

        yield Stage(make(), make, take_port, folder / "results")
    _end_all(opened[-1], folder / "tasks")
    opened[-1].close()


def _slurm(folder: Path, slurm: Slurm) -> Iterator[Stage]:
    def make() -> SlurmBackend:
        options = {"account": slurm.account} if slurm.account else {}
        cluster = Cluster(name="hpc", python=sys.executable, options=options, accounts={}, grace_seconds=5)
        return SlurmBackend(folder / "tasks", cluster, Commands(env=slurm.env), clock=now)

    with socket.socket() as taken:

        def take_port() -> int:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            return int(taken.getsockname()[1])

        yield Stage(make(), make, take_port, folder / "results", capacity=None)
    _end_all(make(), folder / "tasks")


def _end_all(backend: Backend, root: Path) -> None:
    for handle in [path.name for path in root.glob("job-*")]:
        backend.stop(handle)
        wait_for(backend, handle, ended)
        backend.clean([handle])
    assert not list(root.glob("job-*"))


def test_capacity_is_what_there_is_to_give_out(stage: Stage) -> None:
    assert stage.backend.capacity() == stage.capacity


def test_a_task_that_exits_with_0_has_succeeded(stage: Stage) -> None:
    before = now() - timedelta(seconds=1)
    launch = stage.launch("true")
    stage.backend.start(launch)
    [task] = wait_for(stage.backend, launch.handle, ended).tasks
    assert (task.name, task.state, task.exit_code, task.signal) == ("trainer-0", TaskState.SUCCEEDED, 0, None)
    assert task.started_at is not None
    assert task.ended_at is not None
    assert before < task.started_at <= task.ended_at
    assert task.ended_at.utcoffset() == timedelta(0)


def test_a_failed_task_tells_its_exit_code(stage: Stage) -> None:
    launch = stage.launch("exit 3")
    stage.backend.start(launch)
    [task] = wait_for(stage.backend, launch.handle, ended).tasks
    assert (task.state, task.exit_code, task.signal, task.outcome) == (TaskState.FAILED, 3, None, "exit code 3")


def test_a_task_that_dies_of_a_signal_tells_which(stage: Stage) -> None:
    launch = stage.launch("kill -11 $$")
    stage.backend.start(launch)
    [task] = wait_for(stage.backend, launch.handle, ended).tasks
    assert (task.state, task.exit_code, task.signal) == (TaskState.FAILED, None, 11)
    assert "SIGSEGV" in task.outcome


@pytest.mark.parametrize(
    ("command", "words"),
    [("exit 3", "exit code 3, after 1 of 1 restarts"), ("kill -9 $$", "killed by SIGKILL, after 1 of 1 restarts")],
)
def test_a_failed_task_is_started_again_as_often_as_it_may_be(stage: Stage, command: str, words: str) -> None:
    launch = stage.launch(command, FOREVER, restarts=1)
    stage.backend.start(launch)
    report = wait_for(stage.backend, launch.handle, lambda report: report.started and report.tasks[0].state.ended)
    assert (report.tasks[0].state, report.tasks[0].restarts) == (TaskState.FAILED, 1)
    assert report.tasks[0].outcome == words
    assert (report.tasks[1].state, report.tasks[1].restarts) == (TaskState.RUNNING, 0)


@pytest.mark.parametrize("command", ["true", FOREVER])
def test_what_does_not_fail_or_is_stopped_is_started_once(stage: Stage, command: str) -> None:
    launch = stage.launch(command, restarts=3)
    stage.backend.start(launch)
    wait_for(stage.backend, launch.handle, started)
    stage.backend.stop(launch.handle)
    assert wait_for(stage.backend, launch.handle, ended).tasks[0].restarts == 0


def test_every_task_of_a_launch_is_reported_by_its_name(stage: Stage) -> None:
    launch = stage.launch("true", "exit 4", FOREVER, pservers=["true"])
    stage.backend.start(launch)

    def three_ended(report: Report) -> bool:
        return report.started and sum(task.state.ended for task in report.tasks) == 3

    report = wait_for(stage.backend, launch.handle, three_ended)
    states = {task.name: task.state for task in report.tasks}
    assert states == {
        "trainer-0": TaskState.SUCCEEDED,
        "trainer-1": TaskState.FAILED,
        "trainer-2": TaskState.RUNNING,
        "pserver-0": TaskState.SUCCEEDED,
    }


def test_unknown_handles_are_left_out_of_a_report(stage: Stage) -> None:
    launch = stage.launch("true")
    stage.backend.start(launch)
    assert set(stage.backend.report(["job-unknown-1", launch.handle])) == {launch.handle}


def test_starting_again_starts_nothing_again(stage: Stage) -> None:
    launch = stage.launch(FOREVER, "true")
    stage.backend.start(launch)
    first = wait_for(stage.backend, launch.handle, lambda report: report.tasks[1].state.ended)
    stage.backend.start(launch)
    assert stage.backend.report([launch.handle])[launch.handle] == first


def test_a_stopped_task_ends_without_having_succeeded(stage: Stage) -> None:
    launch = stage.launch(FOREVER, FOREVER)
    stage.backend.start(launch)
    wait_for(stage.backend, launch.handle, started)
    stage.backend.stop(launch.handle)
    for task in wait_for(stage.backend, launch.handle, ended).tasks:
        assert task.state is TaskState.FAILED
        assert task.exit_code != 0


def test_a_stop_right_after_the_start_is_not_missed(stage: Stage) -> None:
    launch = stage.launch(FOREVER, FOREVER)
    stage.backend.start(launch)
    stage.backend.stop(launch.handle)
    states = {task.state for task in wait_for(stage.backend, launch.handle, ended).tasks}
    assert states == {TaskState.FAILED}


def test_stopping_again_or_what_is_not_there_changes_nothing(stage: Stage) -> None:
    launch = stage.launch("exit 2")
    stage.backend.start(launch)
    report = wait_for(stage.backend, launch.handle, ended)
    stage.backend.stop(launch.handle)
    stage.backend.stop(launch.handle)
    stage.backend.stop("job-unknown-1")
    assert stage.backend.report([launch.handle])[launch.handle] == report


def test_a_stopped_launch_is_not_started_again(stage: Stage) -> None:
    launch = stage.launch(FOREVER)
    stage.backend.start(launch)
    stage.backend.stop(launch.handle)
    report = wait_for(stage.backend, launch.handle, ended)
    stage.backend.start(launch)
    assert stage.backend.report([launch.handle])[launch.handle] == report


def test_a_cleaned_handle_is_unknown(stage: Stage) -> None:
    launch = stage.launch("true")
    stage.backend.start(launch)
    wait_for(stage.backend, launch.handle, ended)
    stage.backend.clean([launch.handle])
    stage.backend.clean([launch.handle, "job-unknown-1"])
    assert stage.backend.report([launch.handle]) == {}


def test_what_still_runs_is_not_cleaned(stage: Stage) -> None:
    launch = stage.launch(FOREVER)
    stage.backend.start(launch)
    wait_for(stage.backend, launch.handle, started)
    over = stage.launch("true")
    stage.backend.start(over)
    wait_for(stage.backend, over.handle, ended)
    with pytest.raises(ConflictError, match="has not ended"):
        stage.backend.clean([over.handle, launch.handle])
    report = stage.backend.report([over.handle, launch.handle])
    assert report[launch.handle].tasks[0].state is TaskState.RUNNING
    assert report[over.handle].ended


def test_on_a_taken_port_nothing_is_started(stage: Stage) -> None:
    port = stage.take_port()
    launch = stage.launch("true", "true", ports=[port + 1, port], address="127.0.0.1")
    if stage.capacity is None:
        stage.backend.start(launch)
        task = wait_for(stage.backend, launch.handle, ended).tasks[1]
        assert task.state is TaskState.LOST  # so another attempt follows, with other ports
        assert f"port {port}" in task.reason
        return
    with pytest.raises(BusyError, match=str(port)):
        stage.backend.start(launch)
    assert stage.backend.report([launch.handle]) == {}


def test_tasks_outlive_the_server_that_started_them(stage: Stage) -> None:
    runs, done = stage.launch(FOREVER), stage.launch("exit 6")
    stage.backend.start(runs)
    stage.backend.start(done)
    before = wait_for(stage.backend, runs.handle, started)
    stage.backend.close()
    backend = stage.reopen()
    assert wait_for(backend, done.handle, ended).tasks[0].exit_code == 6
    assert backend.report([runs.handle])[runs.handle] == before
    backend.stop(runs.handle)
    assert wait_for(backend, runs.handle, ended).tasks[0].state is TaskState.FAILED


@pytest.mark.parametrize("stage", ["local", "local-bare", "slurm"], indirect=True)
def test_trainers_find_their_shares_of_an_input(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "pfs/set").mkdir(parents=True)
    for number in range(5):
        (tmp_path / f"pfs/set/part-{number}").write_text(f"{number}\n")
    asked = Input(source="/pfs/dc/home/ann/set", target="in", deal=True, list="train.list")
    given = InputAt(input=asked, folder=tmp_path / "pfs", path="set")
    command = "cat train.list $(cat train.list)"
    launch = stage.launch(command, command, inputs=[given], ports=[0, 0])
    stage.backend.start(launch)
    report = wait_for(stage.backend, launch.handle, ended)
    assert {task.state for task in report.tasks} == {TaskState.SUCCEEDED}
    for rank in range(2):
        mine = range(rank, 5, 2)
        wanted = [*(f"./in/part-{number}" for number in mine), *map(str, mine)]
        assert (launch.results / "log" / f"trainer-{rank}.log").read_text().split() == wanted
