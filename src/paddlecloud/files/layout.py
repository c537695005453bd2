"""Builds a read-only tree on disk from a manifest: folders, symbolic links, and files as hard links to objects."""

from __future__ import annotations

import errno
import os

from paddlecloud.files import disk
from paddlecloud.files.objects import Objects
from paddlecloud.model.errors import InvalidError
from paddlecloud.model.tree import Entry, Kind, Manifest

_READ_ONLY = 0o555


def lay_out(manifest: Manifest, objects: Objects, path: str) -> None:
    """Create the folder `path`; it appears complete and synced to disk, or not at all."""
    trees = os.path.dirname(path)
    temporary = disk.new_name(trees)
    os.mkdir(temporary, 0o700)
    try:
        _fill(manifest, objects, temporary)
        # Rename within one folder: the owner of a read-only folder cannot move it to another parent.
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
                raise _name_error(error, folder) from None
        # Create links last, though no path leads through one, so that nothing can be written through a link.
        for entry in sorted(manifest.entries, key=lambda entry: entry.kind is Kind.LINK):
            try:
                _place(entry, objects, root)
            except OSError as error:
                raise _name_error(error, entry.path) from None
        made = [*reversed(folders), "."]
        for folder in made:
            os.chmod(folder, _READ_ONLY, dir_fd=root)
        disk.sync_all(root, made)
    finally:
        os.close(root)


def _folders(manifest: Manifest) -> list[str]:
    """Every folder of the tree, including those that only appear in a file's path; parents first."""
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


def _name_error(error: OSError, path: str) -> Exception:
    """Translate the error for a name that the server's disk does not accept."""
    if error.errno not in (errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL):
        return error
    return InvalidError(f"path {path!r} cannot be stored on the server; rename it", field="path")
