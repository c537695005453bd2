"""The loss over classes that are split over trainers is the loss over all classes, and so are its gradients."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.frameworks import PYTHON, needs
from tests.ports import free_port
from tests.unit.examples.plsc import JOB

pytestmark = [needs("paddle"), pytest.mark.slow]


@pytest.mark.parametrize(("trainers", "classes", "shares"), [(1, 37, [37]), (2, 10_001, [5001, 5000])])
def test_shards_find_what_one_piece_finds(trainers: int, classes: int, shares: list[int]) -> None:
    answers = on_trainers(trainers, classes)
    assert [answer["trainers"] for answer in answers] == [trainers] * trainers
    assert [answer["classes"] for answer in answers] == shares
    for answer in answers:
        whole, sharded = answer["loss"]
        assert sharded == pytest.approx(whole, rel=1e-5)
        assert answer["largest"] > 1e-2
        assert answer["features"] < 1e-4 * answer["largest"]
        assert answer["centres"] < 1e-4 * answer["largest"]


def on_trainers(count: int, classes: int) -> list[dict[str, Any]]:
    endpoints = [f"127.0.0.{number + 2}:{free_port()}" for number in range(count)]
    begun = [
        subprocess.Popen(
            [str(PYTHON), str(Path(__file__).with_name("within_margin.py")), str(JOB), str(classes)],
            stdout=subprocess.PIPE,
            text=True,
            env={
                "PATH": os.environ["PATH"],
                "OMP_NUM_THREADS": "1",
                "PADDLE_TRAINER_ID": str(rank),
                "PADDLE_TRAINERS_NUM": str(count),
                "PADDLE_CURRENT_ENDPOINT": endpoint,
                "PADDLE_TRAINER_ENDPOINTS": ",".join(endpoints),
                "PADDLE_DISTRI_BACKEND": "gloo",
            },
        )
        for rank, endpoint in enumerate(endpoints)
    ]
    said = [process.communicate(timeout=120)[0] for process in begun]
    assert [process.returncode for process in begun] == [0] * count
    return [json.loads(text.splitlines()[-1]) for text in said]
