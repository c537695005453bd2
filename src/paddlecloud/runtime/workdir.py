"""A task's working directory: the job's tree, private and writable, made without copying large files.

The tree is shared by all jobs that were submitted with the same content, so nothing that a task does may change it:
an overlay above it where the machine allows, else copies of small files and read-only links to large ones.
"""

from __future__ import annotations

import os
import stat

from paddlecloud.runtime import below, namespaces
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
    if again and os.path.isdir(folder.upper):
        _overlay(task.tree, folder, isolation)
    elif not again and not (isolation.overlay and _overlaid(task.tree, folder, isolation)):
        _Copy().tree(task.tree, folder.work)


def guard(
    task: TaskFile, folder: TaskFolder, isolation: Isolation, packages: str | None = None, *, building: bool = False
) -> None:
    """Put the tree at LOCAL_MOUNT_PATH, and hide what is not the task's; called in its mount namespace. `packages` is
    the folder of its environment, which only who builds it may change."""
    if task.mount != task.tree:
        namespaces.mount_read_only(task.tree or task.mount, task.mount)
    shown = {} if isolation.root else task.mounts  # else they are seen where they are
    _hide(
        task,
        [
            folder.own,
            os.path.dirname(task.output),
            *task.search_path,
            *shown.values(),
            folder.inputs,
            *([packages] if packages else []),
        ],
    )
    if packages and not building:
        namespaces.mount_read_only(packages, packages)
    for target, source in shown.items():
        if target not in task.writable:
            namespaces.mount_read_only(source, source)


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


def _hide(task: TaskFile, own: list[str]) -> None:
    """Keep the server's records, keys and other users' files from the task, which runs as the server's own account."""
    hidden = [path for path in task.hidden if os.path.exists(path)]
    for above in _movable(hidden):
        namespaces.pin(above)
    for path in hidden:
        if os.path.isdir(path):
            namespaces.hide(path, [kept for kept in own if kept.startswith(path + "/") and os.path.isdir(kept)])
        else:
            namespaces.mount_read_only(os.devnull, path)
    for shared in task.search_path:
        if any(shared.startswith(path + "/") for path in hidden):
            namespaces.mount_read_only(shared, shared)  # else a task could change what others run as `python`


def _movable(paths: list[str]) -> list[str]:
    """The folders above these that this account could rename, from the top: what is hidden would be hidden no more."""
    above = {folder for path in paths for folder in _above(path)}
    return sorted(folder for folder in above if os.access(os.path.dirname(folder), os.W_OK))


def _above(path: str) -> list[str]:
    folder = os.path.dirname(os.path.realpath(path))
    found = []
    while folder != os.path.dirname(folder):
        found.append(folder)
        folder = os.path.dirname(folder)
    return found


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
    namespaces.mount_overlay(tree, folder.upper, folder.overlay_work, folder.work, user=isolation.user)


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
        if found.st_size > min(_SMALL_BYTES, self._left):
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
