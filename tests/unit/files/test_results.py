"""Results of jobs, written by code that may be hostile, and read without harm."""

from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from paddlecloud.files.results import Results
from paddlecloud.model import paths
from paddlecloud.model.errors import InvalidError, NotFoundError
from paddlecloud.model.tree import Kind
from tests.contract.records import the_job

JOB = paths.job_id(bytes(16))
OTHER = paths.job_id(bytes(15) + b"\1")
MINE = the_job(JOB)


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(tmp_path / "results")


@pytest.fixture
def folder(results: Results) -> Path:
    return results.folder(MINE)


def write(folder: Path, *files: str) -> None:
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(file.encode())


def listed(results: Results, prefix: str = "", limit: int = 1000) -> list[str]:
    """All paths below `output/<job>/`, by as many pages as it takes."""
    found: list[str] = []
    cursor = None
    while True:
        page = results.list(MINE, prefix, cursor, limit)
        assert len(page.items) <= limit
        found += [entry.path.removeprefix(f"output/{JOB}/") for entry in page.items]
        if (cursor := page.next_cursor) is None:
            return found


def test_results_are_listed_as_seed_000_shows(results: Results, folder: Path) -> None:
    write(folder, "log/trainer-0.log", "rank-0/0/@LR_DECAY_COUNTER@", "rank-0/0/batch_norm_0.b_0")
    page = results.list(MINE)
    assert [entry.path for entry in page.items] == [
        f"output/{JOB}/",
        f"output/{JOB}/log/trainer-0.log",
        f"output/{JOB}/rank-0/0/@LR_DECAY_COUNTER@",
        f"output/{JOB}/rank-0/0/batch_norm_0.b_0",
    ]
    assert [entry.size for entry in page.items] == [0, 17, 27, 25]
    assert page.items[0].kind is Kind.FOLDER


@pytest.mark.parametrize("prefix", ["log", "/log/", f"output/{JOB}/log", f"output/{JOB}/log/trainer-0.log"])
def test_a_prefix_names_a_file_or_a_folder(results: Results, folder: Path, prefix: str) -> None:
    write(folder, "log/trainer-0.log", "log-old/x", "rank-0/x")
    assert listed(results, prefix) == ["log/trainer-0.log"]


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
def test_pages_together_are_the_whole_list(results: Results, folder: Path, limit: int) -> None:
    write(folder, "a-b", "a/b/c", "a/b-", "b/1", "b/2", "b/3", "c/d/e/f", "z")
    (folder / "empty" / "inner").mkdir(parents=True)
    for number in range(5):
        os.mkfifo(folder / "b" / f"0-{number}")
    everything = ["", "a-b", "a/b-", "a/b/c", "b/1", "b/2", "b/3", "c/d/e/f", "empty/inner/", "z"]
    assert sorted(listed(results, limit=limit)) == sorted(everything)
    assert listed(results, limit=limit) == listed(results)
    assert listed(results, "b", limit=limit) == ["b/1", "b/2", "b/3"]


def test_odd_names_survive(results: Results, folder: Path) -> None:
    odd = [b"line\nbreak", b"caf\xe9", "café".encode(), b"\xff" * 255, "\uef80".encode(), b" ", b"a\\b", b"100%25"]
    for name in odd:
        Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_bytes(name)
    found = listed(results)[1:]
    assert {paths.raw_of(name) for name in found} == set(odd)
    assert len({name.encode() for name in found}) == len(odd)
    for listed_name in found:
        with closing(results.open(MINE, f"output/{JOB}/{listed_name}")) as opened:
            assert opened.read(0, 1000) == paths.raw_of(listed_name)
        assert opened.entry.path == f"output/{JOB}/{listed_name}"


