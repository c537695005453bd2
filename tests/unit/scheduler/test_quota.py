"""Which limits count for whom and where, and what is too much whatever else runs."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.model.job import JobSpec, Resources, RoleSpec
from paddlecloud.model.user import ALL_CLUSTERS, Quota
from paddlecloud.scheduler.quota import OPEN, Limit, Policy, Quotas, refusal

GPUS = Resources(cpus=4, memory_bytes=2**30, gpus=2)
CPUS = Resources(cpus=4, memory_bytes=2**30)
FREE = Policy(quota=Quota(running_jobs=2, instances=1), free=True)


def a_spec(instances: int = 1, *, pservers: int = 0, **changes: Any) -> JobSpec:
    trainers = RoleSpec(name="trainer", count=instances, command="train")
    beside = (RoleSpec(name="pserver", count=pservers, command="serve", min_succeeded=0),) if pservers else ()
    return JobSpec(roles=(trainers, *beside), **changes)


def on_cce(**limits: int) -> Limit:
    return Limit(user="ann", cluster="cce", quota=Quota(**limits))


@pytest.mark.parametrize(
    ("user", "cluster", "counts"),
    [
        ("bob", "cce", {"cce": FREE.quota}),
        ("bob", "bcc", {}),
        ("ann", "bcc", {"bcc": Quota(running_jobs=9), ALL_CLUSTERS: Quota(running_jobs=3)}),
        ("ann", "cce", {"cce": FREE.quota, ALL_CLUSTERS: Quota(running_jobs=3)}),
        ("eve", "cce", {}),
        ("bob", "unknown", {}),
    ],
)
def test_what_a_user_was_given_on_a_cluster_takes_the_place_of_what_it_gives_everybody(
    user: str, cluster: str, counts: dict[str, Quota]
) -> None:
    given = {"ann": {"bcc": Quota(running_jobs=9), ALL_CLUSTERS: Quota(running_jobs=3)}, "eve": {"cce": Quota()}}
    quotas = Quotas(policies={"cce": FREE, "bcc": OPEN}, given=given)
    assert {limit.cluster: limit.quota for limit in quotas.limits(user, cluster)} == counts
    assert {limit.cluster for limit in quotas.limits_anywhere("bob")} == {"cce"}
    assert {limit.cluster for limit in quotas.limits_anywhere("ann")} == {"cce", "bcc", ALL_CLUSTERS}


@pytest.mark.parametrize(
    ("spec", "limit", "says", "field"),
    [
        (a_spec(2), on_cce(instances=1), "instance_count 2 asked for, 1 allowed for one job of ann on cce", "roles"),
        (a_spec(), on_cce(instances=0), "instance_count 1 asked for, 0 allowed", "roles"),
        (
            a_spec(1, pservers=40),
            on_cce(instances=1),
            "40 pservers asked for, 1 allowed for one job of ann on cce: as many as it may have instances",
            "roles",
        ),
        (
            a_spec(wall_time_seconds=1860),
            on_cce(wall_time_seconds=1800),
            "wall_time 00:31:00 asked for, 00:30:00 allowed for one job of ann on cce",
            "wall_time_seconds",
        ),
        (a_spec(), on_cce(wall_time_seconds=0), "wall_time 00:00:00 allowed for one job of ann", "wall_time_seconds"),
        (a_spec(), on_cce(minutes_a_day=0), "no minutes of any day are given to ann on cce: ask an admin", None),
        (
            a_spec(3),
            Limit(user="ann", cluster=ALL_CLUSTERS, quota=Quota(instances=2)),
            "2 allowed for one job of ann on all clusters",
            "roles",
        ),
    ],
)
def test_too_much_for_one_job_is_refused_with_the_numbers(
    spec: JobSpec, limit: Limit, says: str, field: str | None
) -> None:
    refused = refusal(spec, OPEN, CPUS, [limit])
    assert refused is not None
    assert says in refused.message
    assert (refused.code, refused.field) == ("quota", field)


@pytest.mark.parametrize(
    ("spec", "limit"),
    [
        (a_spec(), on_cce(instances=1, wall_time_seconds=1800, minutes_a_day=1, running_jobs=0, waiting_jobs=0)),
        (a_spec(wall_time_seconds=1800), on_cce(wall_time_seconds=1800)),
        (a_spec(100, pservers=200, wall_time_seconds=10**6), on_cce()),
        (a_spec(2, pservers=2), on_cce(instances=2)),
        (a_spec(1, pservers=2), on_cce(instances=2)),
    ],
)
def test_a_job_within_the_limits_is_not_refused(spec: JobSpec, limit: Limit) -> None:
    assert refusal(spec, OPEN, CPUS, [limit]) is None


@pytest.mark.parametrize(
    ("asked", "cluster", "policy", "capacity", "refused"),
    [
        ("cpu", "cce", FREE, GPUS, True),
        ("cpu", "default", FREE, GPUS, True),
        ("cpu", "cce", FREE, None, True),
        ("cpu", "cce", FREE, CPUS, False),
        ("cpu", "bcc", FREE, GPUS, False),
        ("cpu", "cce", OPEN, GPUS, False),
        ("gpu", "cce", FREE, GPUS, False),
        (None, "cce", FREE, GPUS, False),
    ],
)
def test_the_free_policy_keeps_cpu_jobs_off_the_gpus_of_cce_and_default(
    asked: str | None, cluster: str, policy: Policy, capacity: Resources | None, refused: bool
) -> None:
    found = refusal(a_spec(job_type=asked, cluster=cluster), policy, capacity, [])
    assert (found is not None) is refused
    if found is not None:
        assert found.field == "job_type"
        assert f"job_type cpu is not possible with cluster {cluster}" in found.message
