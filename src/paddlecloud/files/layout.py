"""A tree on the disk: folders and links as the manifest names them, files as further names of objects, read-only."""

from __future__ import annotations

import errno
import os

from paddlecloud.files import disk
from paddlecloud.files.objects import Objects
from paddlecloud.model.errors import InvalidError
from paddlecloud.model.tree import Entry, Kind, Manifest

_READ_ONLY = 0o555


def lay_out(manifest: Manifest, objects: Objects, path: str) -> None:
    """Make the folder `path`; it appears whole and on the disk, or not at all."""
    trees = os.path.dirname(path)
    temporary = disk.new_name(trees)
    os.mkdir(temporary, 0o700)
    try:
        _fill(manifest, objects, temporary)
        # Within one folder: a read-only folder cannot be moved to another by its owner.
        os.rename(temporary, path)
    except BaseException:
        disk.remove_tree(temporary)
        raise
    disk.sync(trees)


def _fill(manifest: Manifest, objects: Objects, path: str) -> None:
    folders = _folders(manifest)
    root = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for folder in folders:
            try:
                os.mkdir(folder, 0o700, dir_fd=root)
            except OSError as error:
                raise _unnameable(error, folder) from None
        # Links last, though no path leads through one: nothing is ever written by way of them.
        for entry in sorted(manifest.entries, key=lambda entry: entry.kind is Kind.LINK):
            try:
                _place(entry, objects, root)
            except OSError as error:
                raise _unnameable(error, entry.path) from None
        made = [*reversed(folders), "."]
        for folder in made:
            os.chmod(folder, _READ_ONLY, dir_fd=root)
        disk.sync_all(root, made)
    finally:
        os.close(root)


def _folders(manifest: Manifest) -> list[str]:
    """Every folder of the tree, also those that only a path inside them names; outer ones first."""
    folders: set[str] = set()
    for entry in manifest.entries:
        folder = entry.path if entry.kind is Kind.FOLDER else os.path.dirname(entry.path)
        while folder and folder not in folders:
            folders.add(folder)
            folder = os.path.dirname(folder)
    return sorted(folders)


def _place(entry: Entry, objects: Objects, root: int) -> None:
    if entry.kind is Kind.FILE:
        objects.link(entry, entry.path, root)
    elif entry.kind is Kind.LINK:
        os.symlink(entry.target, entry.path, dir_fd=root)


def _unnameable(error: OSError, path: str) -> Exception:
    """What to raise for a path that could not be made: a name that the server's disk does not take, in our words."""
    if error.errno not in (errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL):
        return error
    return InvalidError(f"path {path!r} cannot be stored on the server; rename it", field="path")
