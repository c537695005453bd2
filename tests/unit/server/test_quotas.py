"""Limits that hold from the submit to the placement, over the real records and HTTP, and what they say."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from paddlecloud.model.job import Job, JobSpec, Resources, RoleSpec
from paddlecloud.model.paths import job_id
from paddlecloud.model.state import JobState
from paddlecloud.model.user import ALL_CLUSTERS, Quota, Role
from paddlecloud.scheduler.round import Folders, Limits, Round
from paddlecloud.server import config
from paddlecloud.server.quotas import QuotaService
from paddlecloud.store.db import Database
from paddlecloud.store.groups import Groups
from paddlecloud.store.jobs import Jobs
from paddlecloud.store.secrets import Cipher
from paddlecloud.store.users import Users
from tests.fakes import FakeBackend
from tests.migrated import migrated
from tests.unit.server.running import Running, a_spec, running

MINUTE = timedelta(minutes=1)
SHARED = {"server": {"default_clusters": ["cce", "bcc"]}, "clusters": {"cce": {"policy": "free"}, "bcc": {}}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A shared server with a free cluster and an open one."""
    with running(tmp_path_factory.mktemp("server") / "data", SHARED) as made:
        yield made


def test_a_third_job_waits_and_says_for_what(server: Running) -> None:
    token = server.add_user("third@example.com")
    two = [server.submit(token=token, cluster="cce") for _ in range(2)]
    for job in two:
        server.reaches(job, "running")
    waits, later = (server.submit(token=token, cluster="cce") for _ in range(2))
    server.reaches(later, "queue")
    detail = server.get(f"/v1/jobs/{waits}", token)
    assert detail["job"]["queue_reason"] == (
        "quota: 2 of 2 jobs running for third@example.com on cce; it starts when one ends (about 30 min)"
    )
    assert detail["forecast"]["about_at"] is not None
    elsewhere = server.submit(token=token)
    server.reaches(elsewhere, "running")
    assert server.get(f"/v1/jobs/{elsewhere}", token)["job"]["placement"]["cluster"] == "bcc"
    server.finish(two[0])
    server.reaches(waits, "running")


def test_a_job_that_is_out_of_the_lists_counts_for_as_long_as_it_runs(server: Running) -> None:
    token = server.add_user("hider")
    job = server.submit(token=token, cluster="bcc")
    server.reaches(job, "running")
    server.services.records.hide(job)
    assert server.get("/v1/jobs", token)["items"] == []
    assert server.get("/v1/quota", token)["overall"]["running_jobs"] == 1
    server.finish(job)
    server.reaches(job, "success")


def test_pservers_without_number_are_refused_like_instances(server: Running) -> None:
    token = server.add_user("pservers")
    many = a_spec(cluster="cce")
    many["roles"] = [
        {"name": "trainer", "count": 1, "command": "go on"},
        {"name": "pserver", "count": 40, "command": "go on", "min_succeeded": 0},
    ]
    refused = server.ask("POST", "/v1/jobs", many, token=token)
    assert refused.json()["code"] == "quota"
    assert "40 pservers asked for, 1 allowed for one job of pservers on cce" in refused.json()["detail"]


def test_what_a_user_was_given_takes_the_place_of_what_the_cluster_gives(server: Running) -> None:
    token = server.add_user("given")
    more = {"quotas": {"cce": {"running_jobs": 3, "instances": 4}}, "quota": {"wall_time_seconds": 60}}
    assert server.ask("PATCH", "/v1/users/given", more, token=server.root).status == 200
    job = server.ask("POST", "/v1/jobs", a_spec(count=4, cluster="cce"), token=token).json()
    assert job["spec"]["wall_time_seconds"] == 60
    refused = server.ask("POST", "/v1/jobs", a_spec(wall_time_seconds=61), token=token)
    assert "00:01:00 allowed for one job of given on all clusters" in refused.json()["detail"]
    less = {"quotas": {"cce": None}}
    assert server.ask("PATCH", "/v1/users/given", less, token=server.root).json()["quotas"] == {}
    assert server.ask("POST", "/v1/jobs", a_spec(count=4, cluster="cce"), token=token).json()["code"] == "quota"


def test_a_quota_on_a_cluster_that_there_is_not_is_refused_with_those_that_there_are(server: Running) -> None:
    server.add_user("lost")
    for cluster in ("ccee", "default", ""):
        for quota in (b"{}", b"null"):
            change = b'{"quotas": {"%s": %s}}' % (cluster.encode(), quota)
            answer = server.ask("PATCH", "/v1/users/lost", change, token=server.root)
            assert (answer.status, answer.json()["field"]) == (422, f"quotas.{cluster}")
            assert "it has cce, bcc" in answer.json()["detail"]
    server.users.change("lost", quotas={"of-old": Quota(instances=1)})
    assert server.ask("PATCH", "/v1/users/lost", {"quotas": {"of-old": None}}, token=server.root).status == 200
    assert server.users.account("lost").quotas == {}


