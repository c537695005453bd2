"""The example without a framework does what its README says, without a server too; all name what they need."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tests.ports import free_ports

JOB = ROOT / "examples" / "plain" / "job"


@pytest.mark.parametrize(("trainers", "pservers"), [(2, 0), (3, 0), (1, 1), (2, 2)])
def test_plain_gives_every_rank_the_model_of_one_trainer(tmp_path: Path, trainers: int, pservers: int) -> None:
    alone = _finish([_start(tmp_path / "alone")])
    addresses = [f"127.0.0.1:{port}" for port in free_ports(trainers + pservers)]
    contract = {"PADDLE_TRAINERS_NUM": str(trainers), "PADDLE_TRAINER_ENDPOINTS": ",".join(addresses[pservers:])}
    if pservers:
        contract["PADDLE_PSERVERS_IP_PORT_LIST"] = ",".join(addresses[:pservers])
    tasks = [
        _start(tmp_path / f"pserver-{number}", TRAINING_ROLE="PSERVER", **_own_address(address), **contract)
        for number, address in enumerate(addresses[:pservers])
    ]
    tasks += [
        _start(tmp_path / f"rank-{rank}", TRAINING_ROLE="TRAINER", PADDLE_TRAINER_ID=str(rank), **contract)
        for rank in range(trainers)
    ]
    logs = _finish(tasks)
    losses = [float(line.rpartition(" ")[2]) for line in logs[-1].splitlines() if line.startswith("pass ")]
    assert losses == sorted(losses, reverse=True), "the loss falls"
    assert losses[-1] < losses[0]
    models = [json.loads((tmp_path / f"rank-{rank}" / "model.json").read_text()) for rank in range(trainers)]
    assert all(model == models[0] for model in models)
    assert models[0]["weights"] == pytest.approx(json.loads((tmp_path / "alone" / "model.json").read_text())["weights"])
    assert alone


def test_plain_fails_when_a_trainer_is_lost(tmp_path: Path) -> None:
    addresses = [f"127.0.0.1:{port}" for port in free_ports(2)]
    contract = {"PADDLE_TRAINERS_NUM": "2", "PADDLE_TRAINER_ENDPOINTS": ",".join(addresses), "PASSES": "1000000"}
    tasks = [_start(tmp_path / f"rank-{rank}", PADDLE_TRAINER_ID=str(rank), **contract) for rank in range(2)]
    for line in iter(tasks[1].stdout.readline if tasks[1].stdout else str, ""):
        if line.startswith("pass "):
            break
    tasks[1].kill()
    tasks[1].communicate(timeout=30)
    said, _ = tasks[0].communicate(timeout=30)
    assert tasks[0].returncode == 1
    assert "has gone" in said


def _start(output: Path, **env: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-u", "train.py"],
        cwd=JOB,
        env={"PASSES": "40", "OUTPUT_PATH": str(output), "PYTHONDONTWRITEBYTECODE": "1", **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _finish(tasks: list[subprocess.Popen[str]]) -> list[str]:
    logs = []
    for task in tasks:
        said, _ = task.communicate(timeout=60)
        assert task.returncode == 0, said
        logs.append(said)
    return logs


def _own_address(address: str) -> dict[str, str]:
    host, _, port = address.rpartition(":")
    return {"POD_IP": host, "PADDLE_PORT": port}


@pytest.mark.parametrize("file", sorted((ROOT / "examples").rglob("requirements.txt")), ids=str)
def test_an_example_names_what_paddlepaddle_imports_without_asking_for_it(file: Path) -> None:
    named = file.read_text()
    assert "paddlepaddle" not in named or ("setuptools" in named and "numpy<2.4" in named)
