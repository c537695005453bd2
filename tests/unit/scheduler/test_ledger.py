"""What users have: who waits for whom, what is left of the day and for how long a job may run on it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from paddlecloud.model.job import Job, JobSpec, Placement, RoleSpec
from paddlecloud.model.state import JobState
from paddlecloud.model.user import ALL_CLUSTERS, Quota
from paddlecloud.scheduler.ledger import Ledger
from paddlecloud.scheduler.quota import Policy, Quotas

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
MIDNIGHT = datetime(2026, 11, 16, tzinfo=UTC)


def a_job(minutes: float | None = 30, **changes: Any) -> Job:
    wall_time = None if minutes is None else int(minutes * 60)
    roles = (RoleSpec(name="trainer", count=1, command="train"),)
    spec = JobSpec(roles=roles, wall_time_seconds=wall_time)
    return replace(Job(id="job-" + "0" * 32, user="ann", spec=spec, created_at=NOW), **changes)


def placed(minutes: float | None = 30, *, ran: float = 0, cluster: str = "cce", **changes: Any) -> Job:
    """A job that has run for so many minutes."""
    changes = {"state": JobState.RUNNING, "running_since": NOW - ran * MINUTE, "attempt": 1} | changes
    return a_job(minutes, placement=Placement(cluster=cluster, tasks=()), **changes)


def a_ledger(*held: Job, used: float = 0, now: datetime = NOW, zone: str = "UTC", **limits: int) -> Ledger:
    """Ann's, who used so many minutes of today on cce, where these are the limits."""
    quotas = Quotas(
        zone=ZoneInfo(zone), policies={"cce": Policy(quota=Quota(**limits))}, used={"ann": {"cce": used * 60}}
    )
    return Ledger(quotas, held, now)


@pytest.mark.parametrize(
    ("ledger", "why"),
    [
        (a_ledger(), None),
        (a_ledger(running_jobs=1), None),
        (a_ledger(placed(), running_jobs=2), None),
        (a_ledger(placed(), placed(cluster="bcc"), running_jobs=2), None),
        (a_ledger(placed(), placed(user="bob"), running_jobs=2), None),
        (
            a_ledger(placed(30, ran=18), placed(), running_jobs=2),
            "quota: 2 of 2 jobs running for ann on cce; it starts when one ends (about 12 min)",
        ),
        (
            a_ledger(placed(30, ran=29.9), placed(), running_jobs=2),
            "quota: 2 of 2 jobs running for ann on cce; it starts when one ends (about 1 min)",
        ),
        (
            a_ledger(placed(30, ran=25), placed(30, ran=20), placed(30, ran=15), running_jobs=1),
            "quota: 3 of 1 jobs running for ann on cce; it starts when 3 end (about 15 min)",
        ),
        (
            a_ledger(placed(state=JobState.KILLING), running_jobs=1),
            "quota: 1 of 1 jobs running for ann on cce; it starts when one ends (about 1 min)",
        ),
        (a_ledger(running_jobs=0), "quota: 0 of 0 jobs running for ann on cce: ask an admin for more"),
        (a_ledger(used=99, minutes_a_day=100), None),
        (
            a_ledger(used=100, minutes_a_day=100),
            (
                "quota: 100 of 100 minutes used today (UTC) by ann on cce; "
                "it starts after midnight, at 2026-11-16T00:00+00:00"
            ),
        ),
        (
            a_ledger(used=100, minutes_a_day=100, zone="Asia/Shanghai"),
            (
                "quota: 100 of 100 minutes used today (Asia/Shanghai) by ann on cce; "
                "it starts after midnight, at 2026-11-16T00:00+08:00"
            ),
        ),
        (
            a_ledger(used=99.5, minutes_a_day=100),
            (
                "quota: 99 of 100 minutes used today (UTC) by ann on cce, and less than one is left; "
                "it starts after midnight, at 2026-11-16T00:00+00:00"
            ),
        ),
        (
            a_ledger(placed(30, ran=10), used=60, minutes_a_day=90),
            (
                "quota: 70 of 90 minutes used today (UTC) by ann on cce, and 20 kept for what runs; "
                "it starts when a job ends early, or after midnight, at 2026-11-16T00:00+00:00"
            ),
        ),
    ],
)
def test_a_job_waits_for_what_its_user_has_already(ledger: Ledger, why: str | None) -> None:
    assert ledger.standing("ann", "cce").why_not_now(a_job().spec) == why


