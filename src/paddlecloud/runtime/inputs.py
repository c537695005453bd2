"""What a task gets from elsewhere: links in its working directory to files that it may read and not change, or copies
that are its own.

Sources are users' folders, so a link in one is never followed: it might lead to what is another's. With mounts of its
own a task sees a source read-only at <task>/inputs/<number>; else that is a link to where it is, and the files' modes
alone hold it back. The trainer of rank i of n is dealt file f, by name, if f % n == i.
"""

from __future__ import annotations

import os
import stat
from typing import Iterator, NamedTuple

from paddlecloud.runtime import below, namespaces, smallfiles
from paddlecloud.runtime.folder import TaskFolder
from paddlecloud.runtime.taskfile import Given, TaskFile

_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_HERE = "."
_PIECE = 1 << 20


class InputError(Exception):
    """An input cannot be had; the message names it."""


class Opened(NamedTuple):
    """A source that is there, opened before anything is hidden, and where the task sees it."""

    given: Given
    descriptor: int
    seen: str

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(os.fstat(self.descriptor).st_mode)


def open_all(task: TaskFile, folder: TaskFolder) -> list[Opened]:
    found = []
    for number, given in enumerate(task.inputs):
        descriptor = open_one(given)
        if descriptor is not None:
            found.append(Opened(given, descriptor, f"{folder.inputs}/{number}"))
    return found


def place(task: TaskFile, folder: TaskFolder, opened: list[Opened]) -> None:
    """Fill the working directory with links, and write what names them."""
    lists: dict[str, list[str]] = {given.list: [] for given in task.inputs if given.list}
    for one in opened:
        came = _place_one(task, folder.work, one)
        if one.given.list:
            lists[one.given.list] += came
        if one.given.alias:
            above, name = os.path.split(one.given.target)
            _link_all(folder.work, above, [(one.given.alias, name)])
    for path, lines in lists.items():
        _write(folder.work, path, "".join(f"./{line}\n" for line in lines))


def show(folder: TaskFolder, opened: list[Opened]) -> None:
    """Mount every source where the task sees it, so that it cannot be changed there."""
    if not opened:
        return
    _make(folder.inputs)
    namespaces.bind(folder.inputs, folder.inputs)
    for one in opened:
        if one.given.copy:
            os.close(one.descriptor)
            continue
        if one.is_folder:
            _make(one.seen)
        else:
            os.close(os.open(one.seen, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o444))
        namespaces.bind(f"/proc/self/fd/{one.descriptor}", one.seen)
        os.close(one.descriptor)
    namespaces.restrict(folder.inputs, read_only=True)


def link(folder: TaskFolder, opened: list[Opened]) -> None:
    """The same without mounts: each place is a link to where the source is."""
    if opened:
        _make(folder.inputs)
    for one in opened:
        if not one.given.copy and not os.path.islink(one.seen):
            os.symlink(os.path.join(one.given.folder, one.given.path), one.seen)
        os.close(one.descriptor)


def open_one(given: Given) -> int | None:
    """A descriptor of the source; None: it is not there, and need not be."""
    try:
        found = open_below(os.open(given.folder, os.O_PATH | os.O_CLOEXEC), given.path)
    except (FileNotFoundError, NotADirectoryError):
        if given.optional:
            return None
        raise InputError(f"there is no {given.source}, which is an input of the job") from None
    mode = os.fstat(found).st_mode
    if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
        raise InputError(f"{given.source}, an input of the job, is neither a file nor a folder")
    return found


def open_below(folder: int, path: str) -> int:
    """A descriptor of what is at a path of a folder, by no link, which takes that of the folder's place."""
    for name in path.split("/") if path else ():
        outer = folder
        try:
            folder = os.open(name, _LOOK, dir_fd=outer)
        finally:
            os.close(outer)
    return folder


def share(task: TaskFile, one: Opened) -> list[str]:
    """The files of a source that are for a task, by their paths in it; "" is the source itself."""
    files = _files(one.descriptor) if one.is_folder else [""]
    if not files and not one.given.optional:
        raise InputError(f"there are no files in {one.given.source}, which is an input of the job")
    if one.given.deal:
        return files[task.rank :: task.trainer_count] if task.trains else []
    return files


