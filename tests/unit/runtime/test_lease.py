"""The lease of an attempt: granted, revoked, and lost with its folder, but not with a disk that does not answer."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from paddlecloud.runtime import lease


@pytest.fixture
def handle(tmp_path: Path) -> str:
    made = tmp_path / "job-1-1"
    made.mkdir()
    return str(made)


def watch(handle: str) -> lease.LeaseWatch:
    lease.grant(handle)
    found = lease.watch(handle)
    assert found is not None
    assert not found.look()
    return found


def test_a_revoked_lease_is_lost_for_good(handle: str) -> None:
    watched, inode = watch(handle), os.stat(lease.lease_file(handle)).st_ino
    lease.revoke(handle)
    assert watched.look()
    assert os.stat(lease.lease_file(handle)).st_ino == inode, "a new file may be seen late on a network disk"
    lease.grant(handle)
    assert watched.look()


def test_a_lease_is_lost_with_its_folder(handle: str) -> None:
    watched = watch(handle)
    shutil.rmtree(handle)
    assert watched.look()


def test_a_lease_that_cannot_be_read_is_not_lost(handle: str) -> None:
    watched = watch(handle)
    os.unlink(lease.lease_file(handle))
    os.mkdir(lease.lease_file(handle))  # EISDIR, as good as EIO
    assert not watched.look()


def test_where_none_was_granted_there_is_none_to_lose(handle: str) -> None:
    lease.revoke(handle)
    assert lease.watch(handle) is None
