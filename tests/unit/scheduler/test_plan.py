"""Turn-taking: who is placed, who waits and why, and about when."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from paddlecloud.model.job import Job, JobSpec, Placement, Resources, RoleSpec, total
from paddlecloud.model.state import JobState
from paddlecloud.model.user import ALL_CLUSTERS, Quota
from paddlecloud.scheduler import places
from paddlecloud.scheduler.plan import Plan, Snapshot, describe, forecast, order, plan
from paddlecloud.scheduler.quota import Policy, Quotas

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
GIB = 2**30
MACHINE = Resources(cpus=4, memory_bytes=16 * GIB, gpus=2)
CPU_ONLY = replace(MACHINE, gpus=0)


def a_job(number: int, cpus: float = 1, *, minutes: int | None = 30, count: int = 1, **changes: Any) -> Job:
    resources = Resources(cpus=cpus, memory_bytes=GIB)
    spec = JobSpec(
        roles=(RoleSpec(name="trainer", count=count, command="train", resources=resources),),
        wall_time_seconds=None if minutes is None else minutes * 60,
        cluster=changes.pop("cluster", "local"),
        priority=changes.pop("priority", 0),
    )
    created = NOW + timedelta(seconds=number - 1000)
    return replace(Job(id=f"job-{number:032x}", user="ann", spec=spec, created_at=created), **changes)


def running(job: Job, cluster: str = "local", since: datetime = NOW) -> Job:
    placement = places.place(job, cluster, places.requests(job.spec, MACHINE), [], 2)
    return replace(job, state=JobState.RUNNING, placement=placement, running_since=since, attempt=1)


def decide(waiting: list[Job], placed: Sequence[Job] = (), **changes: Any) -> Plan:
    return plan(a_snapshot(waiting, placed, **changes))


def a_snapshot(waiting: list[Job], placed: Sequence[Job] = (), **changes: Any) -> Snapshot:
    snapshot = Snapshot(now=NOW, waiting=waiting, placed=placed, clusters={"local": CPU_ONLY}, default=("local",))
    return dataclasses.replace(snapshot, **changes)


def placed_ids(decided: Plan) -> list[int]:
    return [int(job.id[4:], 16) for job, _ in decided.placements]


def test_the_turn_is_priority_then_time_of_submission() -> None:
    jobs = [a_job(3), a_job(1), a_job(2, priority=5)]
    assert [int(job.id[4:], 16) for job in order(jobs, {})] == [2, 1, 3]


def test_jobs_are_placed_while_there_is_room_and_the_rest_is_told_why() -> None:
    decided = decide([a_job(number) for number in range(1, 7)])
    assert placed_ids(decided) == [1, 2, 3, 4]
    assert decided.reasons[a_job(5).id] == (
        "needs 1 CPU and 1.0 GiB; free on local: 0 CPUs and 12.0 GiB of 4 CPUs and 16.0 GiB"
    )


def test_a_gang_is_placed_whole_or_not_at_all() -> None:
    decided = decide([a_job(1, cpus=1, count=3)], [running(a_job(0, cpus=2))])
    assert not decided.placements
    decided = decide([a_job(1, cpus=1, count=2)], [running(a_job(0, cpus=2))])
    assert len(decided.placements[0][1].tasks) == 2


def test_small_jobs_pass_a_large_one_that_they_cannot_delay() -> None:
    until_one = running(a_job(0, cpus=2, minutes=60))
    large, short, long = a_job(1, cpus=4), a_job(2, cpus=1, minutes=30), a_job(3, cpus=1, minutes=120)
    decided = decide([large, short, long], [until_one])
    assert placed_ids(decided) == [2]
    assert decided.reasons[long.id] == f"the room it needs on local is kept for {large.id}, which is before it"


def test_a_job_that_fits_beside_the_reservation_may_outlast_it() -> None:
    decided = decide([a_job(1, cpus=3), a_job(2, cpus=1, minutes=None)], [running(a_job(0, cpus=2, minutes=60))])
    assert placed_ids(decided) == [2]


def test_a_large_job_is_not_starved_by_an_endless_stream_of_small_ones() -> None:
    now, placed, number = NOW, [running(a_job(0, cpus=2, minutes=10))], 10
    large = a_job(1, cpus=4)
    for _ in range(60):
        waiting = [large] + [a_job(number + extra, minutes=10) for extra in range(4)]
        number += 4
        decided = decide(waiting, placed, now=now)
        if large.id in {job.id for job, _ in decided.placements}:
            return
        placed += [
            replace(job, state=JobState.RUNNING, placement=placement, running_since=now, attempt=1)
            for job, placement in decided.placements
        ]
        now += timedelta(minutes=1)
        placed = [job for job in placed if job.running_since and job.running_since + timedelta(minutes=10) > now]
    pytest.fail("the large job never had its turn")


def test_a_user_over_the_running_limit_waits_and_holds_up_nobody() -> None:
    other = a_job(3, user="bob")
    decided = decide([a_job(1), a_job(2), other], quotas=Quotas(given={"ann": {ALL_CLUSTERS: Quota(running_jobs=1)}}))
    assert placed_ids(decided) == [1, 3]
    assert decided.reasons[a_job(2).id].startswith("quota: 1 of 1 jobs running for ann")


def test_only_the_first_job_over_the_running_limit_is_told_that_it_is_next() -> None:
    quotas = Quotas(policies={"local": Policy(quota=Quota(running_jobs=1))})
    decided = decide([a_job(1), a_job(2), a_job(3)], quotas=quotas)
    assert [why.partition("; ")[2] for why in decided.reasons.values()] == [
        "it starts when one ends (about 30 min)",
        "others of theirs are before it",
    ]


def test_what_a_job_is_told_of_the_room_is_as_of_its_turn() -> None:
    waiting = [a_job(1, cpus=3), a_job(2, cpus=1, minutes=5), a_job(3, cpus=3)]
    decided = decide(waiting, [running(a_job(0, cpus=2))])
    assert placed_ids(decided) == [2]
    assert "free on local: 2 CPUs" in decided.reasons[a_job(1).id]
    assert "free on local: 1 CPU and" in decided.reasons[a_job(3).id]


def test_a_job_is_placed_for_what_is_left_of_its_users_day_and_the_next_one_waits() -> None:
    quotas = Quotas(policies={"local": Policy(quota=Quota(minutes_a_day=50))}, used={"ann": {"local": 600.0}})
    decided = decide([a_job(1), a_job(2), a_job(3), a_job(4, user="bob")], quotas=quotas)
    assert [placement.wall_time_seconds for _, placement in decided.placements] == [None, 600, None]
    assert placed_ids(decided) == [1, 2, 4]
    assert decided.reasons[a_job(3).id].startswith(
        "quota: 10 of 50 minutes used today (UTC) by ann on local, and 40 kept for what runs"
    )


def test_a_job_that_was_shortened_may_pass_a_large_one_that_it_would_have_delayed() -> None:
    quotas = Quotas(given={"bob": {"local": Quota(minutes_a_day=20)}})
    waiting = [a_job(1, cpus=4), a_job(2, user="bob")]
    decided = decide(waiting, [running(a_job(0, cpus=2, minutes=25))], quotas=quotas)
    assert placed_ids(decided) == [2]


def test_default_goes_on_to_the_next_cluster_where_the_first_is_over_its_users_quota() -> None:
    two = {"first": CPU_ONLY, "second": CPU_ONLY}
    quotas = Quotas(policies={"first": Policy(quota=Quota(running_jobs=1, instances=1))})
    jobs = [a_job(number, cluster="default") for number in (1, 2)] + [a_job(3, cluster="default", count=2)]
    decided = decide(jobs, clusters=two, default=("first", "second"), quotas=quotas)
    assert [placement.cluster for _, placement in decided.placements] == ["first", "second", "second"]
    decided = decide(
        [*jobs, a_job(4, cpus=2, cluster="default")], clusters=two, default=("first", "second"), quotas=quotas
    )
    assert decided.reasons[a_job(4).id] == (
        "quota: 1 of 1 jobs running for ann on first; it starts when one ends (about 30 min); "
        "needs 2 CPUs and 1.0 GiB; free on second: 1 CPU and 13.0 GiB of 4 CPUs and 16.0 GiB"
    )


def test_a_job_that_no_cluster_takes_any_more_waits_and_says_what_is_too_much() -> None:
    quotas = Quotas(given={"ann": {"local": Quota(instances=1)}})
    decided = decide([a_job(1, count=2)], quotas=quotas)
    assert decided.reasons[a_job(1).id] == (
        "quota: instance_count 2 asked for, 1 allowed for one job of ann on local: ask for --nodes 1"
    )


def test_a_limit_that_several_clusters_share_is_told_once() -> None:
    two = {"first": CPU_ONLY, "second": CPU_ONLY}
    quotas = Quotas(given={"ann": {ALL_CLUSTERS: Quota(running_jobs=0)}})
    decided = decide([a_job(1, cluster="default")], clusters=two, default=("first", "second"), quotas=quotas)
    assert list(decided.reasons.values()) == [
        "quota: 0 of 0 jobs running for ann on all clusters: ask an admin for more"
    ]


def test_default_tries_its_clusters_in_order() -> None:
    two = {"first": CPU_ONLY, "second": CPU_ONLY}
    jobs = [a_job(1, cpus=4, cluster="default"), a_job(2, cpus=4, cluster="default")]
    decided = decide(jobs, clusters=two, default=("first", "second"))
    assert [placement.cluster for _, placement in decided.placements] == ["first", "second"]


def test_jobs_on_two_clusters_share_no_port_and_no_address() -> None:
    """They may be one machine."""
    two = {"first": CPU_ONLY, "second": CPU_ONLY}
    job = a_job(1, count=4, cluster="first")
    decided = decide([job, replace(a_job(1, count=4, cluster="second"), id=job.id)], clusters=two)
    tasks = [task for _, placement in decided.placements for task in placement.tasks]
    assert len({task.address for task in tasks}) == len({task.ports for task in tasks}) == 8


def test_a_cluster_that_does_not_answer_places_nothing_and_says_so() -> None:
    decided = decide([a_job(1)], clusters={})
    assert decided.reasons == {a_job(1).id: "cluster local does not answer"}


def test_a_cluster_with_its_own_queue_takes_everything() -> None:
    decided = decide([a_job(1, cpus=64)], clusters={"local": None})
    assert decided.placements[0][1].tasks[0].address is None


def test_without_resources_a_task_asks_for_a_cpu_or_a_share_that_fits() -> None:
    def cpus(count: int) -> list[float]:
        spec = JobSpec(roles=(RoleSpec(name="trainer", count=count, command="x"),))
        return [task.resources.cpus for task in places.requests(spec, CPU_ONLY)]

    assert cpus(1) == [1.0]
    assert cpus(4) == [1.0] * 4
    assert cpus(8) == [0.5] * 8


def test_amounts_that_are_not_asked_for_follow_from_those_that_are() -> None:
    def request(asked: Resources) -> Resources:
        spec = JobSpec(roles=(RoleSpec(name="trainer", count=1, command="x", resources=asked),))
        return places.requests(spec, MACHINE)[0].resources

    assert request(Resources(cpus=2)) == Resources(cpus=2, memory_bytes=8 * GIB)
    assert request(Resources(gpus=1)) == Resources(cpus=1, memory_bytes=4 * GIB, gpus=1)
    assert request(Resources(memory_bytes=GIB)) == Resources(cpus=1, memory_bytes=GIB)


def test_only_cpus_that_were_asked_for_are_a_limit() -> None:
    def limited(asked: Resources | None) -> bool:
        spec = JobSpec(roles=(RoleSpec(name="trainer", count=1, command="x", resources=asked),))
        return places.requests(spec, MACHINE)[0].cpu_limit

    assert [limited(None), limited(Resources(gpus=1)), limited(Resources(cpus=1))] == [False, False, True]


def test_a_trainer_of_a_gpu_job_gets_a_gpu_of_its_own_and_a_pserver_none() -> None:
    roles = (RoleSpec(name="trainer", count=2, command="x"), RoleSpec(name="pserver", count=2, command="x"))
    job = replace(a_job(1), spec=JobSpec(roles=roles))
    placement = places.place(job, "local", places.requests(job.spec, MACHINE), [], 2)
    assert [task.gpus for task in placement.tasks] == [(0,), (1,), (), ()]


def test_the_forecast_counts_the_places_ahead_and_the_time() -> None:
    seen = forecast(a_snapshot([a_job(1, cpus=4, minutes=20), a_job(2, cpus=4)], [running(a_job(0, minutes=10))]))
    first, second = seen[a_job(1).id], seen[a_job(2).id]
    assert (first.position, first.about_at) == (1, NOW + timedelta(minutes=10))
    assert (second.position, second.about_at) == (2, NOW + timedelta(minutes=30))


def test_behind_a_job_without_a_limit_no_time_is_told() -> None:
    limited = Quotas(given={"ann": {"local": Quota(running_jobs=1)}})
    waiting, endless = a_job(2, cpus=4), running(a_job(1, minutes=None))
    assert forecast(a_snapshot([waiting], [endless]))[waiting.id].about_at is None
    assert forecast(a_snapshot([waiting], [endless], quotas=limited))[waiting.id].about_at is None
    reason = decide([waiting], [endless], quotas=limited).reasons[waiting.id]
    assert reason == "quota: 1 of 1 jobs running for ann on local; it starts when one ends"


def test_the_forecast_knows_what_users_wait_for() -> None:
    quotas = Quotas(
        policies={"local": Policy(quota=Quota(running_jobs=1))},
        given={"bob": {"local": Quota(minutes_a_day=10)}},
        used={"bob": {"local": 600.0}},
    )
    waiting = [a_job(1), a_job(2), a_job(3, user="bob"), a_job(4, user="eve")]
    seen = forecast(a_snapshot(waiting, [running(a_job(0, minutes=10))], quotas=quotas))
    minutes = [(about.about_at - NOW) / timedelta(minutes=1) for about in seen.values() if about.about_at]
    assert minutes == [10, 40, 12 * 60, 0]


def test_the_forecast_of_default_is_of_the_cluster_where_its_users_limits_let_it_start_soonest() -> None:
    two = {"first": CPU_ONLY, "second": CPU_ONLY}
    quotas = Quotas(policies={"first": Policy(quota=Quota(running_jobs=0)), "second": Policy(quota=Quota(instances=1))})
    jobs = [a_job(1, cluster="default"), a_job(2, cluster="default", count=2)]
    seen = forecast(a_snapshot(jobs, clusters=two, default=("first", "second"), quotas=quotas))
    assert [about.about_at for about in seen.values()] == [NOW, None]


def test_amounts_are_said_in_words() -> None:
    assert describe(MACHINE) == "4 CPUs, 16.0 GiB and 2 GPUs"


jobs = st.lists(
    st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(0, 2), st.sampled_from([5, 60, None])), max_size=12
)


@given(jobs)
def test_no_plan_gives_out_more_than_there_is_nor_anything_twice(asked: list[tuple[int, int, int, int | None]]) -> None:
    waiting = [
        a_job(number, cpus, count=count, priority=priority, minutes=minutes)
        for number, (cpus, count, priority, minutes) in enumerate(asked)
    ]
    decided = decide(waiting)
    made: list[Placement] = [placement for _, placement in decided.placements]
    tasks = [task for placement in made for task in placement.tasks]
    assert total(placement.resources for placement in made).fits(CPU_ONLY)
    ports = [port for task in tasks for port in task.ports]
    assert len(ports) == len(set(ports))
    assert len({task.address for task in tasks}) == len(tasks)
    assert {job.id for job, _ in decided.placements} | set(decided.reasons) == {job.id for job in waiting}
