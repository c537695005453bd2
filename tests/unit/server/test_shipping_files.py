"""A task on a machine that shares no disk with the server asks what to do, and sends what it leaves: for its own job
alone, and whatever it sends can be sent again.
"""

from __future__ import annotations

import io
import json
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.runtime.folder import TaskFolder, stop_file
from paddlecloud.runtime.node import TASKS
from tests.unit.server.running import Running, running
from tests.unit.server.test_shipping import token_of


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path / "data") as made:
        yield made


def placed(server: Running, job: str) -> Path:
    """The folder of a running job's handle, as the backend of a cluster makes it."""
    record = server.services.records.get(job)
    assert record.placement is not None
    folder = server.services.shipping.tasks / record.placement.cluster / record.handle
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "trainer-0").mkdir(exist_ok=True)
    (folder / "trainer-0" / "task.json").write_text(json.dumps({"tree": None, "command": "true"}))
    (folder / TASKS).write_text("trainer-0")
    return folder


def tell(server: Running, job: str, news: dict[str, Any], task: str = "trainer-0") -> int:
    body = json.dumps(news).encode()
    return server.ask("PUT", f"/v1/jobs/{job}/tasks/{task}/news", body, token=token_of(server, job)).status


def claim(server: Running, job: str, number: int = 0, by: str = "12.0") -> Any:
    body = json.dumps({"number": number, "by": by}).encode()
    return server.ask("POST", f"/v1/jobs/{job}/claims", body, token=token_of(server, job))


def send(server: Running, job: str, query: str, piece: bytes) -> Any:
    return server.ask("PUT", f"/v1/jobs/{job}/tasks/trainer-0/output?{query}", piece, token=token_of(server, job))


def test_the_first_run_of_a_task_is_told_what_to_do_as_often_as_it_asks(server: Running) -> None:
    job = server.run()
    placed(server, job)
    for _ in range(2):
        told = claim(server, job).json()
        assert told == {"task": "trainer-0", "order": {"tree": None, "command": "true"}, "brings_tree": False}


def test_a_second_run_of_a_task_is_told_nothing(server: Running) -> None:
    job = server.run()
    placed(server, job)
    assert claim(server, job, by="12.0").status == 200
    answer = claim(server, job, by="13.0")
    assert answer.status == 409
    assert "started twice" in answer.json()["detail"]


def test_what_is_being_stopped_is_not_begun(server: Running) -> None:
    job = server.run()
    Path(stop_file(str(placed(server, job)))).touch()
    assert claim(server, job).status == 409


@pytest.mark.parametrize(
    ("number", "by", "status"), [(1, "12.0", 404), (-1, "12.0", 404), (0, "", 400), (0, "x" * 201, 400)]
)
def test_a_claim_that_makes_no_sense_is_refused(server: Running, number: int, by: str, status: int) -> None:
    job = server.run()
    folder = placed(server, job)
    assert claim(server, job, number, by).status in (status, 422)
    assert not (folder / "trainer-0" / "claim").exists()


def test_a_job_of_a_cluster_that_shares_its_disk_has_nothing_to_claim(server: Running) -> None:
    assert claim(server, server.run()).status == 404


def test_the_runtime_is_an_archive_that_python_runs(server: Running) -> None:
    job = server.run()
    answer = server.ask("GET", f"/v1/jobs/{job}/runtime", token=token_of(server, job))
    names = zipfile.ZipFile(io.BytesIO(answer.data)).namelist()
    assert {"__main__.py", "paddlecloud/runtime/node.py", "paddlecloud/runtime/away.py"} <= set(names)


def test_a_job_without_files_has_none_to_fetch(server: Running) -> None:
    job = server.run()
    assert server.ask("GET", f"/v1/jobs/{job}/tree", token=token_of(server, job)).status == 404


@pytest.mark.parametrize("path", ["trainer-0/inputs/0", "trainer-0/inputs/-1", "trainer-9/inputs/0", "x/inputs/0"])
def test_an_input_that_a_task_has_not_is_not_found(server: Running, path: str) -> None:
    job = server.run()
    assert server.ask("GET", f"/v1/jobs/{job}/tasks/{path}", token=token_of(server, job)).status == 404


def test_what_a_task_tells_is_in_its_folder(server: Running) -> None:
    job = server.run()
    folder = TaskFolder(str(placed(server, job) / "trainer-0"))
    began = time.time()
    assert tell(server, job, {"started_at": began}) == 204
    assert folder.begun is not None
    assert folder.begun.started_at == began
    assert tell(server, job, {"started_at": began, "restarts": 2, "quiet_since": began}) == 204
    assert (folder.so_far.restarts, folder.so_far.quiet_since) == (2, began)
    end = {"exit_code": 3, "ended_at": time.time(), "tail": "the end"}
    assert tell(server, job, {"started_at": began, "restarts": 2, "end": end}) == 204
    assert tell(server, job, {"started_at": began, "end": {"exit_code": 0}}) == 204
    assert folder.ended is not None
    assert (folder.ended.exit_code, folder.ended.tail, folder.ended.restarts) == (3, "the end", 2)


