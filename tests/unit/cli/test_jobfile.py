"""Job files: what they may say, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.cli import jobfile
from paddlecloud.model.errors import InvalidError
from paddlecloud.model.job import Input, Resources
from paddlecloud.sdk.spec import job_spec

WHOLE = """\
name: fit
workdir: job
run: sh run.sh
env: {A: b, N: 1, F: true}
resources: {cpus: 2, memory: 4Gi, gpus: 1}
nodes: 2
job_type: gpu
distribute: NCCL2
cluster: local
queue: slow
slurm: {constraint: rack1, exclusive: true, nice: 5}
priority: 5
time_limit: 2h
"""


def put(folder: Path, text: str) -> Path:
    file = folder / "job.yaml"
    file.write_text(text)
    return file


def test_a_flat_file_says_all_that_the_flags_can(tmp_path: Path) -> None:
    expected: dict[str, Any] = {
        "name": "fit",
        "command": "sh run.sh",
        "nodes": 2,
        "job_type": "gpu",
        "distribute": "NCCL2",
        "cluster": "local",
        "queue": "slow",
        "slurm": {"constraint": "rack1", "exclusive": "true", "nice": "5"},
        "priority": 5,
        "wall_time": 7200,
        "cpus": 2,
        "memory": "4Gi",
        "gpus": 1,
        "env": {"A": "b", "N": "1", "F": "true"},
    }
    found = jobfile.read(put(tmp_path, WHOLE))
    assert jobfile.asked(found) == expected
    assert found.workdir == "job"


def test_inputs_say_where_from_and_where_to(tmp_path: Path) -> None:
    dealt = "{from: 'hdfs://nn:1/a', to: b, user: u, deal: true, list: l}"
    text = f"run: 'true'\ninputs:\n- {{from: /pfs/dc/home/ann/set/}}\n- {dealt}\n"
    found = jobfile.asked(jobfile.read(put(tmp_path, text)))["inputs"]
    assert found == (
        Input(source="/pfs/dc/home/ann/set/", target="set"),
        Input(source="hdfs://nn:1/a", target="b", user="u", deal=True, list="l"),
    )
    assert job_spec({"command": "true", "inputs": found}).inputs == found
    with pytest.raises(InvalidError, match=r"inputs\[0\].fron is not a known field; did you mean 'from'"):
        jobfile.read(put(tmp_path, "run: 'true'\ninputs: [{fron: a}]"))
    with pytest.raises(InvalidError, match=r"inputs\[0\].from is missing"):
        jobfile.read(put(tmp_path, "run: 'true'\ninputs: [{to: a}]"))


def test_json_is_taken_too(tmp_path: Path) -> None:
    assert jobfile.read(put(tmp_path, json.dumps({"run": "true"}))).run == "true"


def test_roles_are_several_kinds_of_task(tmp_path: Path) -> None:
    text = """\
time_limit: 00:10:00
roles:
  pserver: {run: sh ps.sh, count: 2}
  trainer: {run: sh run.sh, count: 3, resources: {cpus: 1}, min_failed: 2, restarts: 3}
