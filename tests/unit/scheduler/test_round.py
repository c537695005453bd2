"""Rounds over the real store and a backend that does what the walk wants: whatever happens, the rules hold."""

from __future__ import annotations

import errno
import itertools
import os
import tempfile
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from paddlecloud.backends.base import BusyError, Launch, RefusedError
from paddlecloud.model import lifecycle, paths
from paddlecloud.model.clock import STEADY, Jump, Jumps
from paddlecloud.model.errors import UnreachableError
from paddlecloud.model.job import Job, JobSpec, Resources, RoleSpec
from paddlecloud.model.state import MOVES, JobState
from paddlecloud.scheduler.quota import Quotas
from paddlecloud.scheduler.round import Folders, Limits, Round
from paddlecloud.store.db import Database
from paddlecloud.store.jobs import Jobs
from tests.fakes import FakeBackend
from tests.migrated import migrated
from tests.postgres import Postgres

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)


class World:
    """A store, a cluster and a scheduler that may crash between any two rounds."""

    def __init__(self, folder: Path, backend: FakeBackend | None = None, *, url: str = "") -> None:
        self.database = Database.open(url or migrated(folder / "records.db"))
        self.jobs = Jobs(self.database)
        self.now = NOW
        self.backend = backend or FakeBackend(Resources(cpus=4, memory_bytes=2**34), clock=lambda: self.now)
        self.quotas = Quotas()
        self.jumps = STEADY
        self.folder = folder
        self.restart()

    def restart(self) -> None:
        self.round = Round(
            jobs=self.jobs,
            quotas=lambda now, users: self.quotas,
            clusters={"local": self.backend},
            default=("local",),
            folders=Folders(tree=lambda user, tree: self.folder, results=lambda job: self.folder),
            limits=Limits(schedule=timedelta(hours=2), attempts=3),
            jumps=lambda _: self.jumps,
        )

    def submit(self, number: int, trainers: int = 1, pservers: int = 0) -> Job:
        roles = [RoleSpec(name="trainer", count=trainers, command="x", resources=Resources(cpus=1))]
        if pservers:
            server = RoleSpec(name="pserver", count=pservers, command="x", resources=Resources(cpus=1), min_succeeded=0)
            roles.append(server)
        spec = JobSpec(roles=tuple(roles), wall_time_seconds=600)
        job = Job(id=paths.job_id(number.to_bytes(16, "big")), user="ann", spec=spec, created_at=self.now)
        return self.jobs.add(job, group="g")

    def run(self, rounds: int = 1) -> None:
        for _ in range(rounds):
            self.round.run(self.now)

    def state(self, job: Job) -> JobState:
        return self.jobs.get(job.id).state

    def walked(self, job: Job) -> list[str]:
        return [row.to_state.value for row in self.jobs.history(job.id)]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_job_walks_from_submit_to_success(world: World) -> None:
    job = world.submit(1)
    world.run(2)
    world.backend.end(f"{job.id}-1", "trainer-0", exit_code=0)
    world.run()
    assert world.walked(job) == ["submit", "schedule", "running", "success"]
    assert world.backend.held == {}


def test_a_job_without_room_says_why_and_starts_when_there_is(world: World) -> None:
    large, small = world.submit(1, trainers=4), world.submit(2)
    world.run(2)
    assert "needs 1 CPU" in world.jobs.get(small.id).queue_reason
    for task in range(4):
        world.backend.end(f"{large.id}-1", f"trainer-{task}", exit_code=0)
    world.run(2)
    assert world.state(small) is JobState.RUNNING
    assert world.jobs.get(small.id).queue_reason == ""


def test_a_cluster_that_does_not_answer_changes_nothing(world: World) -> None:
    job = world.submit(1)
    world.run(2)
    world.backend.reachable = False
    world.run(3)
    assert world.state(job) is JobState.RUNNING


def test_a_lost_job_is_started_again_under_another_handle(world: World) -> None:
    job = world.submit(1)
    world.run(2)
    world.backend.lose(f"{job.id}-1")
    world.run(3)
    assert world.state(job) is JobState.RUNNING
    assert world.backend.starts == [f"{job.id}-1", f"{job.id}-2"]


def test_a_backend_that_answers_and_holds_nothing_has_lost_the_job(world: World) -> None:
    job = world.submit(1)
    world.run(2)
    world.backend.forget(f"{job.id}-1")
    world.run()
    assert world.walked(job)[-2:] == ["queue", "schedule"]


