"""A folder as one stream."""

from __future__ import annotations

import gc
import io
import os
import tarfile
from pathlib import Path

import pytest

from paddlecloud.files.packed import packed, packed_share
from paddlecloud.runtime.taskfile import Given
from tests.unit.runtime.orders import ALONE


def test_all_that_a_folder_has_comes_as_one_stream(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    (folder / "empty").mkdir(parents=True)
    (folder / "train.py").write_text("print()")
    (folder / "large").write_bytes(os.urandom(3_000_001))
    (folder / "block").write_bytes(bytes(1024))
    (folder / "run.sh").write_text("true")
    (folder / "run.sh").chmod(0o755)
    (folder / ("long" * 60)).write_text("x")
    (folder / "link").symlink_to("train.py")
    (folder / "way").symlink_to("empty")
    (folder / os.fsdecode(b"odd-\xff")).write_text("odd")
    with tarfile.open(fileobj=io.BytesIO(b"".join(packed(folder)))) as came:
        came.extractall(tmp_path / "there", filter="tar")
    there = tmp_path / "there"
    assert sorted(path.relative_to(there) for path in there.rglob("*")) == sorted(
        path.relative_to(folder) for path in folder.rglob("*")
    )
    for path in folder.rglob("*"):
        found = there / path.relative_to(folder)
        assert found.is_symlink() == path.is_symlink()
        if path.is_file():
            assert found.read_bytes() == path.read_bytes()
            assert found.stat().st_mode & 0o100 == path.stat().st_mode & 0o100


@pytest.fixture
def given(tmp_path: Path) -> Given:
    folder = tmp_path / "data"
    folder.mkdir()
    for number in range(3):
        (folder / f"part-{number}").write_text(f"{number}")
    return Given("data", str(folder), "", "train", False, "", False, False, "")


def test_a_share_that_nobody_reads_keeps_nothing_open(given: Given) -> None:
    gc.collect()  # what earlier tests of this process left open
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        packed_share(ALONE, given, "0")
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_that_became_a_pipe_is_not_waited_for(given: Given) -> None:
    pieces = packed_share(ALONE, given, "0")
    path = Path(given.folder, "part-1")
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(OSError, match="no longer a regular file"):
        b"".join(pieces)
