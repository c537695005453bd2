"""Seed 002's rules on instances, job types and distribution."""

from __future__ import annotations

import pytest

from paddlecloud.model.errors import InvalidError
from paddlecloud.model.job import JobSpec, Resources
from paddlecloud.sdk.client import Client
from paddlecloud.sdk.spec import Asked, as_in_the_manual, check_texts, job_spec


def spec(asked: Asked) -> JobSpec:
    return job_spec({"command": "sh run.sh", **asked})


def shape(found: JobSpec) -> list[tuple[str, int]]:
    return [(role.name, role.count) for role in found.roles]


def test_one_trainer_is_all_that_one_command_needs() -> None:
    found = spec({})
    assert shape(found) == [("trainer", 1)]
    assert (found.name, found.cluster, found.job_type, found.distribute) == ("tmp_job", "default", None, None)
    assert found.wall_time_seconds is None
    assert found.roles[0].resources is None


@pytest.mark.parametrize(
    ("asked", "gpus", "distribute", "roles"),
    [
        ({"nodes": 2}, False, "PSERVER", [("pserver", 2), ("trainer", 2)]),
        ({"nodes": 2}, True, "NCCL2", [("trainer", 2)]),
        ({"nodes": 2, "job_type": "gpu"}, False, "NCCL2", [("trainer", 2)]),
        ({"nodes": 2, "job_type": "cpu"}, True, "PSERVER", [("pserver", 2), ("trainer", 2)]),
        ({"nodes": 2, "distribute": "NCCL2"}, False, "NCCL2", [("trainer", 2)]),
        ({"nodes": 1, "distribute": "PSERVER"}, False, "PSERVER", [("pserver", 1), ("trainer", 1)]),
    ],
)
def test_by_the_manual_several_trainers_get_pservers_on_cpus_and_talk_by_nccl_on_gpus(
    asked: Asked, gpus: bool, distribute: str, roles: list[tuple[str, int]]
) -> None:
    found = spec(as_in_the_manual(asked, cluster_has_gpus=lambda cluster: gpus))
    assert (found.distribute, shape(found)) == (distribute, roles)


@pytest.mark.parametrize("asked", [{"nodes": 2}, {"nodes": 2, "job_type": "cpu"}, {"nodes": 2, "gpus": 1}])
def test_several_trainers_talk_to_each_other_unless_pservers_are_asked_for(asked: Asked) -> None:
    found = spec(asked)
    assert (found.distribute, shape(found)) == ("NCCL2", [("trainer", 2)])


def test_the_end_of_a_job_does_not_wait_for_its_pservers() -> None:
    pserver, trainer = spec({"nodes": 2, "distribute": "PSERVER"}).roles
    assert (pserver.successes_needed, trainer.successes_needed) == (0, 2)
    assert pserver.command == trainer.command == "sh run.sh"


def test_gpus_are_for_trainers_only() -> None:
    pserver, trainer = spec({"nodes": 2, "gpus": 1, "memory": "1Gi", "distribute": "PSERVER"}).roles
    assert trainer.resources == Resources(memory_bytes=2**30, gpus=1)
    assert pserver.resources == Resources(memory_bytes=2**30)


def test_the_server_is_asked_for_gpus_only_where_it_matters() -> None:
    def asked(cluster: str) -> bool:
        raise AssertionError(f"asked about {cluster}")

    as_in_the_manual({"command": "true"}, cluster_has_gpus=asked)
    as_in_the_manual({"command": "true", "nodes": 2, "job_type": "cpu"}, cluster_has_gpus=asked)


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"nodes": 0}, "nodes"),
        ({"nodes": -1}, "nodes"),
        ({"command": ""}, "command"),
        ({"command": " \n"}, "command"),
        ({"job_type": "tpu"}, "job_type"),
        ({"distribute": "MPI"}, "distribute"),
        ({"wall_time": "25:61:00"}, "wall_time"),
        ({"wall_time": "00:00:00"}, "wall_time"),
        ({"wall_time": 0}, "wall_time"),
        ({"wall_time": "30"}, "wall_time"),
        ({"memory": "many"}, "memory"),
        ({"memory": "1"}, "memory"),
        ({"memory": "0"}, "memory"),
        ({"memory": 1023 * 1024}, "memory"),
        ({"cpus": 0.0}, "cpus"),
        ({"cpus": float("nan")}, "cpus"),
        ({"gpus": -1}, "gpus"),
        ({"nods": 2}, "nods"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(asked: Asked, field: str) -> None:
    with pytest.raises(InvalidError) as caught:
        spec(asked)
    assert caught.value.field == field
    assert caught.value.message.startswith(f"{field} ")
    assert "--" not in caught.value.message


def test_a_bare_number_is_seconds_only_where_it_is_no_text() -> None:
    assert spec({"wall_time": 30}).wall_time_seconds == 30
    with pytest.raises(InvalidError, match="wall_time 30 has no unit: write 30s, 30m or 00:30:00"):
        spec({"wall_time": "30"})


@pytest.mark.parametrize("text", ["100000:00:00", " 99999:59:59"])
def test_a_time_that_is_only_too_long_is_not_called_no_time(text: str) -> None:
    with pytest.raises(InvalidError, match="is too long: 9999:59:59 is the most in hours; write more in days"):
        spec({"wall_time": text})
    assert spec({"wall_time": "9999:59:59"}).wall_time_seconds == 35999999


def test_memory_without_a_unit_is_answered_with_how_to_write_it() -> None:
    with pytest.raises(InvalidError, match=r"memory 1 is 1 bytes, .* such as 512Mi"):
        spec({"memory": "1"})


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"name": "a\udcff"}, "name"),
        ({"command": "a\udcff"}, "command"),
        ({"cluster": "a\udcff"}, "cluster"),
        ({"bos_url": "a\udcff"}, "bos_url"),
        ({"env": {"A": "\udcff"}}, "env"),
        ({"env": {"\udcff": "A"}}, "env"),
    ],
)
def test_text_that_is_not_utf_8_is_refused_by_name(asked: Asked, field: str) -> None:
    with pytest.raises(InvalidError, match="not UTF-8") as caught:
        check_texts(spec(asked))
    assert caught.value.field == field
    caught.value.message.encode()
    check_texts(spec({"name": "长", "env": {"A": "长"}}))


def test_every_keyword_is_told_of_where_one_looks_for_it() -> None:
    assert [name for name in Asked.__annotations__ if name not in str(Client.submit.__doc__)] == []
