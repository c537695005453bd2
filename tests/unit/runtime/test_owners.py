"""Files are given to accounts: all of a folder, no link followed, the folder itself last."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from paddlecloud.runtime import owners, removal

UID = 1_900_000_555
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home/deep/er").mkdir(parents=True)
    (tmp_path / "home/file").write_text("x")
    (tmp_path / "home/deep/er/file").write_text("x")
    (tmp_path / "outside").write_text("x")
    (tmp_path / "home/link").symlink_to(tmp_path / "outside")
    os.mkfifo(tmp_path / "home/pipe")
    return tmp_path / "home"


@as_root
def test_all_of_a_folder_is_given_away_and_nothing_behind_a_link(home: Path) -> None:
    owners.claim(str(home), owners.owned(UID))
    assert {path.lstat().st_uid for path in (home, *home.rglob("*"))} == {UID}
    assert (home.parent / "outside").stat().st_uid == 0


@as_root
def test_a_folder_that_was_given_away_is_not_walked_again_and_one_that_was_not_is(home: Path) -> None:
    owners.claim(str(home), owners.owned(UID))
    os.chown(home / "deep/er/file", 0, 0)
    owners.claim(str(home), owners.owned(UID))
    assert (home / "deep/er/file").stat().st_uid == 0
    os.chown(home, 0, 0)  # as a walk leaves it that was interrupted
    owners.claim(str(home), owners.owned(UID))
    assert (home / "deep/er/file").stat().st_uid == UID


@as_root
def test_what_was_copied_to_the_top_since_is_given_away_too(home: Path) -> None:
    owners.claim(str(home), owners.owned(UID))
    (home / "copied/inner").mkdir(parents=True)
    (home / "copied/inner/data").write_text("x")
    owners.claim_new(str(home), owners.owned(UID))
    assert {path.lstat().st_uid for path in (home / "copied").rglob("*")} == {UID}


@as_root
def test_giving_a_program_away_takes_its_setuid_bit(home: Path) -> None:
    (home / "file").chmod(0o6755)
    owners.claim(str(home), owners.owned(UID))
    assert not (home / "file").stat().st_mode & (stat.S_ISUID | stat.S_ISGID)


def test_a_tree_becomes_writable_for_its_owner_alone(home: Path) -> None:
    (home / "file").chmod(0o444)
    (home / "deep").chmod(0o555)
    home.chmod(0o555)
    owners.claim(str(home), owners.lent(None))
    assert stat.S_IMODE((home / "file").stat().st_mode) == 0o644
    assert stat.S_IMODE((home / "deep").stat().st_mode) == 0o755


def test_what_is_public_can_be_read_by_all_and_programs_stay_programs(home: Path) -> None:
    (home / "file").chmod(0o700)
    (home / "deep/er/file").chmod(0o600)
    (home / "deep").chmod(0o700)
    owners.claim_new(str(home), owners.PUBLIC)
    assert stat.S_IMODE((home / "file").stat().st_mode) == 0o755
    assert stat.S_IMODE((home / "deep/er/file").stat().st_mode) == 0o644
    assert stat.S_IMODE((home / "deep").stat().st_mode) == 0o755


def test_what_a_task_closed_in_a_shared_folder_is_opened_for_the_group(home: Path) -> None:
    wanted = owners.Claim(bits=0o660, folder_bits=0o2770)
    owners.claim(str(home), wanted)
    since = (home / "deep/er").stat().st_mtime
    (home / "deep/er/private").touch(0o600)
    owners.reclaim(str(home), wanted, since)
    assert stat.S_IMODE((home / "deep/er/private").stat().st_mode) == 0o660


def test_a_folder_that_is_deeper_than_any_program_makes_ends_the_walk_and_not_the_server(tmp_path: Path) -> None:
    top = os.open(tmp_path, os.O_RDONLY)
    folder = top
    for _ in range(1500):
        os.mkdir("d", dir_fd=folder)
        inner = os.open("d", os.O_RDONLY, dir_fd=folder)
        if folder != top:
            os.close(folder)
        folder = inner
    os.close(folder)
    os.close(top)
    try:
        owners.claim_new(str(tmp_path), owners.Claim(bits=0o400, folder_bits=0o700))
        owners.reclaim(str(tmp_path), owners.Claim(bits=0o400, folder_bits=0o700), 0.0)
    finally:
        removal.remove(str(tmp_path), "d")
