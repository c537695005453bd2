"""What one old client may take of the server: threads, memory and room in an answer; and what `rm` leaves alone."""

from __future__ import annotations

import os
import socket
import sys
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from paddlecloud.model.pfs import Who
from paddlecloud.server.shares import TURNS
from tests.unit.server.running import Running, running

HOME = "/pfs/local/home/ann"
FILES = "/api/v1/pfs/files"
ANN = Who(user="ann")
POOL = 40  # the threads that all requests share
MIB = 2**20


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("server") / "data"


@pytest.fixture(scope="module")
def server(data: Path) -> Iterator[Running]:
    with running(data) as made:
        made.services.pfs.make_folder(ANN, HOME)
        yield made


@pytest.fixture(scope="module")
def home(server: Running, data: Path) -> Path:
    """Ann's home on the disk."""
    return data / "pfs" / "local" / "home" / "ann"


def write(server: Running, *names: str) -> None:
    for name in names:
        server.services.pfs.write(ANN, f"{HOME}/{name}", [b"x"], size=1)


def names(server: Running, folder: str = HOME) -> list[str]:
    return [entry.path.rpartition("/")[2] for entry in server.services.pfs.list(ANN, folder, limit=10_000).items]


def remove(server: Running, *paths: str, recursive: bool = True) -> Any:
    return server.ask("DELETE", FILES, {"method": "rm", "r": recursive, "path": paths}).json()


def test_a_pattern_leaves_what_jobs_left_alone_and_removes_the_rest(server: Running) -> None:
    write(server, "a/x", "b", "z")
    answer = remove(server, f"{HOME}/*", f"{HOME}/a/x")
    assert answer["err"] == "", answer
    assert names(server) == ["output"]


@pytest.mark.parametrize(
    "refused", [f"{HOME}/output", f"{HOME}/output/x", "/pfs/local/home/bob/x", "/pfs/public/x", HOME]
)
def test_rm_removes_all_that_was_named_or_nothing(server: Running, refused: str) -> None:
    write(server, "a/x", "b")
    assert remove(server, f"{HOME}/*", refused)["err"] != ""
    assert names(server) == ["a", "b", "output"]


def at_work(function: str) -> int:
    """How many threads are within a function of this name."""
    stacks = (traceback.walk_stack(frame) for frame in sys._current_frames().values())
    return sum(any(frame.f_code.co_name == function for frame, _ in stack) for stack in stacks)


def test_removals_of_one_user_take_only_that_users_threads(server: Running, home: Path) -> None:
    (home / "many").mkdir()
    for number in range(3000):
        (home / "many" / f"{number}").touch()
    with ThreadPoolExecutor(POOL) as threads:
        asked = [threads.submit(remove, server, f"{HOME}/many/*none") for _ in range(POOL)]
        most = 0
        while not all(one.done() for one in asked):
            most = max(most, at_work("_remove"))
        assert 1 < most <= TURNS
        assert [one.result() for one in asked] == [{"err": "", "results": None}] * len(asked)


def test_what_is_listed_is_listed_once_and_within_a_limit(server: Running, home: Path) -> None:
    (home / "listed").mkdir()
    for number in range(1100):
        (home / "listed" / f"{number}").touch()

    def listed(*patterns: str) -> Any:
        asked = urlencode([("method", "ls"), *(("arg", f"{HOME}/listed{pattern}") for pattern in patterns)])
        return server.ask("GET", f"{FILES}?{asked}").json()

    assert len(listed(*[""] * 50)["results"]) == 1100
    assert len(listed("", "/*")["results"]) == 2200
    refused = listed(*("/" + "*" * count for count in range(1, 100)))
    assert refused["results"] is None
    assert "more than 100000 files" in refused["err"]


def test_a_file_of_too_many_chunks_is_not_described_at_once(server: Running) -> None:
    size = 4096 * 10_001
    answer = server.ask("POST", FILES, {"method": "touch", "filesize": size, "path": f"{HOME}/draft"}).json()
    assert answer["err"] == ""

    def described(**asked: object) -> Any:
        query = urlencode({"method": "GetChunkMeta", "path": f"{HOME}/draft", **asked})
        return server.ask("GET", f"/api/v1/pfs/chunks?{query}").json()

    assert "more than 10000 chunks" in described(chunksize=4096)["err"]
    assert described(chunksize=4096, offset=size - 4096)["results"]["len"] == 0
    assert len(described(chunksize=MIB)["results"]) == -(-size // MIB)


def test_logs_of_all_trainers_fit_into_one_answer(server: Running) -> None:
    job = server.run(count=3, name="talk")
    server.say(job, "trainer-0", b"short\n")
    for task in ("trainer-1", "trainer-2"):
        server.say(job, task, b"a line of the log\n" * 500_000 + f"last of {task}\n".encode())

    def logs(lines: int) -> str:
        return str(server.get(f"/api/v1/logs?{urlencode({'jobname': 'talk', 'n': lines})}")["msg"])

    whole = logs(10**8)
    assert len(whole) < 4 * MIB + 1000
    blocks = whole.split("=" * 26)[2::2]
    assert [len(block) > MIB for block in blocks] == [False, True, True]
    assert [block.splitlines()[-1] for block in blocks] == ["short", "last of trainer-1", "last of trainer-2"]
    assert blocks[1].splitlines()[1].startswith("[only the end of a log of 8.6")
    few = logs(2).split("=" * 26)[2::2]
    assert few[1] == "\na line of the log\nlast of trainer-1\n"
    assert logs(0).split("=" * 26)[2::2] == ["\n", "\n", "\n"]


def memory_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_chunks_that_nobody_reads_take_little_memory(server: Running, home: Path) -> None:
    size = 32 * MIB
    (home / "large").write_bytes(b"\1" * size)
    host, port = server.url.removeprefix("http://").split(":")
    query = urlencode({"chunksize": size, "offset": 0, "path": f"{HOME}/large"})
    head = f"GET /api/v1/pfs/storage/chunks?{query} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.ann}\r\n\r\n"
    before = memory_bytes()
    with ExitStack() as stack:
        for _ in range(16):
            connection = stack.enter_context(socket.create_connection((host, int(port)), timeout=20))
            connection.sendall(head.encode())
            assert connection.recv(15) == b"HTTP/1.1 200 OK"
        assert memory_bytes() - before < 200 * MIB
    answer = server.ask("GET", f"/api/v1/pfs/storage/chunks?{query}")
    assert len(answer.data) == int(answer.headers["content-length"])
    assert answer.data.partition(b"\r\n\r\n")[2].startswith(b"\1" * size + b"\r\n--")