def test_use_and_limits_are_told_for_each_cluster_and_for_all_together(server: Running) -> None:
    token = server.add_user("counting")
    server.users.change("counting", quotas={ALL_CLUSTERS: Quota(running_jobs=2), "bcc": Quota(waiting_jobs=5)})
    for job in [server.submit(token=token, cluster=cluster) for cluster in ("cce", "bcc")]:
        server.reaches(job, "running")
    for cluster in ("cce", "default"):
        server.reaches(server.submit(token=token, cluster=cluster), "queue")
    use = server.get("/v1/quota", token)
    assert (use["user"], use["timezone"]) == ("counting", "UTC")
    assert datetime.fromisoformat(use["resets_at"]).time().isoformat() == "00:00:00"

    def told(place: dict[str, object]) -> tuple[object, object]:
        return place["running_jobs"], place["waiting_jobs"]

    assert told(use["overall"]) == (2, 2)
    assert told(use["clusters"]["cce"]) == (1, 2)
    assert told(use["clusters"]["bcc"]) == (1, 1)
    assert use["overall"]["quota"]["running_jobs"] == 2
    assert use["clusters"]["cce"]["quota"]["minutes_a_day"] == 100
    assert use["clusters"]["bcc"]["quota"]["waiting_jobs"] == 5
    assert 0 <= use["clusters"]["cce"]["minutes_today"] < 1
    assert server.get("/v1/quota?user=counting", server.root)["user"] == "counting"


def test_too_many_waiting_jobs_are_refused(server: Running) -> None:
    token = server.add_user("many")
    server.users.change("many", quotas={"cce": Quota(running_jobs=0, waiting_jobs=2)})
    for _ in range(2):
        server.submit(token=token, cluster="cce")
    answer = server.ask("POST", "/v1/jobs", a_spec(cluster="cce"), token=token)
    assert (answer.status, answer.json()["code"]) == (403, "quota")
    assert "2 of 2 jobs waiting for many on cce" in answer.json()["detail"]
    assert server.ask("POST", "/v1/jobs/check", a_spec(cluster="cce"), token=token).json()["code"] == "quota"
    server.submit(token=token, cluster="bcc")


@pytest.mark.parametrize("embedded", [True, False])
def test_a_server_limits_nobody_unless_its_policy_says_so(tmp_path: Path, embedded: bool) -> None:
    settings = config.parse({}, data=tmp_path, embedded=embedded)
    assert {settings.overall_quota, *(settings.quota(cluster) for cluster in settings.clusters)} == {Quota()}
    free = config.parse({"server": {"policy": "free"}}, data=tmp_path, embedded=embedded)
    limits = free.overall_quota
    assert (limits.running_jobs, limits.minutes_a_day, limits.wall_time_seconds, limits.instances) == (2, 100, 1800, 1)
    assert free.quota("local") == Quota(), "which counts once, on all clusters together"


def test_the_servers_free_policy_counts_a_users_jobs_on_all_clusters_together(tmp_path: Path) -> None:
    plain = {"server": {"policy": "free"}, "clusters": {"cce": {}, "bcc": {}}}
    with running(tmp_path / "data", plain) as server:
        token = server.add_user("third@example.com")
        for job in [server.submit(token=token, cluster=cluster) for cluster in ("cce", "bcc")]:
            server.reaches(job, "running")
        waits = server.submit(token=token, cluster="bcc")
        server.reaches(waits, "queue")
        detail = server.get(f"/v1/jobs/{waits}", token)["job"]
        assert "2 of 2 jobs running for third@example.com on all clusters" in detail["queue_reason"]
        assert detail["spec"]["wall_time_seconds"] == 1800
        use = server.get("/v1/quota", token)
        assert (use["overall"]["source"], use["clusters"]["cce"]["source"]) == ("server", "")
        assert use["overall"]["quota"]["minutes_a_day"] == 100
        more = {"quota": {"running_jobs": 3, "space_bytes": 10}}
        assert server.ask("PATCH", "/v1/users/third@example.com", more, token=server.root).status == 200
        server.reaches(waits, "running")
        use = server.get("/v1/quota", token)["overall"]
        assert (use["quota"]["running_jobs"], use["quota"]["minutes_a_day"]) == (3, 100), "the others are the server's"


