"""Uploads by a client: only what is missing, each chunk once, broken off and resumed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from paddlecloud.files.results import Results
from paddlecloud.files.uploads import Uploads
from paddlecloud.model.errors import ConflictError, InvalidError, UnreachableError
from paddlecloud.model.tree import CHUNK_BYTES
from paddlecloud.sdk.bundle import scan
from paddlecloud.sdk.transfer import upload
from paddlecloud.server.transfers import TransferLimits, Transfers
from tests.unit.sdk.direct import Counted, DirectAnswer, DirectHttp, unreachable_after


@pytest.fixture
def transfers(tmp_path: Path) -> Transfers:
    return Transfers(Uploads(tmp_path / "files"), Results(tmp_path / "results"), TransferLimits(upload_bytes=2**30))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "job"
    (folder / "data").mkdir(parents=True)
    (folder / "large").write_bytes(os.urandom(3 * CHUNK_BYTES + 1))
    (folder / "twin").write_bytes((folder / "large").read_bytes())
    for number in range(50):
        (folder / "data" / f"{number}").write_bytes(b"%d" % number)
    (folder / "run.sh").write_text("true")
    (folder / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("data/1")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_upload_sends_each_chunk_once_and_small_ones_together(transfers: Transfers, folder: Path) -> None:
    http, progress = DirectHttp(transfers), Counted()
    tree = upload(http, scan(folder), progress)
    assert contents(transfers.tree("ann", tree)) == contents(folder)
    assert sorted(call.rsplit("/", 1)[0] for call in http.calls if call.startswith("PUT")) == ["PUT /v1/chunks"] * 3
    assert http.calls.count("POST /v1/chunks") == 1
    small = sum(len(content) for path, content in contents(folder).items() if path.startswith(("data", "run")))
    assert progress.moved == progress.expected == 3 * CHUNK_BYTES + 1 + small


def test_what_the_server_has_is_not_sent_again(transfers: Transfers, folder: Path) -> None:
    upload(DirectHttp(transfers), scan(folder))
    (folder / "data" / "new").write_text("new")
    http, progress = DirectHttp(transfers), Counted()
    upload(http, scan(folder), progress)
    assert http.calls == ["POST /v1/trees", "POST /v1/chunks", "POST /v1/trees"]
    assert progress.moved == 3


def test_an_upload_that_broke_off_goes_on_where_it_was(transfers: Transfers, folder: Path) -> None:
    http, bundle = DirectHttp(transfers), scan(folder)
    http.breaks = unreachable_after(1, "PUT")
    with pytest.raises(UnreachableError):
        upload(http, bundle)
    resumed = DirectHttp(transfers)
    tree = upload(resumed, bundle)
    assert contents(transfers.tree("ann", tree)) == contents(folder)
    assert len([call for call in resumed.calls if call.startswith("PUT")]) == 2


@pytest.mark.parametrize("file", ["large", "data/7"])
def test_a_file_that_changes_while_it_is_sent_is_named_and_nothing_is_laid_out(
    transfers: Transfers, folder: Path, file: str
) -> None:
    (folder / "twin").unlink()
    bundle = scan(folder)
    status = (folder / file).stat()
    (folder / file).write_bytes(bytes(byte ^ 0xFF for byte in (folder / file).read_bytes()))
    # With its old time and length even a careful look at the file shows nothing: only its hash does.
    os.utime(folder / file, ns=(status.st_atime_ns, status.st_mtime_ns))
    http = DirectHttp(transfers)
    with pytest.raises(InvalidError, match=f"'{file}' changed"):
        upload(http, bundle)
    assert transfers.plan("ann", bundle.manifest).missing


def test_a_server_that_keeps_nothing_is_told_of(transfers: Transfers, folder: Path) -> None:
    class Forgetful(DirectHttp):
        def request(self, method: str, path: str, **others: object) -> DirectAnswer:
            if path == "/v1/trees":
                return super().request(method, path, **others)  # type: ignore[arg-type]
            return DirectAnswer(204, b"", {})

    with pytest.raises(ConflictError, match="does not keep"):
        upload(Forgetful(transfers), scan(folder))


def test_a_server_that_asks_for_what_is_not_of_the_folder_gets_nothing(transfers: Transfers, folder: Path) -> None:
    class Curious(DirectHttp):
        def request(self, method: str, path: str, **others: object) -> DirectAnswer:
            return DirectAnswer(200, b'{"tree": "0", "missing": ["/etc/passwd"]}', {})

    with pytest.raises(ConflictError, match="not of this folder"):
        upload(Curious(transfers), scan(folder))
