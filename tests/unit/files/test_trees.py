"""Uploaded folders as wholes: held, asked for, and removed."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from paddlecloud.files.trees import Tree
from paddlecloud.files.uploads import Uploads
from paddlecloud.model.errors import NotFoundError
from tests import trees

WANTED = trees.manifest({"file": b"x", "sub/file": b"y"})


def no_pause() -> None:
    pass


@pytest.fixture
def uploads(tmp_path: Path) -> Uploads:
    made = Uploads(tmp_path / "files")
    trees.send(made, "ann", WANTED, b"x", b"y")
    made.seal("ann", WANTED)
    return made


def tree_of(uploads: Uploads) -> Tree:
    (found,) = uploads.trees.of("ann")
    return found


def age(uploads: Uploads) -> None:
    """It was asked for long ago."""
    os.utime(uploads.tree("ann", WANTED.id), (1000, 1000))
    assert tree_of(uploads).asked_at == datetime.fromtimestamp(1000, UTC)


def test_asking_what_is_missing_of_a_folder_keeps_it(uploads: Uploads) -> None:
    age(uploads)
    assert uploads.missing("ann", WANTED) == []
    assert tree_of(uploads).asked_at > datetime.fromtimestamp(1000, UTC) + timedelta(days=1)


def test_sealing_a_folder_that_is_there_keeps_it(uploads: Uploads) -> None:
    age(uploads)
    uploads.seal("ann", WANTED)
    assert tree_of(uploads).asked_at > datetime.fromtimestamp(1000, UTC) + timedelta(days=1)


def test_a_folder_that_was_removed_is_laid_out_again_without_being_sent(uploads: Uploads) -> None:
    assert uploads.trees.remove(tree_of(uploads), no_pause, needed=lambda tree: False)
    assert uploads.trees.of("ann") == []
    assert uploads.missing("ann", WANTED) == []
    uploads.seal("ann", WANTED)
    assert (uploads.tree("ann", WANTED.id) / "sub/file").read_bytes() == b"y"


def test_another_folder_keeps_the_files_that_it_shares_with_one_that_is_removed(uploads: Uploads) -> None:
    other = trees.manifest({"same": b"x"})
    uploads.seal("ann", other)
    (gone,) = [tree for tree in uploads.trees.of("ann") if tree.id == WANTED.id]
    uploads.trees.remove(gone, no_pause, needed=lambda tree: False)
    uploads.expire(datetime.now(UTC) + timedelta(days=2))
    assert (uploads.tree("ann", other.id) / "same").read_bytes() == b"x"
    assert uploads.missing("ann", WANTED) == [trees.digest(b"y")]


def test_a_folder_that_is_needed_or_held_stays(uploads: Uploads) -> None:
    tree = tree_of(uploads)
    assert not uploads.trees.remove(tree, no_pause, needed=lambda tree: True)
    with uploads.trees.held("ann", tree.id), uploads.trees.held("ann", tree.id):
        assert not uploads.trees.remove(tree, no_pause, needed=lambda tree: False)
    assert uploads.trees.of("ann") == [tree]
    assert uploads.trees.remove(tree, no_pause, needed=lambda tree: False)
    assert uploads.trees.remove(tree, no_pause, needed=lambda tree: False)


@pytest.mark.parametrize("name", ["0" * 64, "", "..", "../../other", WANTED.id[:-1]])
def test_only_a_folder_that_is_there_can_be_held(uploads: Uploads, name: str) -> None:
    with pytest.raises(NotFoundError), uploads.trees.held("ann", name):
        pass


def test_what_was_being_removed_when_the_server_died_is_removed(uploads: Uploads, tmp_path: Path) -> None:
    class KilledError(Exception):
        pass

    def die() -> None:
        raise KilledError

    with pytest.raises(KilledError):
        uploads.trees.remove(tree_of(uploads), die, needed=lambda tree: False)
    assert uploads.trees.of("ann") == []
    assert os.listdir(tmp_path / "files/ann/trees") != []
    uploads.trees.finish(no_pause)
    assert os.listdir(tmp_path / "files/ann/trees") == []
