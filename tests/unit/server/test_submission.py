"""Every rule of submission: what is refused and with which field, and what is filled in."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec import structs

from paddlecloud.model.errors import InvalidError, PaddleCloudError, QuotaError, UnsupportedError
from paddlecloud.model.job import JobSpec, OpenPai, Ports, Resources, RoleSpec
from paddlecloud.model.user import ALL_CLUSTERS, Quota
from paddlecloud.runtime.variables import GANG
from paddlecloud.scheduler.day import day_of
from paddlecloud.scheduler.ledger import Standing, Tally
from paddlecloud.scheduler.quota import OPEN, Limit, Policy
from paddlecloud.server.settings import FREE_QUOTA
from paddlecloud.server.submission import Limits, Offer, accept, check_shape

LIMITS = Limits(tasks=100, wall_time_seconds=1800, hang_seconds=600)
NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
DAY = day_of(NOW, UTC)


def limited(offer: Offer, quota: Quota, cluster: str | None = None, policy: Policy = OPEN, **have: Any) -> Offer:
    """The offer to a user who has this quota on its cluster, or on all of them, and has so much of it."""
    limit = Limit(user="ann", cluster=offer.name if cluster is None else cluster, quota=quota)
    return replace(offer, standing=Standing(policy, [Tally(limit=limit, day=DAY, **have)], NOW))


def free(offer: Offer, name: str = "cce", **have: Any) -> Offer:
    """A cluster with the free policy."""
    return limited(replace(offer, name=name), FREE_QUOTA, policy=Policy(quota=FREE_QUOTA, free=True), **have)


UNLIMITED = Standing(OPEN, (), NOW)
CPUS = Offer(name="local", capacity=Resources(cpus=4, memory_bytes=2**33), standing=UNLIMITED)
GPUS = Offer(name="gpus", capacity=Resources(cpus=4, memory_bytes=2**33, gpus=2), standing=UNLIMITED)
FREE = free(CPUS)
FREE_GPUS = free(GPUS)
SILENT = Offer(name="slurm", capacity=None, standing=UNLIMITED)


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
        (spec(role(name=".trainer")), "roles[0].name"),
        (spec(role(name="a/b")), "roles[0].name"),
        (spec(role(name="")), "roles[0].name"),
        (spec(role(name="a\n")), "roles[0].name"),
        (spec(role(name="x" * 64)), "roles[0].name"),
        (spec(role(command="")), "roles[0].command"),
        (spec(role(command=" \n")), "roles[0].command"),
        (spec(role(command="a\0b")), "roles[0].command"),
        (spec(role(command="\ud800")), "roles[0].command"),
        (spec(role(command="x" * 100_001)), "roles[0].command"),
        (spec(role(ports={"a b": Ports()})), "roles[0].ports.a b"),
        (spec(role(ports={"a": Ports(count=0)})), "roles[0].ports.a"),
        (spec(role(ports={"a": Ports(count=2, begin=65535)})), "roles[0].ports.a"),
        (spec(role(ports={"a": Ports(count=101)})), "roles[0].ports"),
        (spec(role(count=100, ports={"a": Ports(count=99)})), "roles"),
        (spec(role(shared_memory_bytes=-1)), "roles[0].shared_memory_bytes"),
        (spec(role(min_failed=0)), "roles[0].min_failed"),
        (spec(role(min_failed=2)), "roles[0].min_failed"),
        (spec(role(awaited_seconds=-1.0)), "roles[0].awaited_seconds"),
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
        (spec(name="x" * 256), "name"),
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
        (spec(openpai=OpenPai(protocol=1, code_dir="a\0b")), "openpai.code_dir"),
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


@pytest.mark.parametrize("name", sorted(GANG))
def test_what_numbers_a_trainer_and_names_its_peers_is_refused(name: str) -> None:
    with pytest.raises(InvalidError, match=f"env {name} is set by PaddleCloud"):
        check_shape(spec(env={name: "1"}), LIMITS)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"qos": "high"}, "qos cannot be set by jobs on cluster slurm, whose operator allows constraint, nice"),
        ({"constraint": "a", "partition": "b"}, "partition cannot be set"),
        ({"output": "/etc/passwd"}, "'output' is set by the server itself"),
        ({"constraint": "a\n#SBATCH --uid=0"}, "one line of plain letters"),
        ({"Constraint": "a"}, "no long option of sbatch"),
    ],
)
def test_a_job_sets_only_what_its_operator_lets_it_ask_of_slurm(asked: dict[str, str], says: str) -> None:
    offer = replace(SILENT, options=("constraint", "nice"))
    assert accept(spec(slurm={"nice": "5"}), [offer], LIMITS).slurm == {"nice": "5"}
    with pytest.raises(InvalidError, match=says) as refused:
        accept(spec(slurm=asked), [offer], LIMITS)
    assert (refused.value.field or "").startswith("slurm.")


def test_what_a_job_asks_of_slurm_must_be_allowed_wherever_it_may_go() -> None:
    allowed = replace(SILENT, options=("nice",))
    with pytest.raises(InvalidError, match="cluster local is no Slurm: leave nice out, or name another cluster"):
        accept(spec(slurm={"nice": "5"}), [allowed, CPUS], LIMITS)
    with pytest.raises(InvalidError, match="nice cannot be set by jobs on cluster slurm, whose operator allows none"):
        accept(spec(slurm={"nice": "5"}), [replace(SILENT, options=())], LIMITS)


def test_machines_of_ones_own_are_refused_in_words_and_not_dropped() -> None:
    with pytest.raises(UnsupportedError, match="public_bcc=0") as refused:
        check_shape(spec(public_bcc=False), LIMITS)
    assert refused.value.field == "public_bcc"


OWN = {"public_bos": False, "bos_url": "lab.bj.bcebos.com/d", "storage_key": "key-1"}


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"bos_url": ""}, "bos_url"),
        ({"bos_url": "elsewhere"}, "bos_url"),
        ({"storage_key": ""}, "storage_key"),
        ({"storage_key": "k" * 300}, "storage_key"),
        ({"tree": "t" * 64}, "tree"),
        ({"package": "/pfs/local/home/ann/x"}, "package"),
        ({"public_bos": True, "bos_url": ""}, "storage_key"),
        ({"public_bos": True, "storage_key": ""}, "bos_url"),
    ],
)
def test_storage_of_ones_own_needs_its_folder_and_key_and_no_files(changed: dict[str, Any], field: str) -> None:
    check_shape(spec(**OWN), LIMITS)
    with pytest.raises(InvalidError) as refused:
        check_shape(spec(**(OWN | changed)), LIMITS)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        (spec(role(count=2)), QuotaError, "instance_count 2 asked for, 1 allowed for one job of ann on cce"),
        (spec(wall_time_seconds=1860), QuotaError, "wall_time 00:31:00 asked for, 00:30:00 allowed for one job of ann"),
        (spec(job_type="cpu", cluster="cce"), InvalidError, "job_type cpu is not possible with cluster cce"),
        (spec(job_type="cpu"), InvalidError, "job_type cpu is not possible with cluster default"),
    ],
)
def test_the_free_policy_has_seed_002s_limits(wrong: JobSpec, error: type[PaddleCloudError], says: str) -> None:
    with pytest.raises(error, match=says):
        accept(wrong, [FREE_GPUS], LIMITS)
    if wrong.cluster == "default":
        assert accept(wrong, [FREE_GPUS, CPUS], LIMITS).roles == wrong.roles


def test_a_job_is_refused_only_if_no_cluster_of_its_list_takes_it_and_then_each_says_why() -> None:
    small = limited(replace(CPUS, name="bcc"), Quota(instances=2))
    assert accept(spec(role(count=2)), [FREE, small], LIMITS).trainers == 2
    with pytest.raises(QuotaError) as refused:
        accept(spec(role(count=3)), [FREE, small], LIMITS)
    assert refused.value.message == (
        "quota: instance_count 3 asked for, 1 allowed for one job of ann on cce: ask for --nodes 1; "
        "quota: instance_count 3 asked for, 2 allowed for one job of ann on bcc: ask for --nodes 2"
    )


def test_a_cluster_that_is_too_small_does_not_take_what_another_one_refuses() -> None:
    large = spec(role(count=2, resources=Resources(cpus=3)))
    assert accept(large, [FREE, GPUS, SILENT], LIMITS).trainers == 2
    with pytest.raises(InvalidError, match="local has 4 CPUs .* it needs 6 CPUs"):
        accept(large, [FREE, CPUS], LIMITS)


@pytest.mark.parametrize("asked", [None, "cpu"])
def test_a_cpu_job_runs_on_a_free_cluster_without_gpus_whether_it_is_asked_for_or_not(asked: str | None) -> None:
    assert accept(spec(job_type=asked, cluster="cce"), [FREE], LIMITS).job_type == "cpu"
    with pytest.raises(InvalidError, match="job_type cpu is not possible"):
        accept(spec(job_type="cpu", cluster="cce"), [replace(FREE, capacity=None)], LIMITS)


def test_the_free_policy_lets_pservers_stand_beside_the_one_instance_and_cpu_jobs_run_on_bcc() -> None:
    accept(spec(role(), role(name="pserver", min_succeeded=0), cluster="cce"), [FREE], LIMITS)
    accept(spec(job_type="cpu", cluster="bcc"), [replace(FREE, name="bcc")], LIMITS)


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
    assert accept(spec(job_type=asked), offers, LIMITS).job_type == becomes


def test_a_gpu_job_where_there_are_none_is_refused() -> None:
    with pytest.raises(InvalidError, match="job_type gpu: there are no GPUs in local; use job_type cpu"):
        accept(spec(job_type="gpu"), [CPUS], LIMITS)
    with pytest.raises(InvalidError, match="asks for 1 GPU, and there are none in local and cce") as refused:
        accept(spec(role(resources=Resources(cpus=1, gpus=1))), [CPUS, FREE], LIMITS)
    assert "job_type" not in refused.value.message


def test_a_job_that_asks_for_gpus_is_a_gpu_job() -> None:
    assert accept(spec(role(resources=Resources(cpus=1, gpus=1))), [GPUS, CPUS], LIMITS).job_type == "gpu"


def test_a_job_that_no_cluster_of_its_list_could_ever_hold_is_refused_with_the_numbers() -> None:
    large = spec(role(count=5, resources=Resources(cpus=1.5, memory_bytes=2**20)))
    with pytest.raises(InvalidError, match=r"local has 4 CPUs and .* in all and it needs 7.5 CPUs"):
        accept(large, [CPUS], LIMITS)
    accept(large, [CPUS, replace(CPUS, capacity=Resources(cpus=8, memory_bytes=2**33))], LIMITS)
    accept(large, [CPUS, SILENT], LIMITS)
    with pytest.raises(InvalidError, match=r"5 pservers and 5 trainers\) can never run"):
        accept(spec(*(structs.replace(large.roles[0], name=name) for name in ("pserver", "trainer"))), [CPUS], LIMITS)
    with pytest.raises(InvalidError, match="3 GPUs"):
        accept(spec(role(count=3)), [GPUS], LIMITS)


def test_a_job_that_asks_for_nothing_special_is_never_too_large() -> None:
    accept(spec(role(count=100)), [CPUS], LIMITS)


@pytest.mark.parametrize(
    ("asked", "offers", "becomes"),
    [
        (None, [CPUS], 1800),
        (86400, [CPUS], 86400),
        (None, [limited(CPUS, Quota(wall_time_seconds=600))], 600),
        (None, [limited(CPUS, Quota(wall_time_seconds=600), ALL_CLUSTERS)], 600),
        (None, [limited(CPUS, Quota(wall_time_seconds=86400))], 1800),
        (600, [limited(CPUS, Quota(wall_time_seconds=600))], 600),
        (60, [FREE], 60),
        (None, [limited(CPUS, Quota(wall_time_seconds=900)), limited(GPUS, Quota(wall_time_seconds=600))], 600),
        (None, [limited(CPUS, Quota(wall_time_seconds=900)), limited(GPUS, Quota(instances=0))], 900),
        (3600, [FREE, CPUS], 3600),
    ],
)
def test_wall_time_is_what_was_asked_for_else_the_least_of_the_limits_of_those_that_take_it(
    asked: int | None, offers: list[Offer], becomes: int
) -> None:
    assert accept(spec(wall_time_seconds=asked), offers, LIMITS).wall_time_seconds == becomes


def test_a_job_that_names_no_time_has_30_minutes_by_submit_job_alone() -> None:
    none = replace(LIMITS, wall_time_seconds=None)
    assert accept(spec(), [CPUS], none).wall_time_seconds is None
    assert accept(spec(face="paddlepaddle"), [CPUS], none).wall_time_seconds is None
    assert accept(spec(face="manual"), [CPUS], none).wall_time_seconds == 1800
    assert accept(spec(face="manual", wall_time_seconds=7200), [CPUS], none).wall_time_seconds == 7200
    assert accept(spec(face="manual"), [limited(CPUS, Quota(wall_time_seconds=600))], none).wall_time_seconds == 600


@pytest.mark.parametrize(
    ("face", "nodes", "time"),
    [
        ("", "--nodes 1", "--time-limit 00:30:00"),
        ("manual", "--instance_count=1", "--wall_time=00:30:00"),
        ("paddlepaddle", "-parallelism 1", "--time-limit 00:30:00"),
        ("openpai", "instances: 1 (taskNumber in JSON)", "extras: {paddlecloud: {time_limit: 00:30:00}}"),
    ],
)
def test_a_refusal_says_what_would_be_accepted_in_the_words_of_the_face(face: str, nodes: str, time: str) -> None:
    for wrong, advice in ((spec(role(count=2), face=face), nodes), (spec(wall_time_seconds=1801, face=face), time)):
        with pytest.raises(QuotaError) as refused:
            accept(wrong, [FREE], LIMITS)
        assert refused.value.message.endswith(f": ask for {advice}")


def test_a_free_cluster_gives_30_minutes_also_where_the_server_gives_more() -> None:
    assert accept(spec(), [FREE], replace(LIMITS, wall_time_seconds=86400)).wall_time_seconds == 1800


@pytest.mark.parametrize("cluster", ["local", ALL_CLUSTERS])
@pytest.mark.parametrize(
    ("wrong", "quota"),
    [
        (spec(role(count=3)), Quota(instances=2)),
        (spec(wall_time_seconds=601), Quota(wall_time_seconds=600)),
        (spec(), Quota(wall_time_seconds=0)),
        (spec(), Quota(minutes_a_day=0)),
    ],
)
def test_more_than_the_quota_is_refused_as_such(wrong: JobSpec, quota: Quota, cluster: str) -> None:
    with pytest.raises(QuotaError, match="quota: "):
        accept(wrong, [limited(CPUS, quota, cluster)], LIMITS)


def test_a_job_over_the_quota_of_running_jobs_is_taken_and_waits() -> None:
    assert accept(spec(), [limited(CPUS, Quota(running_jobs=0))], LIMITS).roles == spec().roles


def test_a_job_of_a_user_whose_minutes_are_used_up_is_refused_with_the_time_when_there_are_more() -> None:
    with pytest.raises(QuotaError) as refused:
        accept(spec(), [free(CPUS, used=6000)], LIMITS)
    assert refused.value.message == (
        "quota: 100 of 100 minutes used today (UTC) by ann on cce; "
        "there are more after midnight, at 2026-11-16T00:00+00:00"
    )
    with pytest.raises(QuotaError, match="99 of 100 minutes used today .* and less than one is left"):
        accept(spec(), [free(CPUS, used=5990)], LIMITS)
    accept(spec(wall_time_seconds=10), [free(CPUS, used=5990)], LIMITS)
    accept(spec(), [free(CPUS, used=6000), CPUS], LIMITS)


def test_minutes_that_are_only_kept_for_what_runs_may_be_waited_for() -> None:
    accept(spec(), [free(CPUS, used=60, kept=5940)], LIMITS)


def test_a_job_is_refused_while_too_many_of_its_user_wait() -> None:
    with pytest.raises(QuotaError, match="quota: 100 of 100 jobs waiting for ann on cce; submit more when one has"):
        accept(spec(), [free(CPUS, waiting=100)], LIMITS)
    accept(spec(), [free(CPUS, waiting=99)], LIMITS)
    accept(spec(), [free(CPUS, waiting=100), CPUS], LIMITS)