def test_a_crash_after_the_start_and_before_the_next_look_starts_nothing_twice(world: World) -> None:
    job = world.submit(1)
    world.run()
    world.restart()
    world.run(2)
    assert world.backend.starts == [f"{job.id}-1"]


def test_a_job_that_is_slow_to_start_is_asked_for_again_after_a_while_and_not_in_every_round(tmp_path: Path) -> None:
    class Counting(FakeBackend):
        asked = 0

        def start(self, launch: Launch) -> None:
            self.asked += 1
            super().start(launch)

    backend = Counting(Resources(cpus=4, memory_bytes=2**34))
    backend.slow_to_start = True
    world = World(tmp_path, backend)
    job = world.submit(1)
    world.run(rounds=5)
    assert (world.state(job), backend.asked) == (JobState.SCHEDULE, 1)
    world.now += timedelta(seconds=1)
    world.run(rounds=5)
    assert backend.asked == 2


def test_a_round_that_has_lost_the_records_to_another_server_acts_on_nothing(world: World) -> None:
    class Lost(Jobs):
        def confirm(self) -> None:
            raise UnreachableError("another server has taken over")

    world.submit(1)
    world.jobs = Lost(world.database)
    world.restart()
    with pytest.raises(UnreachableError):
        world.run()
    assert world.backend.starts == []


@pytest.mark.parametrize(("error", "state"), [(RefusedError, JobState.FAILED), (BusyError, JobState.QUEUE)])
def test_what_a_backend_will_not_start_fails_or_is_placed_anew(
    tmp_path: Path, error: type[RefusedError | BusyError], state: JobState
) -> None:
    class Unwilling(FakeBackend):
        def start(self, launch: Launch) -> None:
            raise error("port 20000 is taken")

    world = World(tmp_path, Unwilling(Resources(cpus=4, memory_bytes=2**34)))
    job = world.submit(1)
    world.run()
    record = world.jobs.get(job.id)
    assert record.state is state
    assert "port 20000 is taken" in record.error + record.queue_reason


@pytest.mark.parametrize(
    ("number", "state"),
    [
        *((number, JobState.QUEUE) for number in (errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EIO, errno.ENOMEM)),
        (errno.EACCES, JobState.FAILED),
    ],
)
def test_what_can_pass_makes_a_job_wait_and_what_cannot_fails_it(tmp_path: Path, number: int, state: JobState) -> None:
    class Short(FakeBackend):
        problem: OSError | None = OSError(number, os.strerror(number), "/data/tasks")

        def start(self, launch: Launch) -> None:
            if self.problem is not None:
                raise self.problem
            super().start(launch)

    backend = Short(Resources(cpus=4, memory_bytes=2**34), clock=lambda: NOW + timedelta(minutes=5))
    world = World(tmp_path, backend)
    job = world.submit(1)
    world.run()
    record = world.jobs.get(job.id)
    assert record.state is state
    assert os.strerror(number) in record.error + record.queue_reason
    backend.problem = None
    world.now += timedelta(minutes=5)
    world.run(2)
    assert world.state(job) is (JobState.RUNNING if state is JobState.QUEUE else JobState.FAILED)


def test_a_clock_that_is_set_ahead_ends_no_job_by_its_wall_time_or_in_the_queue(world: World) -> None:
    running, waiting = world.submit(1, trainers=4), world.submit(2)
    world.run(2)
    world.now += timedelta(minutes=9)
    world.run()
    for by in (timedelta(hours=2), -timedelta(hours=2), timedelta(hours=2)):
        world.now += by
        world.jumps = Jumps((*world.jumps.all, Jump(world.now, by)))
        world.run()
        assert [world.state(job) for job in (running, waiting)] == [JobState.RUNNING, JobState.QUEUE]
    world.now += timedelta(minutes=2)
    world.run()
    assert world.state(running) is JobState.KILLING, "its own ten minutes are over"


def test_a_job_that_cannot_be_started_as_placed_is_tried_again_after_a_growing_pause(world: World) -> None:
    world.backend.taken_ports = set(range(20_000, 32_000))
    job = world.submit(1)
    for _ in range(60):
        world.run()
        world.now += timedelta(seconds=1)
    assert world.jobs.get(job.id).attempt == 5
    world.backend.taken_ports = set()
    world.now += timedelta(minutes=5)
    world.run(2)
    assert world.state(job) is JobState.RUNNING


