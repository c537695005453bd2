"""A download into a folder that has an earlier one: what changed comes, the rest stays as it is."""

from __future__ import annotations

import os
from email.utils import formatdate
from pathlib import Path

import pytest

from paddlecloud.files.results import Results
from paddlecloud.files.uploads import Uploads
from paddlecloud.model import paths
from paddlecloud.model.errors import ConflictError, InvalidError, UnreachableError
from paddlecloud.sdk.download import download
from paddlecloud.server.transfers import TransferLimits, Transfers
from tests.contract.records import the_job
from tests.unit.sdk.direct import Counted, DirectHttp, unreachable_after

JOB = paths.job_id(bytes(16))


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = Results(tmp_path / "results").folder(the_job(JOB))
    for name in ("a", "b", "d/c"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f"first {name}")
    (folder / "latest").symlink_to("a")
    return folder


@pytest.fixture
def http(tmp_path: Path, results: Path) -> DirectHttp:
    limits = TransferLimits(upload_bytes=2**30)
    return DirectHttp(Transfers(Uploads(tmp_path / "files"), Results(tmp_path / "results"), limits))


def contents(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_only_what_changed_is_fetched_again(http: DirectHttp, results: Path, tmp_path: Path) -> None:
    here = tmp_path / "output"
    assert download(http, JOB, "", here, update=True).fetched == 3
    untouched = (here / JOB / "a").stat().st_ino
    (results / "b").write_text("other b")
    (results / "new").write_text("new")
    (results / "latest").unlink()
    (results / "latest").symlink_to("b")
    progress = Counted()
    done = download(http, JOB, "", here, progress, update=True)
    assert (done.files, done.fetched) == (4, 2)
    assert contents(here / JOB) == contents(results)
    assert os.readlink(here / JOB / "latest") == "b"
    assert (here / JOB / "a").stat().st_ino == untouched
    assert progress.moved == progress.expected == done.size
    assert os.listdir(here) == [JOB]


def test_nothing_is_removed_and_what_was_changed_here_comes_again(
    http: DirectHttp, results: Path, tmp_path: Path
) -> None:
    here = tmp_path / "output"
    download(http, JOB, "", here)
    (here / JOB / "notes").write_text("mine")
    (here / JOB / "a").write_text("spoiled")
    (results / "b").unlink()
    download(http, JOB, "", here, update=True)
    assert contents(here / JOB) == contents(results) | {"b": "first b", "notes": "mine"}


def test_a_file_that_was_written_just_now_is_fetched_once_more(http: DirectHttp, results: Path, tmp_path: Path) -> None:
    here = tmp_path / "output"
    written = (results / "a").stat()
    http.date = formatdate(written.st_mtime + 1, usegmt=True)
    download(http, JOB, "", here)
    # Within a tick of the server's clock: another text of the same length, and the same time.
    (results / "a").write_text("secnd a")
    os.utime(results / "a", ns=(written.st_mtime_ns, written.st_mtime_ns))
    download(http, JOB, "", here, update=True)
    assert (here / JOB / "a").read_text() == "secnd a"


def test_an_update_that_was_broken_off_goes_on(http: DirectHttp, results: Path, tmp_path: Path) -> None:
    here = tmp_path / "output"
    download(http, JOB, "", here)
    (results / "a").write_text("second a")
    http.breaks = unreachable_after(0, f"POST /v1/jobs/{JOB}/pack")
    with pytest.raises(UnreachableError):
        download(http, JOB, "", here, update=True)
    http.breaks = lambda method, path: None
    with pytest.raises(InvalidError, match="unfinished"):
        download(http, paths.job_id(b"x" * 16), "", here, update=True)
    assert download(http, JOB, "", here, update=True).fetched == 1
    assert contents(here / JOB) == contents(results)


def test_nothing_is_written_by_way_of_a_link_that_is_here(http: DirectHttp, tmp_path: Path) -> None:
    here = tmp_path / "output"
    (here / JOB).mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (here / JOB / "d").symlink_to(tmp_path / "elsewhere")
    (here / JOB / "a").symlink_to(tmp_path / "elsewhere" / "a")
    with pytest.raises(ConflictError, match="in the way"):
        download(http, JOB, "", here, update=True)
    (here / JOB / "d").unlink()
    download(http, JOB, "", here, update=True)
    assert os.listdir(tmp_path / "elsewhere") == []
    assert (here / JOB / "a").read_text() == "first a"
