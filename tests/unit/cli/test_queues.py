"""Queues, typed: their list, a job that names one, and what is offered when TAB is pressed."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.unit.cli.command import Command
from tests.unit.cli.test_completion import bash
from tests.unit.server.running import Running, running

QUEUES = {
    "clusters": {"local": {"policy": "open"}},
    "queues": {
        "fcr": {"cluster": "local", "time_limit": "00:30:00"},
        "fcr-slow": {"cluster": "local", "time_limit": "99:59:59", "priority": -5},
        "lab": {"users": ["ann", "bob"], "priority": 10},
        "of-bob": {"users": ["bob"]},
    },
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("server") / "data", QUEUES) as made:
        yield made


def test_queues_are_listed_with_limit_cluster_priority_and_who(command: Command) -> None:
    assert [line.split() for line in command.out("queues").splitlines()] == [
        ["NAME", "CLUSTER", "LIMIT", "PRIORITY", "USERS"],
        ["fcr", "local", "00:30:00", "0", "everyone"],
        ["fcr-slow", "local", "99:59:59", "-5", "everyone"],
        ["lab", "default", "as", "its", "cluster", "+10", "ann,", "bob"],
    ]
    assert command.out("queues", "-o", "name").split() == ["fcr", "fcr-slow", "lab"]
    assert json.loads(command.out("queues", "-o", "json"))[0]["time_limit_seconds"] == 1800


def test_a_job_that_names_a_queue_shows_it(command: Command) -> None:
    job = command.out("submit", "--no-files", "--queue", "fcr", "--", "true").strip()
    assert "queue    " in command.out("show", job)
    assert command.out("query_job", f"--job_id={job}").splitlines()[13] == "queue: fcr"
    assert "fcr" in command.out("ls", "-o", "wide")
    other = command.out("submit", "--no-files", "--", "true").strip()
    assert "queue:" not in command.out("query_job", f"--job_id={other}")


def test_a_job_file_names_one_and_a_flag_another(command: Command) -> None:
    (command.folder / "job.yaml").write_text("run: 'true'\nqueue: fcr\ntime_limit: 2h\n")
    refused = command.type("submit", "--no-files", "-f", "job.yaml", code=2)
    assert "queue fcr takes jobs of 00:30:00 at most, and 02:00:00 is asked for: fcr-slow, lab would" in refused.stderr
    job = command.out("submit", "--no-files", "-f", "job.yaml", "--queue", "fcr-slow").strip()
    assert json.loads(command.out("show", job, "-o", "json"))["job"]["spec"]["queue"] == "fcr-slow"


def test_bash_offers_the_queues_that_its_user_may_name(command: Command) -> None:
    assert bash("submit", "--queue", "f", command=command) == ["fcr", "fcr-slow"]
    assert bash("run", "--queue", "=", "o", command=command) == []
