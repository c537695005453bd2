"""The server's side of bytes: limits, pages, and logs of any length in little memory."""

from __future__ import annotations

import os
import resource
import tracemalloc
from contextlib import closing
from pathlib import Path

import pytest

from paddlecloud.files.results import Results
from paddlecloud.files.uploads import Uploads
from paddlecloud.model import paths
from paddlecloud.model.errors import FullError, InvalidError, NotFoundError, TooLargeError
from paddlecloud.model.tree import CHUNK_BYTES, PACK_BYTES, pack
from paddlecloud.server.transfers import TransferLimits, Transfers
from tests import trees
from tests.contract.records import a_job

JOB = a_job("ann")
TASK = "trainer-0"


def transfers(root: Path, limits: TransferLimits) -> Transfers:
    return Transfers(Uploads(root / "files"), Results(root / "results"), limits)


@pytest.fixture
def service(tmp_path: Path) -> Transfers:
    return transfers(tmp_path, TransferLimits(upload_bytes=2**30))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    folder = Results(tmp_path / "results").folder(JOB)
    (folder / "log").mkdir()
    return folder / paths.log_file(TASK)


def test_a_plan_says_what_is_missing_until_the_tree_is_laid_out(service: Transfers) -> None:
    wanted = trees.manifest({"a": b"1", "b": b"2", "c": b"1"})
    plan = service.plan("ann", wanted)
    assert (plan.tree, set(plan.missing)) == (wanted.id, {trees.digest(b"1"), trees.digest(b"2")})
    with pytest.raises(NotFoundError):
        service.tree("ann", plan.tree)
    service.put("ann", trees.digest(b"1"), b"1")
    service.put_pack("ann", pack([(trees.digest(b"2"), b"2")]))
    assert service.plan("ann", wanted).missing == ()
    assert (service.tree("ann", plan.tree) / "c").read_bytes() == b"1"
    assert service.plan("ann", wanted).missing == ()


def test_over_the_limit_the_ten_largest_files_are_named(tmp_path: Path) -> None:
    service = transfers(tmp_path, TransferLimits(upload_bytes=50))
    with pytest.raises(TooLargeError) as refused:
        service.plan("ann", trees.manifest({f"file-{size}": bytes(size) for size in range(1, 13)}))
    named = [line.split()[-1] for line in refused.value.message.splitlines()[1:]]
    assert named == [f"file-{size}" for size in range(12, 2, -1)]


def test_a_folder_of_too_many_files_is_refused(tmp_path: Path) -> None:
    service = transfers(tmp_path, TransferLimits(upload_bytes=50, entries=2))
    with pytest.raises(TooLargeError, match="has 3 files"):
        service.plan("ann", trees.manifest({"a": b"", "b": b"", "c": b""}))


def test_folders_that_only_paths_name_count_as_well(tmp_path: Path) -> None:
    service = transfers(tmp_path, TransferLimits(upload_bytes=50, entries=5))
    deep = {"a/b/c": b"", "a/b/d": b""}
    with pytest.raises(TooLargeError, match="has 6 files and folders, the limit is 5"):
        service.plan("ann", trees.manifest(deep | {"a/e/f": b""}))
    assert service.plan("ann", trees.manifest(deep, trees.folder("a"), trees.folder("a/b"))).missing == ()
    assert not any((tmp_path / "files").rglob("f"))


@pytest.mark.parametrize(("paths", "levels", "says"), [(7500, 128, "960000 files and folders"), (1500, 128, "MiB")])
def test_a_manifest_that_is_mostly_folders_is_refused_in_little_memory(
    tmp_path: Path, paths: int, levels: int, says: str
) -> None:
    service = transfers(tmp_path, TransferLimits(upload_bytes=50))
    named = {f"{number:05}" + f"{'n' * 20}/" * (levels - 1) + "x": b"" for number in range(paths)}
    manifest = trees.manifest(named)
    tracemalloc.start()
    try:
        with pytest.raises(TooLargeError, match=says):
            service.plan("ann", manifest)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3 * sum(map(len, named))


def test_an_upload_that_the_disk_has_no_room_for_is_refused_before_it_is_sent(tmp_path: Path) -> None:
    uploads = Uploads(tmp_path / "files", spare_bytes=2**60)
    service = Transfers(uploads, Results(tmp_path / "results"), TransferLimits(upload_bytes=50))
    with pytest.raises(FullError):
        service.plan("ann", trees.manifest({"a": b"x"}))


