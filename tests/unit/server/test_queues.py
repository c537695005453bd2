"""Queues over HTTP: who may use one, how long jobs may run there, where they go, and what the others are told."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.model.errors import ConfigError
from paddlecloud.model.job import Resources
from paddlecloud.model.user import ALL_CLUSTERS, Quota
from paddlecloud.server import config
from paddlecloud.server.settings import Settings
from tests.unit.server.running import Running, a_spec, running
from tests.waiting import wait_until

ONE_CPU = Resources(cpus=1.0, memory_bytes=2**30)
QUEUES: dict[str, object] = {
    "server": {"default_clusters": ["small"]},
    "clusters": {"small": {"policy": "open"}, "hpc": {"policy": "open", "backend": "slurm"}},
    "queues": {
        "fcr": {"cluster": "hpc", "time_limit": "00:10:00", "sbatch": {"partition": "short", "exclusive": True}},
        "fcr-slow": {"cluster": "hpc", "time_limit": "99:59:59"},
        "of.bob_alone": {"users": ["bob"], "priority": 50},
        "urgent": {"priority": 5},
    },
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("server") / "data", QUEUES, {"small": ONE_CPU}) as made:
        yield made


def refused(server: Running, **changes: Any) -> tuple[int, str, str]:
    answer = server.ask("POST", "/v1/jobs", a_spec(**changes))
    told = answer.json()
    return answer.status, told["field"], told["detail"]


def test_a_user_is_shown_the_queues_that_they_may_use(server: Running) -> None:
    found = server.get("/v1/queues")
    assert [queue["name"] for queue in found] == ["fcr", "fcr-slow", "urgent"]
    plain = {"name": "fcr", "cluster": "hpc", "time_limit_seconds": 600, "priority": 0, "users": [], "groups": []}
    assert {name: value for name, value in found[0].items() if name in plain} == plain
    of_bob = server.get("/v1/queues", server.bob)[2]
    assert (of_bob["name"], of_bob["users"], of_bob["time_limit_seconds"]) == ("of.bob_alone", ["bob"], None)


def test_a_job_goes_to_the_cluster_of_its_queue_with_the_queues_options(server: Running) -> None:
    job = server.run(queue="fcr", wall_time_seconds=600)
    detail = server.get(f"/v1/jobs/{job}")["job"]
    assert (detail["spec"]["queue"], detail["spec"]["cluster"], detail["placement"]["cluster"]) == ("fcr", "hpc", "hpc")
    launch = next(launch for launch in server.backends["hpc"].launches if launch.job == job)
    assert launch.options == {"partition": "short", "exclusive": "true"}
    server.finish(job)
    plain = server.run(queue="fcr-slow")
    assert next(launch for launch in server.backends["hpc"].launches if launch.job == plain).options == {}
    server.finish(plain)


@pytest.mark.parametrize(("queue", "seconds"), [("fcr", 600), ("fcr-slow", 359999), ("", None)])
def test_a_job_that_asks_for_no_time_gets_what_its_queue_gives(
    server: Running, queue: str, seconds: int | None
) -> None:
    checked = server.ask("POST", "/v1/jobs/check", a_spec(queue=queue)).json()
    assert checked["spec"]["wall_time_seconds"] == seconds


def test_the_longest_run_that_may_be_asked_for_is_the_least_of_the_users_and_the_queues(tmp_path: Path) -> None:
    with running(tmp_path / "data", QUEUES, {"small": ONE_CPU}) as server:
        jobs, records = server.services.jobs, server.services.records
        made = {queue: records.get(server.submit(queue=queue)) for queue in ("", "fcr")}
        assert {queue: jobs._longest(job) for queue, job in made.items()} == {"": None, "fcr": 600}
        server.users.change("ann", quotas={ALL_CLUSTERS: Quota(wall_time_seconds=60)})
        assert {queue: jobs._longest(job) for queue, job in made.items()} == {"": 60, "fcr": 60}


def test_a_job_above_the_limit_is_told_which_queues_would_take_it(server: Running) -> None:
    assert refused(server, queue="fcr", wall_time_seconds=601) == (
        422,
        "wall_time_seconds",
        "queue fcr takes jobs of 00:10:00 at most, and 00:10:01 is asked for: fcr-slow, urgent would take it",
    )


def test_a_job_that_no_queue_takes_is_told_the_longest(tmp_path: Path) -> None:
    queues = {"queues": {"short": {"time_limit": "1m"}, "long": {"time_limit": "1h"}}}
    with running(tmp_path / "data", queues) as server:
        _, _, why = refused(server, queue="short", wall_time_seconds=7200)
    assert why.endswith("02:00:00 is asked for: none of yours takes so long; long takes the longest, 01:00:00")


def test_an_unknown_queue_is_answered_with_those_that_the_user_may_use(server: Running) -> None:
    assert refused(server, queue="fcr_slow") == (
        422,
        "queue",
        "queue 'fcr_slow' is not configured on this server; you may use fcr, fcr-slow, urgent",
    )


def test_a_queue_of_others_is_refused_as_such(server: Running) -> None:
    assert refused(server, queue="of.bob_alone") == (
        403,
        "queue",
        "queue of.bob_alone is not open to ann; you may use fcr, fcr-slow, urgent",
    )
    assert server.ask("POST", "/v1/jobs/check", a_spec(queue="of.bob_alone"), token=server.bob).status == 200


def test_a_server_without_queues_says_to_name_none(tmp_path: Path) -> None:
    with running(tmp_path / "data") as server:
        assert server.get("/v1/queues") == []
        assert refused(server, queue="any")[2].endswith("there is none for you: leave it out")


def test_a_queue_and_another_cluster_do_not_go_together(server: Running) -> None:
    assert refused(server, queue="fcr", cluster="small") == (
        422,
        "cluster",
        "queue fcr is one of cluster hpc, and the job names cluster small: name one of the two",
    )
    assert server.ask("POST", "/v1/jobs/check", a_spec(queue="fcr", cluster="hpc")).status == 200


def test_a_queue_of_higher_priority_goes_first(server: Running) -> None:
    runs = server.run()
    waits = server.submit()
    urgent = server.submit(queue="urgent")
    wait_until(lambda: server.get(f"/v1/jobs/{urgent}")["forecast"]["position"] == 1, "it is first")
    assert server.get(f"/v1/jobs/{waits}")["forecast"]["position"] == 2
    server.finish(runs)
    server.reaches(urgent, "running")
    server.finish(urgent)
    server.reaches(waits, "running")
    server.finish(waits)


def parse(text: str) -> Settings:
    return config.parse(tomllib.loads(text), source="server.toml", data=Path("/data"))


def test_queues_are_printed_as_the_file_that_gives_them() -> None:
    settings = parse(
        '[clusters.hpc]\nbackend = "slurm"\n[queues."a.b"]\ncluster = "hpc"\ntime_limit = "99:59:59"\npriority = -3\n'
        'users = ["ann"]\nsbatch = {partition = "low", qos = "high"}\n[queues.nmg01-hpc-off-dmop-cpu-10G_cluster]\n'
    )
    assert settings.queues["a.b"].sbatch == {"partition": "low", "qos": "high"}
    assert config.parse(tomllib.loads(config.render(settings)), data=Path("/data")) == settings


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("queues = 1", "[queues.<name>]"),
        ('[queues."a b"]', "letters, digits and . _ -"),
        ("[queues.-a]", "a letter or digit first"),
        ("[queues.a]\ntime_limt = 1", "did you mean 'time_limit'"),
        ("[queues.a]\npriority = 1001", "from -1000 to 1000"),
        ('[queues.a]\nusers = "ann"', "a list of names"),
        ('[queues.a]\ncluster = "locl"', "did you mean 'local'"),
        ('[queues.a]\nsbatch = {partition = "low"}', "sbatch is for Slurm, and its jobs go to local: leave it out"),
        ('[clusters.c]\nbackend = "slurm"\n[queues.a]\nsbatch = {output = "/x"}', "set by the server itself"),
    ],
)
def test_a_wrong_queue_is_refused_with_what_to_write(text: str, says: str) -> None:
    with pytest.raises(ConfigError) as wrong:
        parse(text)
    assert says in wrong.value.message