class AnythingMayHappen(RuleBasedStateMachine):
    """Jobs come, end, are killed and lost, clusters fall silent, the server crashes, time passes."""

    postgres: Postgres | None = None  # None: SQLite

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        folder = self.stack.enter_context(tempfile.TemporaryDirectory())
        url = self.stack.enter_context(self.postgres.emptied()) if self.postgres else ""
        self.world = World(Path(folder), url=url)
        self.stack.callback(self.world.database.close)
        self.submitted: list[Job] = []
        self.forgotten: list[str] = []

    def teardown(self) -> None:
        self.stack.close()

    @precondition(lambda self: len(self.submitted) < 8)
    @rule(trainers=st.integers(1, 4), pservers=st.integers(0, 2))
    def submit(self, trainers: int, pservers: int) -> None:
        self.submitted.append(self.world.submit(len(self.submitted) + 1, trainers, min(pservers, 4 - trainers)))

    @rule()
    def look(self) -> None:
        self.world.run()

    @rule(minutes=st.sampled_from([0, 1, 11, 121]))
    def time_passes(self, minutes: int) -> None:
        self.world.now += timedelta(minutes=minutes)

    @rule(data=st.data(), exit_code=st.sampled_from([0, 0, 0, 3]))
    def a_task_ends(self, data: st.DataObject, exit_code: int) -> None:
        if held := sorted(self.world.backend.held):
            handle = data.draw(st.sampled_from(held))
            task = data.draw(st.sampled_from(sorted(self.world.backend.held[handle])))
            self.world.backend.end(handle, task, exit_code=exit_code)

    @rule(data=st.data())
    def a_node_is_lost(self, data: st.DataObject) -> None:
        if held := sorted(self.world.backend.held):
            self.world.backend.lose(data.draw(st.sampled_from(held)))

    @rule(data=st.data())
    def a_cluster_is_set_up_anew(self, data: st.DataObject) -> None:
        if held := sorted(self.world.backend.held):
            handle = data.draw(st.sampled_from(held))
            self.world.backend.forget(handle)
            self.forgotten.append(handle)

    @rule(slow=st.booleans())
    def tasks_take_their_time_to_start_and_stop(self, slow: bool) -> None:
        backend = self.world.backend
        backend.slow_to_start = backend.slow_to_stop = slow
        for handle in backend.held:
            backend.begin(handle)

    @precondition(lambda self: self.submitted)
    @rule(data=st.data())
    def a_user_kills(self, data: st.DataObject) -> None:
        job = self.world.jobs.get(data.draw(st.sampled_from(self.submitted)).id)
        if not job.state.final and (move := lifecycle.kill(job, self.world.now, by="ann")):
            self.world.jobs.move(job, move)

    @rule(reachable=st.booleans())
    def the_cluster_answers_or_not(self, reachable: bool) -> None:
        self.world.backend.reachable = reachable

    @rule()
    def the_server_crashes(self) -> None:
        self.world.restart()

    @invariant()
    def nothing_runs_for_a_job_that_has_ended_or_waits(self) -> None:
        for job in map(self.world.jobs.get, [job.id for job in self.submitted]):
            if not job.state.held:
                for attempt in range(1, job.attempt + 1):
                    assert not self.world.backend.running(paths.handle(job.id, attempt))

    @invariant()
    def every_step_of_the_history_is_in_the_table(self) -> None:
        for job in self.submitted:
            rows = self.world.jobs.history(job.id)
            for before, after in itertools.pairwise(rows):
                assert after.from_state is before.to_state
                assert after.to_state in MOVES[before.to_state]
            assert rows[-1].to_state is self.world.state(job)

    @invariant()
    def no_handle_was_started_twice(self) -> None:
        starts = list(self.world.backend.starts)
        for handle in self.forgotten:
            starts.remove(handle)
        assert len(starts) == len(set(starts))


@pytest.mark.parametrize(("kind", "examples"), [("sqlite", 40), ("postgres", 10)])
def test_whatever_happens_the_rules_hold(request: pytest.FixtureRequest, kind: str, examples: int) -> None:
    class Here(AnythingMayHappen):
        postgres = request.getfixturevalue("postgres") if kind == "postgres" else None

    run_state_machine_as_test(
        Here,
        settings=settings(
            max_examples=examples, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