@pytest.mark.parametrize(
    "body",
    [
        pack([(trees.digest(b"x"), b"x")])[:-1],
        pack([(trees.digest(b"x"), b"x")])[:20],
        pack([(trees.digest(b"x"), b"x"), (trees.digest(b"y"), b"z")]),
        pack([(trees.digest(b"x"), b"x")] * 5000),
    ],
)
def test_nothing_of_a_broken_pack_is_kept(service: Transfers, body: bytes) -> None:
    with pytest.raises(InvalidError):
        service.put_pack("ann", body)
    assert service.plan("ann", trees.manifest({"a": b"x"})).missing == (trees.digest(b"x"),)


def test_oversized_bodies_are_refused(service: Transfers) -> None:
    with pytest.raises(TooLargeError):
        service.put("ann", "0" * 64, bytes(CHUNK_BYTES + 1))
    with pytest.raises(TooLargeError):
        service.put_pack("ann", bytes(PACK_BYTES + 1))


@pytest.mark.parametrize("limit", [0, -1, 10_001])
def test_a_page_has_a_sensible_length(service: Transfers, log: Path, limit: int) -> None:
    with pytest.raises(InvalidError):
        service.list(JOB, limit=limit)


def test_a_file_is_read_in_pieces(service: Transfers, log: Path) -> None:
    content = os.urandom(3 * 1024 * 1024 + 7)
    log.write_bytes(content)
    opened = service.open(JOB, f"output/{JOB.id}/log/{TASK}.log")
    with closing(opened):
        with log.open("ab") as growing:
            growing.write(b"more")
        assert b"".join(opened.pieces()) == content
        assert b"".join(opened.pieces(5, 10)) == content[5:10]
    assert opened.etag.startswith(f'"{len(content):x}-')
    again = service.open(JOB, f"log/{TASK}.log")
    again.close()
    assert again.etag != opened.etag


def test_a_log_can_be_asked_for_before_there_is_one(service: Transfers) -> None:
    assert service.read_log(JOB, TASK, 0, 100) == b""
    assert service.tail_log(JOB, TASK, 10) == 0
    assert service.log_size(JOB, TASK) == 0
    with pytest.raises(NotFoundError):
        service.open_log(JOB, TASK)


def test_a_task_name_is_not_a_path(service: Transfers, log: Path) -> None:
    log.write_text("x")
    for task in ("../log/trainer-0", "trainer-0/../trainer-0", ""):
        assert service.read_log(JOB, task, 0, 10) == b""


@pytest.mark.parametrize(
    ("text", "lines", "tail"),
    [
        (b"", 3, b""),
        (b"a\nb\nc\n", 0, b""),
        (b"a\nb\nc\n", 1, b"c\n"),
        (b"a\nb\nc\n", 2, b"b\nc\n"),
        (b"a\nb\nc\n", 3, b"a\nb\nc\n"),
        (b"a\nb\nc\n", 9, b"a\nb\nc\n"),
        (b"a\nb\nunfinished", 1, b"unfinished"),
        (b"a\nb\nunfinished", 2, b"b\nunfinished"),
        (b"\n\n\n", 2, b"\n\n"),
        (b"x" * 200_000 + b"\n" + b"y" * 200_000 + b"\n", 1, b"y" * 200_000 + b"\n"),
    ],
)
def test_a_tail_begins_at_its_first_line(service: Transfers, log: Path, text: bytes, lines: int, tail: bytes) -> None:
    log.write_bytes(text)
    offset = service.tail_log(JOB, TASK, lines)
    assert text[offset:] == tail
    assert service.read_log(JOB, TASK, offset, 10) == tail[:10]


def test_a_log_of_a_gigabyte_is_tailed_and_read_in_little_memory(service: Transfers, log: Path) -> None:
    with log.open("wb") as file:
        file.truncate(2**30)
        file.seek(2**30)
        file.write(b"\nlast\n")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert service.read_log(JOB, TASK, service.tail_log(JOB, TASK, 1), 100) == b"last\n"
    assert service.tail_log(JOB, TASK, 5) == log.stat().st_size - 64 * 1024 * 1024
    assert len(service.read_log(JOB, TASK, 2**29, 2**30)) <= 2**20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 * 1024
