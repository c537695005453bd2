"""Downloads: whole files in a new folder, broken off and resumed, from servers good and bad."""

from __future__ import annotations

import errno
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from paddlecloud.files.results import Results
from paddlecloud.files.uploads import Uploads
from paddlecloud.model import paths, wire
from paddlecloud.model.errors import InvalidError, NotFoundError, PaddleCloudError, UnreachableError
from paddlecloud.model.transfers import FileEntry, FilePage
from paddlecloud.model.tree import Kind, pack
from paddlecloud.sdk.download import download, unused
from paddlecloud.sdk.target import Target
from paddlecloud.server.transfers import TransferLimits, Transfers
from tests.contract.records import the_job
from tests.trees import digest
from tests.unit.sdk.direct import Counted, DirectAnswer, DirectHttp, unreachable_after

JOB = paths.job_id(bytes(16))
LARGE = os.urandom(3 * 1024 * 1024)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = Results(tmp_path / "results").folder(the_job(JOB))
    (folder / "log").mkdir()
    (folder / "log/trainer-0.log").write_text("hello\n")
    (folder / "rank-0/deep").mkdir(parents=True)
    (folder / "rank-0/model").write_bytes(LARGE)
    (folder / "rank-0/deep" / ("n" * 255)).write_text("")
    (folder / "rank-0/line\nbreak?#%20").write_text("odd")
    Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9")).write_text("latin")
    (folder / "rank-0/latest").symlink_to("model")
    (folder / "empty").mkdir()
    return folder


@pytest.fixture
def http(tmp_path: Path, results: Path) -> DirectHttp:
    limits = TransferLimits(upload_bytes=2**30)
    return DirectHttp(Transfers(Uploads(tmp_path / "files"), Results(tmp_path / "results"), limits))


