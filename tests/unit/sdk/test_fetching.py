"""Small files come many at a time, large ones in ranges; damaged, changed and broken off, they are never mixed up."""

from __future__ import annotations

import os
from email.utils import formatdate
from pathlib import Path

import pytest

from paddlecloud.files.results import Results
from paddlecloud.files.uploads import Uploads
from paddlecloud.model import paths
from paddlecloud.model.errors import UnreachableError
from paddlecloud.model.tree import PACKED_BYTES, RANGE_BYTES
from paddlecloud.sdk.download import download
from paddlecloud.server.transfers import TransferLimits, Transfers
from tests.contract.records import the_job
from tests.unit.sdk.direct import Counted, DirectAnswer, DirectHttp, unreachable_after

JOB = paths.job_id(bytes(16))
LARGE = os.urandom(2 * RANGE_BYTES + 5)
PACK = f"POST /v1/jobs/{JOB}/pack"
FILE = f"GET /v1/jobs/{JOB}/files/model"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return Results(tmp_path / "results").folder(the_job(JOB))


@pytest.fixture
def transfers(tmp_path: Path) -> Transfers:
    return Transfers(Uploads(tmp_path / "files"), Results(tmp_path / "results"), TransferLimits(upload_bytes=2**30))


@pytest.fixture
def http(transfers: Transfers) -> DirectHttp:
    return DirectHttp(transfers)


@pytest.fixture
def model(results: Path) -> Path:
    (results / "model").write_bytes(LARGE)
    return results / "model"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return tmp_path / "output"


class Damaging(DirectHttp):
    """Changes the last byte of the answers to a kind of call, the first `times` times."""

    times = 1
    what = ""

    def request(self, method: str, path: str, **others: object) -> DirectAnswer:
        answer = super().request(method, path, **others)  # type: ignore[arg-type]
        if f"{method} {path}" == self.what and self.times:
            self.times -= 1
            answer.data = answer.data[:-1] + bytes([answer.data[-1] ^ 1])
        return answer


def test_small_files_come_together(http: DirectHttp, results: Path, here: Path) -> None:
    (results / "sub").mkdir()
    for number in range(1500):
        (results / "sub" / str(number)).write_text(f"of {number}")
    download(http, JOB, "", here)
    assert {path.name: path.read_text() for path in (here / JOB / "sub").iterdir()} == {
        str(number): f"of {number}" for number in range(1500)
    }
    assert http.calls == [f"GET /v1/jobs/{JOB}/files", PACK, PACK]


def test_a_file_that_grew_out_of_its_pack_comes_alone(http: DirectHttp, results: Path, here: Path) -> None:
    (results / "a").write_text("stays")
    (results / "grows").write_text("small")
    grown = os.urandom(PACKED_BYTES + 1)

    def grow(method: str, path: str) -> int | None:
        if path.endswith("/pack"):
            (results / "grows").write_bytes(grown)
        return None

    http.breaks = grow
    download(http, JOB, "", here)
    assert (here / JOB / "grows").read_bytes() == grown
    assert (here / JOB / "a").read_text() == "stays"


def test_a_pack_damaged_on_the_way_is_fetched_again(transfers: Transfers, results: Path, here: Path) -> None:
    (results / "a").write_text("whole")
    http = Damaging(transfers)
    http.what = PACK
    download(http, JOB, "", here)
    assert (here / JOB / "a").read_text() == "whole"
    assert http.calls.count(PACK) == 2


def test_a_file_of_a_pack_that_never_arrives_whole_does_not_get_its_name(
    transfers: Transfers, results: Path, here: Path
) -> None:
    (results / "a").write_text("whole")
    http = Damaging(transfers)
    http.what, http.times = PACK, 1000
    with pytest.raises(UnreachableError, match="wrong digest"):
        download(http, JOB, "", here)
    assert not (here / JOB / "a").exists()


