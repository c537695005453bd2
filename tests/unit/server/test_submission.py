"""Every rule of submission: what is refused and with which field, and what is filled in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from paddlecloud.model.errors import InvalidError, QuotaError, UnsupportedError
from paddlecloud.model.job import JobSpec, Resources, RoleSpec
from paddlecloud.model.user import Quota
from paddlecloud.server.submission import Limits, Offer, accept, check_shape

LIMITS = Limits(tasks=100, wall_time_seconds=1800)
CPUS = Offer(name="local", free_policy=False, capacity=Resources(cpus=4, memory_bytes=2**33))
GPUS = Offer(name="gpus", free_policy=False, capacity=Resources(cpus=4, memory_bytes=2**33, gpus=2))
FREE = replace(CPUS, name="cce", free_policy=True)
FREE_GPUS = replace(GPUS, name="cce", free_policy=True)
SILENT = Offer(name="slurm", free_policy=False, capacity=None)


def role(**changes: Any) -> RoleSpec:
    return RoleSpec(**{"name": "trainer", "count": 1, "command": "true", **changes})


def spec(*roles: RoleSpec, **changes: Any) -> JobSpec:
    return JobSpec(roles=roles or (role(),), **changes)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (JobSpec(roles=()), "roles"),
        (spec(role(count=0)), "roles[0].count"),
        (spec(role(count=-1)), "roles[0].count"),
        (spec(role(count=101)), "roles"),
        (spec(role(), role()), "roles[1].name"),
        (spec(role(name="../x")), "roles[0].name"),
        (spec(role(name="Trainer")), "roles[0].name"),
        (spec(role(name="")), "roles[0].name"),
        (spec(role(name="a\n")), "roles[0].name"),
        (spec(role(name="x" * 41)), "roles[0].name"),
        (spec(role(command="")), "roles[0].command"),
        (spec(role(command=" \n")), "roles[0].command"),
        (spec(role(command="a\0b")), "roles[0].command"),
        (spec(role(command="\ud800")), "roles[0].command"),
        (spec(role(command="x" * 100_001)), "roles[0].command"),
        (spec(role(min_failed=0)), "roles[0].min_failed"),
        (spec(role(min_failed=2)), "roles[0].min_failed"),
        (spec(role(min_succeeded=2)), "roles[0].min_succeeded"),
        (spec(role(min_succeeded=-1)), "roles[0].min_succeeded"),
        (spec(role(min_succeeded=0)), "roles"),
        (spec(role(resources=Resources())), "roles[0].resources"),
        (spec(role(resources=Resources(cpus=float("nan")))), "roles[0].resources.cpus"),
        (spec(role(resources=Resources(cpus=float("inf")))), "roles[0].resources.cpus"),
        (spec(role(resources=Resources(cpus=-1.0))), "roles[0].resources.cpus"),
        (spec(role(resources=Resources(memory_bytes=-1))), "roles[0].resources.memory_bytes"),
        (spec(role(resources=Resources(memory_bytes=2**70))), "roles[0].resources.memory_bytes"),
        (spec(role(resources=Resources(gpus=-1))), "roles[0].resources.gpus"),
        (spec(name=""), "name"),
        (spec(name="a\0b"), "name"),
        (spec(name="a\nb"), "name"),
        (spec(name="\ud800"), "name"),
        (spec(name="x" * 201), "name"),
        (spec(env={"A=B": "x"}), "env"),
        (spec(env={"": "x"}), "env"),
        (spec(env={"1A": "x"}), "env"),
        (spec(env={"A\n": "x"}), "env"),
        (spec(env={"A": "x\0y"}), "env.A"),
        (spec(wall_time_seconds=0), "wall_time_seconds"),
        (spec(wall_time_seconds=-5), "wall_time_seconds"),
        (spec(wall_time_seconds=10**12), "wall_time_seconds"),
        (spec(priority=1001), "priority"),
        (spec(priority=-(10**30)), "priority"),
        (spec(job_type="tpu"), "job_type"),
        (spec(role(resources=Resources(gpus=1)), job_type="cpu"), "job_type"),
        (spec(distribute="MPI"), "distribute"),
        (spec(distribute="PSERVER"), "distribute"),
        (spec(bos_url="b.bj.bcebos.com/d"), "bos_url"),
    ],
)
def test_a_wrong_spec_is_refused_and_the_field_named(wrong: JobSpec, field: str) -> None:
    with pytest.raises(InvalidError) as refused:
        check_shape(wrong, LIMITS)
    assert refused.value.field == field


@pytest.mark.parametrize(
    "right",
    [
        spec(),
        spec(role(count=100)),
        spec(name="长" * 200),
        spec(env={"A_1": "长\n=", "b": ""}),
        spec(role(), role(name="pserver", min_succeeded=0), distribute="PSERVER"),
        spec(role(count=3, min_failed=3, min_succeeded=1)),
        spec(role(resources=Resources(cpus=0.5))),
    ],
)
def test_a_right_spec_is_taken(right: JobSpec) -> None:
    check_shape(right, LIMITS)


@pytest.mark.parametrize(("field", "private"), [("public_bcc", "public_bcc=0"), ("public_bos", "public_bos=0")])
def test_private_resources_are_refused_in_words_and_not_dropped(field: str, private: str) -> None:
    with pytest.raises(UnsupportedError, match=private) as refused:
        check_shape(spec(bos_url="b.bj.bcebos.com/d", **{field: False}), LIMITS)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (spec(role(count=2)), "instance_count 2: the free policy of cce runs one instance of a job"),
        (spec(wall_time_seconds=1801), "wall_time 00:30:01: the free policy of cce runs a job for 00:30:00 at most"),
        (spec(job_type="cpu", cluster="cce"), "job_type cpu is not possible with cluster cce"),
        (spec(job_type="cpu"), "job_type cpu is not possible with cluster default"),
    ],
)
def test_the_free_policy_has_seed_002s_limits(wrong: JobSpec, says: str) -> None:
    with pytest.raises(InvalidError, match=says):
        accept(wrong, [CPUS, FREE_GPUS], Quota(), LIMITS)
    if wrong.cluster == "default":
        accept(wrong, [CPUS], Quota(), LIMITS)


def test_a_limit_of_the_free_policy_is_told_with_a_cluster_that_has_none() -> None:
    for wrong in (spec(role(count=2)), spec(wall_time_seconds=1801)):
        with pytest.raises(InvalidError, match="cluster local has no such limit"):
            accept(wrong, [FREE, CPUS], Quota(), LIMITS)
        with pytest.raises(InvalidError, match="`paddlecloud clusters` lists those with the policy open"):
            accept(wrong, [FREE], Quota(), LIMITS)


@pytest.mark.parametrize("asked", [None, "cpu"])
def test_a_cpu_job_runs_on_a_free_cluster_without_gpus_whether_it_is_asked_for_or_not(asked: str | None) -> None:
    assert accept(spec(job_type=asked, cluster="cce"), [FREE], Quota(), LIMITS).job_type == "cpu"
    with pytest.raises(InvalidError, match="job_type cpu is not possible"):
        accept(spec(job_type="cpu", cluster="cce"), [replace(FREE, capacity=None)], Quota(), LIMITS)


def test_the_free_policy_lets_pservers_stand_beside_the_one_instance_and_cpu_jobs_run_on_bcc() -> None:
    accept(spec(role(), role(name="pserver", min_succeeded=0), cluster="cce"), [FREE], Quota(), LIMITS)
    accept(spec(job_type="cpu", cluster="bcc"), [replace(FREE, name="bcc")], Quota(), LIMITS)


@pytest.mark.parametrize(
    ("asked", "offers", "becomes"),
    [
        (None, [CPUS], "cpu"),
        (None, [GPUS], "gpu"),
        (None, [CPUS, GPUS], None),
        (None, [SILENT], None),
        ("cpu", [GPUS], "cpu"),
        ("gpu", [GPUS], "gpu"),
        ("gpu", [CPUS, GPUS], "gpu"),
        ("gpu", [SILENT], "gpu"),
    ],
)
def test_job_type_is_gpu_where_the_cluster_has_gpus(asked: str, offers: list[Offer], becomes: str | None) -> None:
    assert accept(spec(job_type=asked), offers, Quota(), LIMITS).job_type == becomes


def test_a_gpu_job_where_there_are_none_is_refused() -> None:
    with pytest.raises(InvalidError, match="job_type gpu: there are no GPUs in local; use job_type cpu"):
        accept(spec(job_type="gpu"), [CPUS], Quota(), LIMITS)
    with pytest.raises(InvalidError, match="asks for 1 GPU, and there are none in local and cce") as refused:
        accept(spec(role(resources=Resources(cpus=1, gpus=1))), [CPUS, FREE], Quota(), LIMITS)
    assert "job_type" not in refused.value.message


def test_a_job_that_asks_for_gpus_is_a_gpu_job() -> None:
    assert accept(spec(role(resources=Resources(cpus=1, gpus=1))), [GPUS, CPUS], Quota(), LIMITS).job_type == "gpu"


def test_a_job_that_no_cluster_of_its_list_could_ever_hold_is_refused_with_the_numbers() -> None:
    large = spec(role(count=5, resources=Resources(cpus=1.5, memory_bytes=2**20)))
    with pytest.raises(InvalidError, match=r"local has 4 CPUs and .* in all and it needs 7.5 CPUs"):
        accept(large, [CPUS], Quota(), LIMITS)
    accept(large, [CPUS, replace(CPUS, capacity=Resources(cpus=8, memory_bytes=2**33))], Quota(), LIMITS)
    accept(large, [CPUS, SILENT], Quota(), LIMITS)
    with pytest.raises(InvalidError, match=r"5 pservers and 5 trainers\) can never run"):
        accept(spec(*(replace(large.roles[0], name=name) for name in ("pserver", "trainer"))), [CPUS], Quota(), LIMITS)
    with pytest.raises(InvalidError, match="3 GPUs"):
        accept(spec(role(count=3)), [GPUS], Quota(), LIMITS)


def test_a_job_that_asks_for_nothing_special_is_never_too_large() -> None:
    accept(spec(role(count=100)), [CPUS], Quota(), LIMITS)


@pytest.mark.parametrize(
    ("asked", "quota", "free", "becomes"),
    [
        (None, None, False, 1800),
        (86400, None, False, 86400),
        (None, 600, False, 600),
        (None, 86400, False, 1800),
        (600, 600, False, 600),
        (60, None, True, 60),
    ],
)
def test_wall_time_is_what_was_asked_for_else_the_least_of_the_limits(
    asked: int | None, quota: int | None, free: bool, becomes: int
) -> None:
    offer = FREE if free else CPUS
    accepted = accept(spec(wall_time_seconds=asked), [offer], Quota(wall_time_seconds=quota), LIMITS)
    assert accepted.wall_time_seconds == becomes


def test_a_free_cluster_gives_30_minutes_also_where_the_server_gives_more() -> None:
    assert accept(spec(), [FREE], Quota(), replace(LIMITS, wall_time_seconds=86400)).wall_time_seconds == 1800


@pytest.mark.parametrize(
    ("wrong", "quota"),
    [
        (spec(role(count=3)), Quota(instances=2)),
        (spec(wall_time_seconds=601), Quota(wall_time_seconds=600)),
    ],
)
def test_more_than_the_quota_is_refused_as_such(wrong: JobSpec, quota: Quota) -> None:
    with pytest.raises(QuotaError, match="quota: "):
        accept(wrong, [CPUS], quota, LIMITS)


def test_a_job_over_the_quota_of_running_jobs_is_taken_and_waits() -> None:
    assert accept(spec(), [CPUS], Quota(running_jobs=0), LIMITS).roles == spec().roles
