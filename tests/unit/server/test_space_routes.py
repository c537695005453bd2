"""The space over HTTP: who is told what, who may collect, and what is said of files that are gone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.server.running import Running, running
from tests.waiting import wait_until

REMOVED = r"the {kind} of {job} were removed on \d{{4}}-\d\d-\d\d by the server's retention \(retention.{kind} = 1 s\)"


@pytest.fixture(scope="module")
def forgetful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that keeps results and logs for a second, and looks once an hour what may go."""
    settings = {"clusters": {"local": {"policy": "open"}}, "retention": {"results": "1s", "logs": "1s"}}
    with running(tmp_path_factory.mktemp("forgetful") / "data", settings) as made:
        yield made


def ended(server: Running) -> str:
    job = server.run()
    server.say(job, "trainer-0", b"said\n")
    (server.results(job) / "rank-0").mkdir()
    (server.results(job) / "rank-0/model").write_bytes(bytes(5000))
    server.finish(job)
    server.reaches(job, "success")
    return job


def collected(server: Running, job: str) -> None:
    """Its results and logs have gone."""

    def gone() -> bool:
        assert server.ask("POST", "/v1/space/collect", {}, token=server.root).status == 200
        return len(server.get(f"/v1/jobs/{job}")["removed"]) == 2

    wait_until(gone, "its results and logs have gone")


def detail(server: Running, path: str) -> str:
    answer = server.ask("GET", path)
    assert answer.status == 404, answer.data
    return str(answer.json()["detail"])


def test_files_that_are_gone_are_told_of_with_the_day_and_the_setting(forgetful: Running) -> None:
    job = ended(forgetful)
    collected(forgetful, job)
    results, logs = (re.compile(REMOVED.format(kind=kind, job=job)) for kind in ("results", "logs"))
    assert results.fullmatch(detail(forgetful, f"/v1/jobs/{job}/files/rank-0/model"))
    assert results.fullmatch(detail(forgetful, f"/v1/jobs/{job}/files?prefix=rank-0"))
    assert logs.fullmatch(detail(forgetful, f"/v1/jobs/{job}/files?prefix=log"))
    assert logs.fullmatch(detail(forgetful, f"/v1/jobs/{job}/files/log/trainer-0.log"))
    assert logs.fullmatch(detail(forgetful, f"/v1/jobs/{job}/tasks/trainer-0/log"))
    assert logs.fullmatch(detail(forgetful, f"/v1/jobs/{job}/logs?follow=0"))
    both = detail(forgetful, f"/v1/jobs/{job}/files")
    assert results.search(both)
    assert logs.search(both)


def test_of_a_job_whose_files_are_gone_all_else_is_told_as_before(forgetful: Running) -> None:
    job = ended(forgetful)
    before = forgetful.get(f"/v1/jobs/{job}")
    collected(forgetful, job)
    after = forgetful.get(f"/v1/jobs/{job}")
    assert [one["kind"] for one in after.pop("removed")] == ["results", "logs"]
    assert (before.pop("log_tasks"), after.pop("log_tasks")) == (["trainer-0"], [])
    before.pop("removed")
    assert after == before


def test_the_files_of_a_running_job_stay_whatever_is_collected(forgetful: Running) -> None:
    job = forgetful.run()
    forgetful.say(job, "trainer-0", b"said\n")
    collected(forgetful, ended(forgetful))
    assert forgetful.ask("GET", f"/v1/jobs/{job}/tasks/trainer-0/log").data == b"said\n"
    forgetful.finish(job)


def test_a_file_that_was_never_there_is_not_said_to_be_removed(server: Running) -> None:
    job = ended(server)
    assert detail(server, f"/v1/jobs/{job}/files/rank-0/other") == "there is no file 'rank-0/other'"


def test_a_user_sees_what_is_theirs_and_an_admin_everything(server: Running) -> None:
    ended(server)
    mine = server.get("/v1/space?now=true", server.bob)
    assert mine["user"] == "bob"
    assert [share["kind"] for share in mine["shares"]] == ["uploads", "results", "logs"]
    assert mine["disks"] == mine["users"] == []
    everything = server.get("/v1/space?users=true", server.root)
    assert everything["user"] is None
    assert "ann" in [share["user"] for share in everything["users"]]
    assert everything["disks"][0]["free_bytes"] > 0


def test_what_is_of_others_is_for_admins(server: Running) -> None:
    assert server.ask("GET", "/v1/space?users=true").status == 403
    assert server.ask("POST", "/v1/space/collect", {}).status == 403


def test_a_dry_run_over_http_takes_nothing(forgetful: Running, tmp_path: Path) -> None:
    job = ended(forgetful)

    def told() -> dict[str, int]:
        answer = forgetful.ask("POST", "/v1/space/collect", {"dry_run": True}, token=forgetful.root).json()
        assert answer["dry_run"]
        return {one["kind"]: one["count"] for one in answer["collected"]}

    wait_until(lambda: told() == {"results": 1, "logs": 1}, "they may go")
    assert forgetful.get(f"/v1/jobs/{job}")["removed"] == []
    assert (forgetful.results(job) / "rank-0/model").exists()
