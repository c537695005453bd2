"""Real frameworks by every launcher on one, two and three tasks: nobody trains alone who was to train with others."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from tests.flow.lab import Lab
from tests.flow.trainings import TRAININGS
from tests.frameworks import SETTINGS, needs

CELLS = [
    pytest.param(name, tasks, marks=needs(training.package), id=f"{name}-{tasks}")
    for name, training in TRAININGS.items()
    for tasks in (1, 2, 3)
]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str, int], list[dict[str, float]]]]:
    """What the processes of a cell told at their end; the jobs of a framework are sent at once, and queue."""
    lab = Lab(tmp_path_factory.mktemp("frameworks"))
    lab.configure(SETTINGS)
    lab.type("up")
    client = lab.client()
    sent: dict[tuple[str, int], str] = {}

    def send(name: str) -> None:
        training = TRAININGS[name]
        folder = lab.folder(name, train_py=training.script)
        for tasks in (1, 2, 3):
            job = client.submit(folder, command=training.command, nodes=tasks, name=f"{name}-{tasks}")
            sent[name, tasks] = job.id

    def told(name: str, tasks: int) -> list[dict[str, float]]:
        if (name, tasks) not in sent:
            send(name)
        lab.ends(sent[name, tasks], "success", seconds=200)
        results = lab.work / f"{name}-{tasks}"
        client.download(sent[name, tasks], results)
        return [json.loads(path.read_text()) for path in results.glob("**/rank-*/seen-*.json")]

    yield told
    lab.close()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "tasks"), CELLS)
def test_every_process_is_in_the_world_of_all(
    trained: Callable[[str, int], list[dict[str, float]]], name: str, tasks: int
) -> None:
    told = sorted(trained(name, tasks), key=lambda seen: seen["rank"])
    assert [seen["rank"] for seen in told] == list(range(tasks))
    assert {seen["world"] for seen in told} == {tasks}
    assert {seen["total"] for seen in told} == {tasks * (tasks + 1) / 2}
