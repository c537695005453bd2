"""Real frameworks by every launcher on one, two and three tasks: nobody trains alone who was to train with others."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.flow.lab import Lab
from tests.flow.trainings import TRAININGS
from tests.frameworks import needs

CELLS = [
    pytest.param(name, tasks, marks=needs(training.package), id=f"{name}-{tasks}")
    for name, training in TRAININGS.items()
    for tasks in (1, 2, 3)
]


@pytest.fixture(scope="module")
def trained(frameworks_lab: Lab) -> Callable[[str, int], list[dict[str, float]]]:
    """What the processes of a cell told at their end; the jobs of a framework are sent at once, and queue."""
    client = frameworks_lab.client()
    sent: dict[tuple[str, int], str] = {}

    def send(name: str) -> None:
        training = TRAININGS[name]
        folder = frameworks_lab.folder(name, train_py=training.script)
        for tasks in (1, 2, 3):
            job = client.submit(folder, command=training.command, nodes=tasks, name=f"{name}-{tasks}")
            sent[name, tasks] = job.id

    def told(name: str, tasks: int) -> list[dict[str, float]]:
        if (name, tasks) not in sent:
            send(name)
        frameworks_lab.ends(sent[name, tasks], "success", seconds=200)
        results = frameworks_lab.work / f"{name}-{tasks}"
        client.download(sent[name, tasks], results)
        return [json.loads(path.read_text()) for path in results.glob("**/rank-*/seen-*.json")]

    return told


@pytest.mark.slow
@pytest.mark.parametrize(("name", "tasks"), CELLS)
def test_every_process_is_in_the_world_of_all(
    trained: Callable[[str, int], list[dict[str, float]]], name: str, tasks: int
) -> None:
    told = sorted(trained(name, tasks), key=lambda seen: seen["rank"])
    assert [seen["rank"] for seen in told] == list(range(tasks))
    assert {seen["world"] for seen in told} == {tasks}
    assert {seen["total"] for seen in told} == {tasks * (tasks + 1) / 2}