def test_a_link_is_listed_with_its_target_and_never_followed(results: Results, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/key").write_text("sk")
    write(folder, "real")
    (folder / "passwd").symlink_to("/etc/passwd")
    (folder / "inside").symlink_to("real")
    (folder / "out").symlink_to(tmp_path / "secret")
    (folder / "up").symlink_to("../..")

    links = {entry.path.rpartition("/")[2]: entry.target for entry in results.list(MINE).items if entry.target}
    assert links == {"passwd": "/etc/passwd", "inside": "real", "out": str(tmp_path / "secret"), "up": "../.."}
    for path in ("passwd", "inside", "out", "out/key", "up/secret/key"):
        with pytest.raises(NotFoundError):
            results.open(MINE, path)
    for prefix in ("out/key", "up/secret"):
        with pytest.raises(NotFoundError):
            results.list(MINE, prefix)
    assert listed(results, "out") == ["out"]


def test_many_files_are_read_as_one_is_and_nothing_else(results: Results, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("sk")
    write(folder, "a", "d/b", "d/c", "e")
    (folder / "link").symlink_to("a")
    (folder / "out").symlink_to(tmp_path)
    os.mkfifo(folder / "fifo")
    named = ["d/b", "out/key", "d/c", "d/none", "link", "fifo", "d", "", "none/x", "none/y", "e", f"output/{JOB}/a"]
    assert list(results.read(MINE, named, 3)) == [b"d/b", None, b"d/c", *[None] * 7, b"e", b"a"]
    assert list(results.read(MINE, ["d/b", "a"], 1)) == [None, b"a"]
    with pytest.raises(InvalidError):
        results.read(MINE, ["a", "../key"], 10)
    open_files = len(os.listdir("/proc/self/fd"))
    some = results.read(MINE, ["d/b", "d/c"], 10)
    assert next(some) == b"d/b"
    del some
    assert len(os.listdir("/proc/self/fd")) == open_files


def test_a_folder_that_becomes_a_link_while_many_files_are_read_is_not_left(
    results: Results, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret").mkdir()
    write(tmp_path / "secret", "b")
    write(folder, "d/a", "d/b", "e")
    reading = results.read(MINE, ["d/a", "d/b", "e", "d/b"], 10)
    assert next(reading) == b"d/a"
    (folder / "d").rename(folder / "moved")
    (folder / "d").symlink_to(tmp_path / "secret")
    assert list(reading) == [b"d/b", b"e", None]


def test_a_results_folder_that_is_a_link_is_not_entered(results: Results, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/key").write_text("sk")
    folder.rmdir()
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotFoundError):
        results.open(MINE, "key")
    with pytest.raises(NotFoundError):
        results.list(MINE)


@pytest.mark.timeout(10)
def test_fifos_and_sockets_are_neither_opened_nor_listed(results: Results, folder: Path) -> None:
    os.mkfifo(folder / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        at = os.open(folder, os.O_RDONLY)
        server.bind(f"/proc/self/fd/{at}/socket")
        os.close(at)
        assert listed(results) == [""]
        for name in ("fifo", "socket"):
            with pytest.raises(NotFoundError):
                results.open(MINE, name)


@pytest.mark.parametrize("path", ["../../etc/passwd", "a/../../b", "/etc/../..", "a\0b", "a//b", "", "/", "nothing"])
def test_a_hostile_path_finds_nothing(results: Results, folder: Path, path: str) -> None:
    with pytest.raises((InvalidError, NotFoundError)):
        results.open(MINE, path)


@pytest.mark.parametrize("job", ["", "..", "../x", "job-1", JOB + "/.."])
def test_only_a_job_id_names_a_folder(results: Results, job: str) -> None:
    for call in (results.folder, results.list):
        with pytest.raises(NotFoundError):
            call(the_job(job))


def test_results_of_another_job_are_not_reached_by_a_prefix(results: Results, folder: Path) -> None:
    write(results.folder(the_job(OTHER)), "secret")
    with pytest.raises(NotFoundError):
        results.list(MINE, f"output/{OTHER}")
    with pytest.raises(NotFoundError):
        results.open(MINE, f"output/{OTHER}/secret")


def test_a_job_without_results_has_an_empty_list(results: Results) -> None:
    assert results.list(MINE).items == ()


@pytest.mark.parametrize("cursor", ["nonsense", f"output/{OTHER}/a", "\udc80", ""])
def test_a_cursor_of_another_list_is_refused(results: Results, folder: Path, cursor: str) -> None:
    with pytest.raises(InvalidError):
        results.list(MINE, "", cursor)


def test_folders_below_the_deepest_level_are_listed_and_not_entered(results: Results, folder: Path) -> None:
    at = os.open(folder, os.O_RDONLY)
    for _ in range(paths.LEVELS + 5):
        os.mkdir("d", dir_fd=at)
        inner = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
    os.close(at)
    (deepest,) = listed(results)[1:]
    assert deepest == "d/" * paths.LEVELS


def test_a_time_that_no_calendar_has_does_not_end_the_list(results: Results, folder: Path) -> None:
    write(folder, "old", "new")
    os.utime(folder / "old", (-(2**33), -(2**33)))
    os.utime(folder / "new", (2**33, 2**33))
    assert listed(results) == ["", "new", "old"]


def test_a_file_that_is_swapped_for_a_link_is_never_followed(results: Results, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "file").write_bytes(b"mine")
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            for name in ("link", "file"):
                os.rename(folder / name, folder / "swapped")
                os.rename(folder / "swapped", folder / name)

    swapping = threading.Thread(target=swap)
    swapping.start()
    seen = set()
    try:
        for _ in range(3000):
            try:
                opened = results.open(MINE, "swapped")
            except NotFoundError:
                continue
            with closing(opened):
                seen.add(opened.read(0, 1000))
    finally:
        done.set()
        swapping.join()
    assert seen <= {b"mine"}


def test_what_is_not_listed_costs_one_look_however_much_there_is_of_it(results: Results) -> None:
    folder = results.folder(MINE) / "rank-0"
    folder.mkdir()
    for number in range(3000):
        os.mkfifo(folder / f"{number:04}")
    (folder / "last").touch()
    began = time.process_time()
    page = results.list(MINE, "rank-0", limit=1)
    assert [entry.path for entry in page.items] == [f"output/{JOB}/rank-0/last"]
    assert time.process_time() - began < 1.0
