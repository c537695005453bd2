"""A task on another machine appends to the log of its own job, while it runs, and can do nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.server.running import Running, running
from tests.waiting import wait_until


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path / "data") as made:
        yield made


def token_of(server: Running, job: str) -> str:
    services = server.services
    return services.shipping.token(services.records.get(job))


def test_a_task_appends_and_its_user_reads(server: Running) -> None:
    job = server.run()
    path = f"/v1/jobs/{job}/tasks/trainer-0/log"
    token = token_of(server, job)
    assert server.ask("PUT", f"{path}?offset=0", b"hello\n", token=token).json() == {"length": 6}
    assert server.ask("PUT", f"{path}?offset=0", b"hello\n", token=token).json() == {"length": 6}
    assert server.ask("PUT", f"{path}?offset=7", b"x", token=token).status == 409
    assert server.ask("GET", path).data == b"hello\n"


def test_the_token_of_a_task_opens_nothing_else(server: Running) -> None:
    job, other = server.run(), server.run()
    token = token_of(server, job)
    refused = [
        server.ask("PUT", f"/v1/jobs/{other}/tasks/trainer-0/log?offset=0", b"x", token=token),
        server.ask("GET", f"/v1/jobs/{job}", token=token),
        server.ask("POST", f"/v1/jobs/{job}/kill", token=token),
        server.ask("GET", "/v1/me", token=token),
    ]
    assert [answer.status for answer in refused] == [401] * 4


@pytest.mark.parametrize("token", ["", "pcj_", "pcj_" + "0" * 64, "pcj_é"])
def test_who_has_not_the_token_appends_nothing(server: Running, token: str) -> None:
    job = server.run()
    assert server.ask("PUT", f"/v1/jobs/{job}/tasks/trainer-0/log?offset=0", b"x", token=token).status == 401
    assert not (server.results(job) / "log").exists()


def test_a_users_own_token_does_not_write_logs(server: Running) -> None:
    job = server.run()
    assert server.ask("PUT", f"/v1/jobs/{job}/tasks/trainer-0/log?offset=0", b"x").status == 401


def test_the_log_of_an_ended_job_is_closed(server: Running) -> None:
    job = server.run()
    token = token_of(server, job)
    server.finish(job)
    server.reaches(job, "success")
    answer = server.ask("PUT", f"/v1/jobs/{job}/tasks/trainer-0/log?offset=0", b"x", token=token)
    assert (answer.status, answer.json()["code"]) == (409, "conflict")


def test_of_an_older_attempt_nothing_is_taken_once_a_newer_one_has_begun(server: Running) -> None:
    job = server.run()
    older = token_of(server, job)
    server.backends["local"].lose(f"{job}-1")
    server.services.loop.wake()
    wait_until(lambda: server.services.records.get(job).attempt == 2, "the next attempt has begun")
    for path in ("log?offset=0", "output?offset=0&last=true&path=rank-0/x"):
        assert server.ask("PUT", f"/v1/jobs/{job}/tasks/trainer-0/{path}", b"x", token=older).status == 401
    assert not (server.results(job) / "rank-0" / "x").exists()


@pytest.mark.parametrize(
    ("task", "query", "status"),
    [
        ("trainer-1", "offset=0", 404),
        ("..%2Ftrainer-0", "offset=0", 404),
        ("trainer-0", "", 422),
        ("trainer-0", "offset=-1", 422),
        ("trainer-0", "offset=99999999999999999999", 422),
        ("trainer-0", "offset=0&length=3", 422),
    ],
)
def test_a_wrong_place_is_named_and_changes_nothing(server: Running, task: str, query: str, status: int) -> None:
    job = server.run()
    answer = server.ask("PUT", f"/v1/jobs/{job}/tasks/{task}/log?{query}", b"x", token=token_of(server, job))
    assert answer.status == status
    assert not (server.results(job) / "log").exists()