def contents(folder: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def test_results_come_back_below_the_folder_named_for_output(http: DirectHttp, results: Path, tmp_path: Path) -> None:
    progress = Counted()
    done = download(http, JOB, "", tmp_path / "new" / "output", progress)
    assert contents(tmp_path / "new/output" / JOB) == contents(results)
    assert os.readlink(tmp_path / "new/output" / JOB / "rank-0/latest") == "model"
    assert os.listdir(tmp_path / "new/output") == [JOB]
    assert (done.files, done.skipped) == (5, ())
    assert progress.moved == progress.expected == done.size == len(LARGE) + 6 + 3 + 5
    model = tmp_path / "new/output" / JOB / "rank-0/model"
    assert abs(model.stat().st_mtime - (results / "rank-0/model").stat().st_mtime) < 0.001


def test_a_prefix_brings_only_what_is_below_it(http: DirectHttp, tmp_path: Path) -> None:
    download(http, JOB, f"output/{JOB}/log", tmp_path / "output")
    assert contents(tmp_path / "output" / JOB) == {"log": None, "log/trainer-0.log": b"hello\n"}


def test_an_existing_folder_is_refused_before_anything_is_fetched(http: DirectHttp, tmp_path: Path) -> None:
    (tmp_path / "output").mkdir()
    (tmp_path / "link").symlink_to("nowhere")
    for name in ("output", "link"):
        for resume in (False, True):
            with pytest.raises(InvalidError, match=f"/{name}' exists: name a new folder, such as /.*/{name}-2$"):
                download(http, JOB, "", tmp_path / name, resume=resume)
    assert http.calls == []
    (tmp_path / "output-2").symlink_to("nowhere")
    assert unused(tmp_path / "output") == tmp_path / "output-3"


def test_only_a_full_disk_asks_for_room(http: DirectHttp) -> None:
    with pytest.raises(PaddleCloudError, match="no such file or directory; name a folder that you can write to"):
        download(http, JOB, "", Path("/proc/x"))
    with pytest.raises(PaddleCloudError, match="no space left on device; make room"), Target(Path("x"), JOB).writing():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_nothing_is_made_for_a_prefix_that_is_not_there(http: DirectHttp, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        download(http, JOB, "nothing", tmp_path / "output")
    assert not (tmp_path / "output").exists()


def test_a_connection_that_breaks_in_the_middle_of_a_file_is_taken_up_there(http: DirectHttp, tmp_path: Path) -> None:
    cuts = [1024 * 1024, 512 * 1024, 512 * 1024]
    http.breaks = lambda method, path: cuts.pop() if path.endswith("model") and cuts else None
    progress = Counted()
    download(http, JOB, "", tmp_path / "output", progress)
    assert (tmp_path / "output" / JOB / "rank-0/model").read_bytes() == LARGE
    assert progress.moved == progress.expected
    assert len([call for call in http.calls if call.endswith("model")]) == 4


def test_a_download_that_was_broken_off_is_resumed(http: DirectHttp, results: Path, tmp_path: Path) -> None:
    def breaks(method: str, path: str) -> int | None:
        if path.endswith("model") and len([call for call in http.calls if call.endswith("model")]) > 1:
            raise UnreachableError("the server does not answer")
        return 1024 * 1024

    http.breaks = breaks
    with pytest.raises(UnreachableError):
        download(http, JOB, "", tmp_path / "output")
    assert (tmp_path / "output/.part").is_dir()
    http.calls.clear()
    http.breaks = lambda method, path: 2 * 1024 * 1024 + 1 if path.endswith("model") else None
    progress = Counted()
    download(http, JOB, "", tmp_path / "output", progress, resume=True)
    assert contents(tmp_path / "output" / JOB) == contents(results)
    assert os.listdir(tmp_path / "output") == [JOB]
    assert progress.moved == progress.expected
    # The answer would have broken after two megabytes: one was here already.
    assert len([call for call in http.calls if call.endswith("model")]) == 1


def test_a_file_that_changed_between_two_runs_is_fetched_anew(http: DirectHttp, results: Path, tmp_path: Path) -> None:
    http.breaks = unreachable_after(0, f"GET /v1/jobs/{JOB}/files/")
    with pytest.raises(UnreachableError):
        download(http, JOB, "", tmp_path / "output")
    for path in (results / "log/trainer-0.log", results / "rank-0/model"):
        path.write_bytes(b"changed" + path.read_bytes())
    http.breaks = lambda method, path: None
    download(http, JOB, "", tmp_path / "output", resume=True)
    assert contents(tmp_path / "output" / JOB) == contents(results)


def test_the_unfinished_download_of_another_job_is_not_resumed(http: DirectHttp, tmp_path: Path) -> None:
    http.breaks = unreachable_after(0, f"GET /v1/jobs/{JOB}/files/")
    with pytest.raises(UnreachableError):
        download(http, JOB, "", tmp_path / "output")
    with pytest.raises(InvalidError, match="exists, with an unfinished download in it"):
        download(http, paths.job_id(b"x" * 16), "", tmp_path / "output", resume=True)


class Damaging(DirectHttp):
    """Changes a byte of a file on its way, the first `times` times."""

    times = 0

    def request(self, method: str, path: str, **others: object) -> DirectAnswer:
        answer = super().request(method, path, **others)  # type: ignore[arg-type]
        if path.endswith("model") and self.times:
            self.times -= 1
            answer.data = answer.data[:-1] + bytes([answer.data[-1] ^ 1])
        return answer


def test_a_file_damaged_on_the_way_is_fetched_again(http: DirectHttp, tmp_path: Path) -> None:
    damaging = Damaging(http._transfers)
    damaging.times = 1
    download(damaging, JOB, "", tmp_path / "output")
    assert (tmp_path / "output" / JOB / "rank-0/model").read_bytes() == LARGE


def test_a_file_that_never_arrives_whole_does_not_get_its_name(http: DirectHttp, tmp_path: Path) -> None:
    damaging = Damaging(http._transfers)
    damaging.times = 1000
    with pytest.raises(UnreachableError, match="wrong digest"):
        download(damaging, JOB, "", tmp_path / "output")
    assert not (tmp_path / "output" / JOB / "rank-0/model").exists()


def test_a_file_without_a_digest_is_not_trusted(http: DirectHttp, tmp_path: Path) -> None:
    http.digests = False
    with pytest.raises(PaddleCloudError, match="without a digest"):
        download(http, JOB, "", tmp_path / "output")


class Hostile(DirectHttp):
    """Lists what it is told to, and has a file behind every name."""

    listed: tuple[FileEntry, ...] = ()

    def request(self, method: str, path: str, **others: object) -> DirectAnswer:
        if path.endswith("/files"):
            return DirectAnswer(200, wire.encode(FilePage(items=self.listed)), {})
        if path.endswith("/pack"):
            files = [entry for entry in self.listed if entry.kind is Kind.FILE]
            return DirectAnswer(200, pack((digest(b"hello\n"), b"hello\n") for _ in files), {})
        return super().request(method, f"/v1/jobs/{JOB}/files/log/trainer-0.log", **others)  # type: ignore[arg-type]


def entry(path: str, kind: Kind = Kind.FILE, target: str = "") -> FileEntry:
    return FileEntry(path=path, size=6, modified_at=datetime(2020, 5, 17, tzinfo=UTC), kind=kind, target=target)


def everything_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.mark.parametrize(
    "path",
    [
        f"output/{JOB}/../../../evil",
        "../evil",
        f"output/{JOB}/a/../../evil",
        f"output/{JOB}/a\0b",
        f"output/{paths.job_id(b'x' * 16)}/evil",
        f"output/{JOB}/",
    ],
)
def test_a_path_that_leads_out_is_never_written(http: DirectHttp, tmp_path: Path, path: str) -> None:
    hostile = Hostile(http._transfers)
    hostile.listed = (entry(path),)
    before = everything_below(tmp_path)
    with pytest.raises(PaddleCloudError):
        download(hostile, JOB, "", tmp_path / "output")
    new = everything_below(tmp_path) - before
    assert all(path == "output" or path.startswith(("output/.part", f"output/{JOB}")) for path in new)


def test_links_that_lead_out_are_left_out_and_said(http: DirectHttp, tmp_path: Path) -> None:
    hostile = Hostile(http._transfers)
    hostile.listed = tuple(
        entry(f"output/{JOB}/{path}", Kind.LINK, target)
        for path, target in {"up": "../..", "etc": "/etc", "in": "d/file", "by": "d/up", "d/up": "../.."}.items()
    )
    done = download(hostile, JOB, "", tmp_path / "output")
    assert set(done.skipped) == {"up", "etc", "by", "d/up"}
    assert os.readlink(tmp_path / "output" / JOB / "in") == "d/file"


def test_nothing_is_written_by_way_of_a_link(http: DirectHttp, tmp_path: Path) -> None:
    hostile = Hostile(http._transfers)
    hostile.listed = (
        entry(f"output/{JOB}/d", Kind.LINK, "."),
        entry(f"output/{JOB}/d/file"),
    )
    done = download(hostile, JOB, "", tmp_path / "output")
    assert done.skipped == ("d",)
    (tmp_path / "second/.part").mkdir(parents=True)
    (tmp_path / "second/.part/job").write_text(JOB)
    (tmp_path / "second" / JOB).mkdir()
    (tmp_path / "second" / JOB / "d").symlink_to(tmp_path)
    with pytest.raises(PaddleCloudError, match="in the way"):
        download(hostile, JOB, "", tmp_path / "second", resume=True)
    assert not (tmp_path / "file").exists()


@pytest.mark.parametrize("job", ["..", "../elsewhere", "", "job-1"])
def test_a_job_that_is_none_names_no_folder(tmp_path: Path, job: str) -> None:
    service = Transfers(Uploads(tmp_path / "f"), Results(tmp_path / "r"), TransferLimits(upload_bytes=1))
    with pytest.raises(InvalidError, match="not a job's id"):
        download(DirectHttp(service), job, "", tmp_path / "new")
    assert not (tmp_path / "new").exists()