def _place_one(task: TaskFile, work: str, one: Opened) -> list[str]:
    """What was put there, by its path in the working directory."""
    target = one.given.target
    if one.is_folder:
        target = "" if target == _HERE else f"{target}/"
    elif target == _HERE:
        target = os.path.basename(one.given.path)
    files = share(task, one)
    os.close(_folder(work, os.path.dirname(target)))  # also where none is for this task
    by_folder: dict[str, list[str]] = {}
    for file in files:
        by_folder.setdefault(os.path.dirname(target + file), []).append(file)
    for folder, inside in by_folder.items():
        if one.given.copy:
            _copy_all(work, folder, one, [(os.path.basename(target + file), file) for file in inside])
            continue
        _link_all(work, folder, [(os.path.basename(target + file), os.path.join(one.seen, file)) for file in inside])
    return [target + file for file in files]


def _files(top: int) -> list[str]:
    """The plain files of a folder, at any depth, by name."""
    return sorted(_below(top, ""))


def _below(outer: int, prefix: str) -> Iterator[str]:
    folder = os.open("." if not prefix else os.path.basename(prefix[:-1]), _READ, dir_fd=outer)
    try:
        folders = []
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_file(follow_symlinks=False):
                    yield prefix + entry.name
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
        for name in folders:
            yield from _below(folder, f"{prefix}{name}/")
    finally:
        os.close(folder)


def _copy_all(work: str, path: str, one: Opened, files: list[tuple[str, str]]) -> None:
    folder = _folder(work, path)
    try:
        for name, file in files:
            reader = _open_to_read(one, file)
            try:
                _copy(reader, folder, path, name)
            finally:
                os.close(reader)
    finally:
        os.close(folder)


def _open_to_read(one: Opened, file: str) -> int:
    """A file of a source, reached by no link; "" is the source itself."""
    if not file:
        return os.open(f"/proc/self/fd/{one.descriptor}", os.O_RDONLY | os.O_CLOEXEC)
    above = open_below(os.dup(one.descriptor), os.path.dirname(file))
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        return os.open(os.path.basename(file), flags, dir_fd=above)
    finally:
        os.close(above)


def _copy(reader: int, folder: int, path: str, name: str) -> None:
    flags, mode = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, os.fstat(reader).st_mode & 0o777
    try:
        writer = os.open(name, flags, mode | 0o600, dir_fd=folder)
    except FileExistsError:
        _unlink(folder, path, name)
        writer = os.open(name, flags, mode | 0o600, dir_fd=folder)
    try:
        while piece := os.read(reader, _PIECE):
            smallfiles.write_all(writer, piece)
    finally:
        os.close(writer)


def _link_all(work: str, path: str, links: list[tuple[str, str]]) -> None:
    folder = _folder(work, path)
    try:
        for name, leads_to in links:
            try:
                os.symlink(leads_to.rstrip("/"), name, dir_fd=folder)
            except FileExistsError:
                _unlink(folder, path, name)
                os.symlink(leads_to.rstrip("/"), name, dir_fd=folder)
    finally:
        os.close(folder)


def _write(work: str, path: str, text: str) -> None:
    folder, name = _folder(work, os.path.dirname(path)), os.path.basename(path)
    try:
        try:
            file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644, dir_fd=folder)
        except FileExistsError:
            _unlink(folder, os.path.dirname(path), name)
            file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644, dir_fd=folder)
    finally:
        os.close(folder)
    with os.fdopen(file, "wb") as opened:
        opened.write(os.fsencode(text))


def _folder(work: str, path: str) -> int:
    try:
        return below.open_folder(work, f"{work}/{path}")
    except OSError as error:
        raise InputError(
            f"./{path} cannot be made for the job's inputs: in its files a link or a file is in the way ({error})"
        ) from None


def _unlink(folder: int, path: str, name: str) -> None:
    """Take away a file or a link of the job's own that has an input's name: the input is meant."""
    try:
        os.unlink(name, dir_fd=folder)
    except OSError:
        where = os.path.join(".", path, name)
        raise InputError(f"{where} is a folder of the job's own, where a file of its inputs belongs") from None


def _make(folder: str) -> None:
    os.makedirs(folder, 0o755, exist_ok=True)
