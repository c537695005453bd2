"""Job files: what they may say, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.cli import jobfile
from paddlecloud.model.errors import InvalidError
from paddlecloud.model.job import Resources

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
priority: 5
time_limit: 2h
slurm: {constraint: v100, exclusive: true, nice: 5}
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
        "priority": 5,
        "wall_time": "2h",
        "cpus": 2,
        "memory": "4Gi",
        "gpus": 1,
        "env": {"A": "b", "N": "1", "F": "true"},
        "slurm": {"constraint": "v100", "exclusive": "true", "nice": "5"},
    }
    found = jobfile.read(put(tmp_path, WHOLE))
    assert jobfile.asked(found) == expected
    assert found.workdir == "job"


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
    spec = jobfile.with_roles(file, {"wall_time": "00:10:00", "queue": "slow"})
    pserver, trainer = spec.roles
    assert (pserver.name, pserver.count, pserver.successes_needed, pserver.command) == ("pserver", 2, 0, "sh ps.sh")
    assert (trainer.count, trainer.min_failed, trainer.resources) == (3, 2, Resources(cpus=1.0))
    assert (trainer.restarts, pserver.restarts) == (3, 0)
    assert (spec.wall_time_seconds, spec.queue) == (600, "slow")
    with pytest.raises(InvalidError, match="time_limit 30 has no unit"):
        jobfile.with_roles(file, {"wall_time": "30"})


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