def test_a_large_file_comes_in_ranges(http: DirectHttp, model: Path, here: Path) -> None:
    progress = Counted()
    download(http, JOB, "", here, progress)
    assert (here / JOB / "model").read_bytes() == LARGE
    assert abs((here / JOB / "model").stat().st_mtime_ns - model.stat().st_mtime_ns) < 2000
    assert http.calls.count(FILE) == 3
    assert progress.moved == progress.expected == len(LARGE)
    assert os.listdir(here) == [JOB]


def test_a_range_damaged_on_the_way_is_fetched_again(transfers: Transfers, model: Path, here: Path) -> None:
    http = Damaging(transfers)
    http.what, http.times = FILE, 2
    download(http, JOB, "", here)
    assert (here / JOB / "model").read_bytes() == LARGE
    assert http.calls.count(FILE) == 5


def test_a_range_that_never_arrives_whole_leaves_the_file_without_its_name(
    transfers: Transfers, model: Path, here: Path
) -> None:
    http = Damaging(transfers)
    http.what, http.times = FILE, 1000
    with pytest.raises(UnreachableError, match="wrong digest"):
        download(http, JOB, "", here)
    assert not (here / JOB / "model").exists()


def broken_off(http: DirectHttp, here: Path, after: int) -> None:
    http.breaks = unreachable_after(after, FILE)
    with pytest.raises(UnreachableError):
        download(http, JOB, "", here)
    http.breaks = lambda method, path: None
    http.calls.clear()


def test_ranges_that_came_before_a_break_are_not_fetched_again(http: DirectHttp, model: Path, here: Path) -> None:
    broken_off(http, here, 2)
    progress = Counted()
    download(http, JOB, "", here, progress, resume=True)
    assert (here / JOB / "model").read_bytes() == LARGE
    assert http.calls.count(FILE) == 1
    assert progress.moved == progress.expected == len(LARGE)
    assert os.listdir(here) == [JOB]


def test_ranges_that_the_disk_lost_since_are_fetched_again(http: DirectHttp, model: Path, here: Path) -> None:
    broken_off(http, here, 2)
    (listed,) = (here / ".part").glob("*.ranges")
    listed.with_suffix("").write_bytes(bytes(len(LARGE)))
    download(http, JOB, "", here, resume=True)
    assert (here / JOB / "model").read_bytes() == LARGE
    assert http.calls.count(FILE) == 3


@pytest.mark.parametrize("text", ["", '"etag"', '"etag"\n99 0123\n-1 0123\n', '"etag"\n0 0123\nnonsense', "\0\xff"])
def test_a_list_of_ranges_that_makes_no_sense_is_passed_over(
    http: DirectHttp, model: Path, here: Path, text: str
) -> None:
    broken_off(http, here, 2)
    (listed,) = (here / ".part").glob("*.ranges")
    listed.write_text(text, "latin-1")
    download(http, JOB, "", here, resume=True)
    assert (here / JOB / "model").read_bytes() == LARGE


def test_a_large_file_that_changes_meanwhile_is_of_one_version(http: DirectHttp, model: Path, here: Path) -> None:
    changed = os.urandom(len(LARGE))

    def change(method: str, path: str) -> int | None:
        if http.calls.count(FILE) == 2 and model.read_bytes() != changed:
            model.write_bytes(changed)
        return None

    http.breaks = change
    progress = Counted()
    download(http, JOB, "", here, progress)
    assert (here / JOB / "model").read_bytes() == changed
    assert progress.moved == progress.expected == len(LARGE)
    assert os.listdir(here) == [JOB]


def test_a_large_file_that_was_written_just_now_comes_in_one_piece(http: DirectHttp, model: Path, here: Path) -> None:
    http.date = formatdate(model.stat().st_mtime + 1, usegmt=True)
    download(http, JOB, "", here)
    assert (here / JOB / "model").read_bytes() == LARGE
    assert http.calls.count(FILE) == 1