"""
    file = jobfile.read(put(tmp_path, text))
    spec = job_spec({"wall_time": "00:10:00", "queue": "slow", "slurm": {"nice": "5"}}, jobfile.roles(file))
    pserver, trainer = spec.roles
    assert (pserver.name, pserver.count, pserver.successes_needed, pserver.command) == ("pserver", 2, 0, "sh ps.sh")
    assert (trainer.count, trainer.min_failed, trainer.resources) == (3, 2, Resources(cpus=1.0))
    assert (trainer.restarts, pserver.restarts) == (3, 0)
    assert (spec.wall_time_seconds, spec.queue, spec.slurm) == (600, "slow", {"nice": "5"})
    with pytest.raises(InvalidError, match="time_limit 30 has no unit"):
        jobfile.asked(jobfile.read(put(tmp_path, "run: x\ntime_limit: '30'\n")))


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"job_type": "tpu"}, "job_type 'tpu' is not known: it is gpu or cpu"),
        ({"distribute": "MPI"}, "distribute 'MPI' is not known"),
        ({"nodes": 4, "cpus": 2}, "nodes and cpus cannot stand beside `roles`"),
        ({"nane": "x"}, "nane is not a keyword of submit"),
    ],
)
def test_a_file_with_roles_is_checked_as_flags_are(tmp_path: Path, asked: Any, says: str) -> None:
    roles = jobfile.roles(jobfile.read(put(tmp_path, "roles: {trainer: {run: x, count: 2}}\n")))
    with pytest.raises(InvalidError, match=re.escape(says)):
        job_spec(asked, roles)


def test_roles_have_the_defaults_of_flags(tmp_path: Path) -> None:
    text = "roles: {pserver: {run: x}, trainer: {run: x, resources: {gpus: 1}}}\n"
    spec = job_spec({}, jobfile.roles(jobfile.read(put(tmp_path, text))))
    assert (spec.job_type, spec.distribute) == ("gpu", "PSERVER")
    alone = job_spec({}, jobfile.roles(jobfile.read(put(tmp_path, "roles: {trainer: {run: x}}\n"))))
    assert (alone.job_type, alone.distribute) == (None, None)


def test_yaml_is_read_by_the_core_schema(tmp_path: Path) -> None:
    text = "name: on\nrun: yes\nenv: {A: no, B: 12:30:45, C: 2020-01-01, D: 0o17, E: true}\ntime_limit: 12:30:45\n"
    file = jobfile.read(put(tmp_path, text))
    assert (file.name, file.run, file.time_limit) == ("on", "yes", "12:30:45")
    assert jobfile.asked(file)["env"] == {"A": "no", "B": "12:30:45", "C": "2020-01-01", "D": "15", "E": "true"}


def test_a_file_may_name_a_part_once_and_merge_it(tmp_path: Path) -> None:
    text = "roles:\n  a: &a {run: x, count: 2}\n  b: {<<: *a, count: 3}\n"
    found = jobfile.roles(jobfile.read(put(tmp_path, text)))
    assert [(role.command, role.count) for role in found] == [("x", 2), ("x", 3)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("rn: true\n", "rn is not a known field; did you mean 'run'?"),
        ("run: true\n", "run must be text, not true or false"),
        ("run: x\ntime_limit: [1]\n", "time_limit must be a whole number or text, not a list"),
        ("roles: {trainer: {count: 1}}\n", "run is missing"),
        ("run: x\nresources: {cpu: 1}\n", "resources.cpu is not a known field; did you mean 'cpus'?"),
        ("run: x\nnodes: two\n", "nodes"),
        ("roles: {trainer: {run: x}}\nrun: y\n", "`roles` says what runs"),
        ("roles: {trainer: {rnu: x}}\n", "rnu is not a known field"),
        ("- run\n", "no mapping"),
        ("", "no mapping"),
        ("a: [", "neither YAML nor JSON"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused_by_name(tmp_path: Path, text: str, says: str) -> None:
    file = put(tmp_path, text)
    with pytest.raises(InvalidError) as caught:
        jobfile.read(file)
    assert str(file) in caught.value.message
    assert says in caught.value.message


def test_a_version_of_python_that_yaml_shortens_is_refused_with_quotes(tmp_path: Path) -> None:
    assert jobfile.asked(jobfile.read(put(tmp_path, "run: x\npython: 3.11\n")))["python"] == "3.11"
    assert jobfile.asked(jobfile.read(put(tmp_path, "run: x\npython: '3.10'\n")))["python"] == "3.10"
    with pytest.raises(InvalidError, match=r"write '3\.10', in quotes"):
        jobfile.asked(jobfile.read(put(tmp_path, "run: x\npython: 3.10\n")))