def test_only_the_first_of_those_who_wait_is_told_about_when() -> None:
    ledger = a_ledger(placed(), running_jobs=1)
    assert "(about 30 min)" in (ledger.standing("ann", "cce").why_not_now(a_job().spec) or "")
    ledger.standing("ann", "cce").line_up()
    assert (
        ledger.standing("ann", "cce").why_not_now(a_job().spec)
        == "quota: 1 of 1 jobs running for ann on cce; others of theirs are before it"
    )


@pytest.mark.parametrize(
    ("job", "ledger", "seconds"),
    [
        (a_job(30), a_ledger(), None),
        (a_job(30), a_ledger(minutes_a_day=100), None),
        (a_job(30), a_ledger(used=70, minutes_a_day=100), None),
        (a_job(30), a_ledger(used=88, minutes_a_day=100), 12 * 60),
        (a_job(None), a_ledger(used=88, minutes_a_day=100), 12 * 60),
        (a_job(30), a_ledger(placed(30, ran=10), used=60, minutes_a_day=100), 10 * 60),
        (a_job(30), a_ledger(placed(30, ran=10, cluster="bcc"), used=60, minutes_a_day=100), None),
        (a_job(30), a_ledger(placed(30, state=JobState.SCHEDULE, running_since=None), minutes_a_day=40), 10 * 60),
        (a_job(30), a_ledger(placed(30, state=JobState.KILLING, ran=20), minutes_a_day=40), 20 * 60),
        (a_job(30), a_ledger(placed(1, state=JobState.KILLING, ran=20), minutes_a_day=40), 20 * 60),
        (a_job(30), a_ledger(placed(30, state=JobState.KILLING, running_since=None), minutes_a_day=20), 20 * 60),
    ],
)
def test_a_job_may_run_for_what_is_left_of_the_day_after_what_runs(job: Job, ledger: Ledger, seconds: int) -> None:
    assert ledger.standing("ann", "cce").why_not_now(job.spec) is None
    assert ledger.standing("ann", "cce").clip(job.spec) == seconds


def test_of_a_job_that_was_shortened_itself_only_that_is_kept() -> None:
    short = placed(30, ran=1)
    short = replace(short, placement=Placement(cluster="cce", tasks=(), wall_time_seconds=300))
    assert a_ledger(short, minutes_a_day=20).standing("ann", "cce").clip(a_job(30).spec) == 15 * 60


def test_a_job_with_less_than_a_minute_left_waits_unless_it_asks_for_less() -> None:
    assert a_ledger(used=99, minutes_a_day=100).standing("ann", "cce").clip(a_job(30).spec) == 60
    nearly = a_ledger(used=99.2, minutes_a_day=100)
    assert nearly.standing("ann", "cce").why_not_now(a_job(30).spec) is not None
    assert nearly.standing("ann", "cce").why_not_now(a_job(0.5).spec) is None
    assert nearly.standing("ann", "cce").clip(a_job(0.5).spec) is None


def test_only_the_part_of_today_of_what_runs_counts_and_is_kept() -> None:
    late, early = MIDNIGHT - 10 * MINUTE, MIDNIGHT + 10 * MINUTE
    crossing = replace(placed(60), running_since=MIDNIGHT - 30 * MINUTE)
    before = a_ledger(crossing, now=late, minutes_a_day=100).standing("ann", "cce").tallies[0]
    assert (before.used, before.kept) == (20 * 60, 10 * 60)
    after = a_ledger(crossing, now=early, minutes_a_day=100).standing("ann", "cce").tallies[0]
    assert (after.used, after.kept) == (10 * 60, 20 * 60)