class Lab:
    """A cluster with 10 minutes a day for each user, in Shanghai, whose time a test sets."""

    def __init__(self, folder: Path) -> None:
        self.now = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
        self.database = Database.open(migrated(folder / "records.db"))
        self.jobs = Jobs(self.database)
        self.users = Users(self.database, Cipher(folder / "key"))
        self.backend = FakeBackend(Resources(cpus=100, memory_bytes=2**40), clock=lambda: self.now)
        plain = {
            "server": {"timezone": "Asia/Shanghai"},
            "clusters": {"local": {"policy": "open", "minutes_a_day": 10}},
        }
        self.quotas = QuotaService(
            settings=config.parse(plain, data=folder),
            users=self.users,
            groups=Groups(self.database),
            jobs=self.jobs,
            database=self.database,
            clock=lambda: self.now,
            kept=lambda _: 0,
        )
        self.round = Round(
            jobs=self.jobs,
            quotas=self.quotas.quotas,
            clusters={"local": self.backend},
            default=("local",),
            folders=Folders(tree=lambda user, tree: folder, results=lambda job: folder),
            limits=Limits(schedule=timedelta(days=9), attempts=3),
        )

    def submit(self, number: int, user: str = "ann") -> Job:
        roles = (RoleSpec(name="trainer", count=1, command="go on", resources=Resources(cpus=1)),)
        spec = JobSpec(roles=roles, wall_time_seconds=1800)
        job = Job(id=job_id(number.to_bytes(16, "big")), user=user, spec=spec, created_at=self.now)
        return self.jobs.add(job, group="g")

    def after(self, minutes: float) -> None:
        self.now += minutes * MINUTE
        for _ in range(2):
            self.round.run(self.now)

    def end(self, job: Job) -> None:
        self.backend.end(self.jobs.get(job.id).handle)

    def minutes_used(self, user: str = "ann") -> float:
        return self.quotas.use(user).clusters["local"].minutes_today


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    made = Lab(tmp_path)
    yield made
    made.database.close()


def test_a_job_is_stopped_when_its_users_minutes_of_the_day_are_over(lab: Lab) -> None:
    job, other = lab.submit(1), lab.submit(2, user="bob")
    lab.after(0)
    lab.after(9.9)
    assert lab.jobs.get(job.id).state is JobState.RUNNING
    assert lab.minutes_used() == pytest.approx(9.9)
    lab.after(0.1)
    ended = lab.jobs.get(job.id)
    assert ended.state is JobState.TIMEOUT
    assert ended.error == (
        "ran out of the day's minutes: when it started, 00:10:00 of its wall_time 00:30:00 were left"
    )
    assert (ended.wall_time_seconds, ended.spec.wall_time_seconds) == (600, 1800)
    assert lab.jobs.get(other.id).state is JobState.TIMEOUT
    assert (lab.minutes_used(), lab.minutes_used("bob"), lab.minutes_used("eve")) == (10, 10, 0)


def test_a_job_out_of_minutes_waits_for_the_next_day_of_the_servers_time_zone(lab: Lab) -> None:
    first, second = lab.submit(1), lab.submit(2)
    lab.after(0)
    assert "0 of 10 minutes used today (Asia/Shanghai) by ann on local, and 10 kept" in (
        lab.jobs.get(second.id).queue_reason
    )
    lab.after(10)
    assert lab.jobs.get(first.id).state is JobState.TIMEOUT
    assert lab.jobs.get(second.id).queue_reason == (
        "quota: 10 of 10 minutes used today (Asia/Shanghai) by ann on local; "
        "it starts after midnight, at 2026-11-16T00:00+08:00"
    )
    lab.now = datetime(2026, 11, 15, 15, 59, tzinfo=UTC)
    lab.after(0)
    assert lab.jobs.get(second.id).state is JobState.QUEUE
    lab.after(1)
    assert lab.jobs.get(second.id).state is JobState.RUNNING
    assert lab.minutes_used() == 0


def test_what_a_job_leaves_of_the_minutes_kept_for_it_the_next_one_gets(lab: Lab) -> None:
    first, second = lab.submit(1), lab.submit(2)
    lab.after(0)
    lab.now += 3 * MINUTE
    lab.end(first)
    lab.after(0)
    assert lab.jobs.get(second.id).state is JobState.RUNNING
    assert lab.jobs.get(second.id).wall_time_seconds == 7 * 60


def test_every_attempt_counts(lab: Lab) -> None:
    job = lab.submit(1)
    lab.after(0)
    lab.now += 4 * MINUTE
    lab.backend.lose(lab.jobs.get(job.id).handle)
    lab.after(0)
    again = lab.jobs.get(job.id)
    assert (again.state, again.attempt, again.wall_time_seconds) == (JobState.RUNNING, 2, 6 * 60)
    lab.after(2)
    assert lab.minutes_used() == 6


def test_a_job_over_midnight_counts_in_each_day_its_part(lab: Lab) -> None:
    lab.now = datetime(2026, 11, 15, 15, 56, tzinfo=UTC)
    lab.submit(1)
    lab.after(0)
    lab.after(3)
    assert lab.minutes_used() == 3
    lab.after(4)
    assert lab.minutes_used() == 3


def test_only_those_whose_minutes_are_limited_are_counted(lab: Lab) -> None:
    """Reading use is for those who wait and have such a limit: the rest of a long queue costs nothing."""
    lab.users.add("ann", Role.USER, None, lab.now)
    lab.users.change("ann", quotas={"local": Quota(running_jobs=1)})
    job = lab.submit(1)
    lab.after(0)
    lab.now += 3 * MINUTE
    lab.end(job)
    lab.after(0)
    assert lab.quotas.quotas(lab.now, {"ann", "bob"}).used == {"bob": {}}
    assert lab.minutes_used() == 3
    lab.users.change("ann", quotas={"local": Quota(minutes_a_day=5)})
    assert lab.quotas.quotas(lab.now, {"ann"}).used == {"ann": {"local": pytest.approx(180)}}
    assert lab.quotas.quotas(lab.now, set()).used == {}
