"""A task's working directory: the job's tree, private and writable, made without copying large files.

The tree is shared by all jobs that were submitted with the same content, so nothing that a task does may change it:
an overlay above it where the machine allows, else copies of small files and read-only links to large ones.
"""

from __future__ import annotations

import os
import stat

from paddlecloud.runtime import below, namespaces, owners
from paddlecloud.runtime.folder import TaskFolder
from paddlecloud.runtime.namespaces import Isolation
from paddlecloud.runtime.taskfile import TaskFile

_KEPT = "workspace"
_SMALL_BYTES = 1 << 20
_COPY_BYTES = 256 << 20  # of small files in all; what comes after is linked


def fill(task: TaskFile, folder: TaskFolder, isolation: Isolation, *, again: bool) -> None:
    """Fill the working directory; called inside the task's namespaces. `again`: it stays as the task has left it."""
    if task.tree is None:
        return
    if isolation.mount:
        owners.claim(task.tree, owners.lent(task.uid))  # the overlay shows its modes; nobody sees the tree itself
    if again and os.path.isdir(folder.upper):
        _overlay(task.tree, folder, isolation)
    elif not again and not (isolation.overlay and _overlaid(task.tree, folder, isolation)):
        _Copy().tree(task.tree, folder.work)


def kept(task: TaskFile) -> str:
    """Where what a failed task had in its working directory stays, if it asked for that."""
    return f"{os.path.dirname(task.output)}/{_KEPT}/attempt-{task.attempt}/{task.task}"


def keep(task: TaskFile, folder: TaskFolder, results: str) -> None:
    """Put what an ended task has changed in its working directory, or all of it if that is a copy, with its results."""
    changed = folder.upper if os.path.isdir(folder.upper) else folder.work
    attempt = below.open_folder(results, os.path.dirname(kept(task)))
    try:
        os.rename(changed, task.task, dst_dir_fd=attempt)
        os.mkdir(changed, 0o755)
        for _, _, files, here in os.fwalk(task.task, dir_fd=attempt):
            for name in files:
                if stat.S_ISCHR(os.stat(name, dir_fd=here, follow_symlinks=False).st_mode):
                    os.unlink(name, dir_fd=here)  # an overlay's mark of what the task has removed
    finally:
        os.close(attempt)


def _overlaid(tree: str, folder: TaskFolder, isolation: Isolation) -> bool:
    os.mkdir(folder.upper, 0o755)
    os.mkdir(folder.overlay_work, 0o755)
    try:
        _overlay(tree, folder, isolation)
    except OSError:
        # The tree's file system cannot lie below an overlay, as some network ones. Without the folder there is none.
        os.rmdir(folder.upper)
        return False
    return True


def _overlay(tree: str, folder: TaskFolder, isolation: Isolation) -> None:
    user = isolation.user or namespaces.in_user_namespace()
    # By a descriptor: an earlier run may have put a link in its place.
    work = os.open(folder.work, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        namespaces.mount_overlay(tree, folder.upper, folder.overlay_work, f"/proc/self/fd/{work}", user=user)
    finally:
        os.close(work)


class _Copy:
    def __init__(self) -> None:
        self._left = _COPY_BYTES

    def tree(self, source: str, target: str) -> None:
        with os.scandir(source) as entries:
            for entry in entries:
                self._entry(entry, os.path.join(target, entry.name))

    def _entry(self, entry: os.DirEntry[str], target: str) -> None:
        if entry.is_symlink():
            os.symlink(os.readlink(entry.path), target)
        elif entry.is_dir(follow_symlinks=False):
            os.mkdir(target, 0o755)
            self.tree(entry.path, target)
        else:
            self._file(entry, target)

    def _file(self, entry: os.DirEntry[str], target: str) -> None:
        found = entry.stat(follow_symlinks=False)
        if found.st_size > min(_SMALL_BYTES, self._left) and not found.st_mode & 0o222:
            _link(entry.path, target)
            return
        self._left -= found.st_size
        _copy(entry.path, target)
        os.chmod(target, (found.st_mode & 0o777) | 0o200)
        os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))


def _copy(source: str, target: str) -> None:
    reader = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    try:
        writer = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            offset = 0
            while sent := os.sendfile(writer, reader, offset, _SMALL_BYTES):
                offset += sent
        finally:
            os.close(writer)
    finally:
        os.close(reader)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        os.symlink(source, target)  # on another disk, or a disk without hard links