@pytest.mark.parametrize(("told", "ended"), [(1.0, 2.0), (2.0**32 - 1, 2.0**32 - 1), (2.0**32 - 1, 1.0)])
def test_times_that_cannot_be_are_brought_within_the_life_of_the_job(
    server: Running, told: float, ended: float
) -> None:
    job = server.run()
    folder = TaskFolder(str(placed(server, job) / "trainer-0"))
    assert tell(server, job, {"started_at": told, "end": {"exit_code": 0, "ended_at": ended}}) == 204
    first = server.services.records.get(job).created_at.timestamp()
    assert folder.ended is not None
    assert first <= (folder.ended.started_at or 0) <= (folder.ended.ended_at or 0) <= time.time()


@pytest.mark.parametrize(
    "news",
    [
        {},
        {"started_at": -1},
        {"started_at": 1e300},
        {"started_at": 1, "quiet_since": 1e300},
        {"started_at": 1, "restarts": -1},
        {"started_at": 1, "end": {"ended_at": 1e300}},
        {"started_at": 1, "end": {"exit_code": 256}},
        {"started_at": 1, "end": {"signal": -9}},
        {"started_at": 1, "end": {"reason": "x" * 2001}},
        {"started_at": 1, "end": {"tail": "x" * 8193}},
        {"started_at": 1, "more": 1},
    ],
)
def test_news_that_cannot_be_change_nothing(server: Running, news: dict[str, Any]) -> None:
    job = server.run()
    folder = TaskFolder(str(placed(server, job) / "trainer-0"))
    assert tell(server, job, news) in (400, 422)
    assert (folder.begun, folder.ended) == (None, None)


def test_news_of_a_task_that_is_not_there_are_refused(server: Running) -> None:
    job = server.run()
    placed(server, job)
    assert tell(server, job, {"started_at": 1}, task="trainer-7") == 404


def test_a_file_comes_in_pieces_and_is_there_when_it_is_whole(server: Running) -> None:
    job = server.run()
    placed(server, job)
    there = server.results(job) / "rank-0" / "model" / "weights.bin"
    path = "path=rank-0/model/weights.bin"
    assert send(server, job, f"{path}&offset=0", b"abc").json() == {"length": 3, "whole": False}
    assert send(server, job, f"{path}&offset=0", b"abcd").json() == {"length": 4, "whole": False}
    assert not there.exists()
    assert send(server, job, f"{path}&offset=9", b"x").status == 409
    assert send(server, job, f"{path}&offset=4&last=true&executable=true", b"ef").json() == {"length": 6, "whole": True}
    assert there.read_bytes() == b"abcdef"
    assert there.stat().st_mode & 0o777 == 0o755
    assert send(server, job, f"{path}&offset=0&last=true", b"").status == 200
    assert there.read_bytes() == b""


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("rank-1/x", 403),
        ("log/trainer-1/x", 403),
        ("log/trainer-0.log", 403),
        ("rank-0", 403),
        ("rank-0/../../other", 400),
        ("/etc/passwd", 400),
        ("rank-0/a%00b", 400),
        ("", 400),
    ],
)
def test_a_file_goes_only_where_its_task_leaves_files(server: Running, path: str, status: int) -> None:
    job = server.run()
    placed(server, job)
    assert send(server, job, f"path={path}&offset=0&last=true", b"x").status in (status, 422)
    assert not (server.results(job) / "rank-0").exists()


def test_a_link_in_the_results_is_not_followed(server: Running, tmp_path: Path) -> None:
    job = server.run()
    placed(server, job)
    (server.results(job)).mkdir(parents=True, exist_ok=True)
    (server.results(job) / "rank-0").symlink_to(tmp_path)
    assert send(server, job, "path=rank-0/x&offset=0&last=true", b"x").status in (404, 409)
    assert not (tmp_path / "x").exists()


def test_once_the_job_has_ended_nothing_more_is_taken(server: Running) -> None:
    job = server.run()
    placed(server, job)
    token = token_of(server, job)
    server.finish(job)
    server.reaches(job, "success")
    for method, path in (("PUT", "tasks/trainer-0/news"), ("POST", "claims"), ("GET", "runtime"), ("GET", "tree")):
        assert server.ask(method, f"/v1/jobs/{job}/{path}", b"{}", token=token).status == 409
