"""Whatever a task did to its folder, the folder can be removed."""

from __future__ import annotations

import os
from pathlib import Path

from paddlecloud.backends.leftovers import remove_tree


def test_folders_without_access_are_removed(tmp_path: Path) -> None:
    inner = tmp_path / "task" / "closed" / "read-only"
    inner.mkdir(parents=True)
    (inner / "file").touch(0o000)
    inner.chmod(0o555)
    inner.parent.chmod(0o000)
    remove_tree(tmp_path / "task")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_deeper_than_any_path_is_removed(tmp_path: Path) -> None:
    (tmp_path / "task").mkdir()
    here = os.open(tmp_path / "task", os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("deeper", dir_fd=here)
        below = os.open("deeper", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    remove_tree(tmp_path / "task")
    assert list(tmp_path.iterdir()) == []


def test_links_are_removed_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    (tmp_path / "task").mkdir()
    (tmp_path / "task" / "link").symlink_to(tmp_path / "kept")
    remove_tree(tmp_path / "task")
    remove_tree(tmp_path / "never there")
    assert (tmp_path / "kept" / "file").exists()
    assert not (tmp_path / "task").exists()