def test_the_quota_on_all_clusters_counts_over_all_of_them_beside_the_clusters_own() -> None:
    overall = Quota(running_jobs=2, minutes_a_day=50)
    used = {"ann": {"cce": 20 * 60.0, "bcc": 10 * 60.0, "gone": 5 * 60.0}}
    quotas = Quotas(policies={"cce": Policy(quota=Quota(minutes_a_day=30))}, given={"ann": {"": overall}}, used=used)
    ledger = Ledger(quotas, [], NOW)
    assert ledger.standing("ann", "cce").clip(a_job(60).spec) == 10 * 60
    assert ledger.standing("ann", "bcc").clip(a_job(60).spec) == 15 * 60
    ledger.standing("ann", "cce").start(NOW, 5 * MINUTE)
    assert ledger.standing("ann", "bcc").clip(a_job(60).spec) == 10 * 60
    ledger.standing("ann", "bcc").start(NOW, 1 * MINUTE)
    assert "2 of 2 jobs running for ann on all clusters" in (
        ledger.standing("ann", "bcc").why_not_now(a_job().spec) or ""
    )


@pytest.mark.parametrize(
    ("ledger", "at"),
    [
        (a_ledger(), NOW),
        (a_ledger(placed(30, ran=18), placed(), running_jobs=2), NOW + 12 * MINUTE),
        (a_ledger(placed(30, ran=18), placed(), running_jobs=1), NOW + 30 * MINUTE),
        (a_ledger(used=100, minutes_a_day=100), MIDNIGHT),
        (a_ledger(placed(), used=80, minutes_a_day=100, running_jobs=1), MIDNIGHT),
        (a_ledger(running_jobs=0), None),
    ],
)
def test_it_is_told_when_the_limits_let_a_job_start(ledger: Ledger, at: datetime | None) -> None:
    assert ledger.standing("ann", "cce").free_at(a_job().spec) == at


def test_each_job_that_starts_pushes_the_next_one_back() -> None:
    ledger = a_ledger(placed(10), placed(20), running_jobs=2)
    starts = []
    for _ in range(4):
        at = ledger.standing("ann", "cce").free_at(a_job().spec)
        assert at is not None
        ledger.standing("ann", "cce").start(at, 30 * MINUTE)
        starts.append((at - NOW) / MINUTE)
    assert starts == [10, 20, 40, 50]


spans = st.tuples(st.integers(1, 90), st.integers(0, 90), st.sampled_from(["cce", "bcc"]))


@given(running=st.lists(spans, max_size=5), asked=st.lists(st.integers(1, 90), max_size=8), minutes=st.integers(1, 200))
def test_whatever_is_placed_takes_no_more_minutes_of_the_day_than_there_are(
    running: list[tuple[int, int, str]], asked: list[int], minutes: int
) -> None:
    held = [placed(limit, ran=min(ran, limit), cluster=cluster) for limit, ran, cluster in running]
    ledger = a_ledger(*held, minutes_a_day=minutes)
    before = sum(limit for limit, _, cluster in running if cluster == "cce")
    taken = 0.0
    for limit in asked:
        job = a_job(limit)
        if ledger.standing("ann", "cce").why_not_now(job.spec) is None:
            clip = ledger.standing("ann", "cce").clip(job.spec)
            seconds = limit * 60 if clip is None else clip
            assert 60 <= seconds <= limit * 60
            ledger.standing("ann", "cce").start(NOW, timedelta(seconds=seconds))
            taken += seconds / 60
    assert taken <= max(0, minutes - before)


def test_who_has_no_limits_is_not_counted() -> None:
    ledger = Ledger(Quotas(given={"bob": {ALL_CLUSTERS: Quota(running_jobs=1)}}), [placed()], NOW)
    assert ledger.standing("ann", "cce").tallies == ()
    assert len(ledger.standing("bob", "cce").tallies) == 1
