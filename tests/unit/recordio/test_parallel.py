"""Several processes give the same as one, in the same order, and an error where one is lost."""

from __future__ import annotations

import os
import signal
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest

from paddlecloud.recordio import CorruptError, Writer
from paddlecloud.recordio.parallel import mapped


def die(_: bytes) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_processes_share_the_work_and_keep_the_order(tmp_path: Path) -> None:
    file = _numbers(tmp_path)
    assert list(mapped(int, file, processes=1)) == list(range(300))
    assert list(mapped(int, file, processes=2)) == list(range(300))
    shares = [list(mapped(int, file, processes=1, trainer_id=trainer, trainer_count=3)) for trainer in range(3)]
    assert sorted(number for share in shares for number in share) == list(range(300))


def test_damage_that_another_process_finds_is_told_as_here(tmp_path: Path) -> None:
    file = _numbers(tmp_path)
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(CorruptError, match="its checksum is"):
        list(mapped(int, file, processes=2))


def test_a_process_that_is_killed_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BrokenProcessPool):
        list(mapped(die, _numbers(tmp_path), processes=2))


def test_who_stops_early_leaves_no_process(tmp_path: Path) -> None:
    going = mapped(int, _numbers(tmp_path), processes=2)
    assert next(going) == 0
    del going
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    names = [Path(f"/proc/{pid}/cmdline") for pid in children.read_text().split()]
    assert [name for name in names if b"spawn_main" in name.read_bytes()] == []


def _numbers(folder: Path) -> Path:
    with Writer(folder / "numbers", chunk_bytes=50) as writer:
        writer.write_all(b"%d" % number for number in range(300))
    return folder / "numbers"
