"""Paths as clients of HDFS write them, and the paths of the PFS that they mean.

    /                               what there is for the caller, to be walked through
    /user/<name>/…  and  /<me>/…    a home in the first datacenter; of others only the first, so that it is refused
    /<folder>/…                     a shared folder there, if the caller may see it
    /pfs/…                          the PFS as it is
    /.reserved/.inodes/<number>     a file by the number that its status told, as Hadoop has it

What a path means does not tell whether the caller may: that is settled where every face asks (model/pfs.py).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct

from paddlecloud.model import paths, pfs
from paddlecloud.model.errors import InvalidError

USERS = "user"
TRASH = ".Trash"
_INODES = (".reserved", ".inodes")
_DIGITS = 18


class View(Struct, frozen=True, kw_only=True):
    """What a caller has: their name, the first datacenter, and the shared folders that they may see."""

    user: str
    datacenter: str
    shared: Collection[str] = ()


class Spot(Struct, frozen=True, kw_only=True):
    """What a path means: a path of the PFS, the number of a file, or one of the folders above; else nothing is there.

    `path` is the path itself, in its normal form.
    """

    path: str
    pfs: str = ""
    inode: int | None = None
    above: bool = False


def locate(text: str, view: View) -> Spot:
    """What the path means to this caller; InvalidError: it is none."""
    parts = _parts(text)
    path = "/" + "/".join(parts)
    if parts[:2] == _INODES and len(parts) == 3:
        return Spot(path=path, inode=_number(parts[2]))
    if parts in ((), (USERS,)):
        return Spot(path=path, above=True)
    return Spot(path=path, pfs=_meant(parts, view))


def named(path: str, view: View) -> str:
    """The path that a path of the PFS has for a client of HDFS."""
    home = pfs.home(view.datacenter, view.user)
    if path == home or path.startswith(f"{home}/"):
        return f"/{USERS}/{view.user}{path[len(home) :]}"
    for folder in view.shared:
        top = pfs.shared(view.datacenter, folder)
        if _is_shown(folder, view) and (path == top or path.startswith(f"{top}/")):
            return f"/{folder}{path[len(top) :]}"
    return path


def above(path: str, view: View) -> Sequence[str]:
    """The names in one of the folders above."""
    if path != "/":
        return [view.user]
    folders = [folder for folder in view.shared if _is_shown(folder, view)]
    return sorted({USERS, pfs.ROOT, view.user, *folders})


def received(text: str) -> str:
    """A path as a client of HDFS sends it, whose names are any text, as we write it (see `paths.text_of`)."""
    return paths.text_of(text.encode("utf-8", "replace"))


def shown(text: str) -> str:
    """A path of ours as a client of HDFS is told it. Names that are no text stay as we write them."""
    try:
        return paths.raw_of(text).decode()
    except UnicodeDecodeError:
        return text


def home(view: View) -> str:
    return f"/{USERS}/{view.user}"


def parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def joined(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}"


def _meant(parts: Sequence[str], view: View) -> str:
    """ "" where nothing is, nor could be made."""
    first, rest = parts[0], parts[1:]
    if first == pfs.ROOT:
        return "/" + "/".join(parts)
    if first == USERS:
        return "/".join([pfs.home(view.datacenter, rest[0]), *rest[1:]])
    if first == view.user:
        return "/".join([pfs.home(view.datacenter, view.user), *rest])
    if first in view.shared:
        return "/".join([pfs.shared(view.datacenter, first), *rest])
    return ""


def _is_shown(folder: str, view: View) -> bool:
    """Whether a shared folder has a name at the top of its own, which others may have before it."""
    return folder not in (USERS, pfs.ROOT, view.user)


def _parts(text: str) -> tuple[str, ...]:
    """The parts of an absolute path. HDFS has no `.` and `..`, and who sends them means something else than we do."""
    if not text.startswith("/"):
        raise InvalidError(f"Invalid path name {text!r}: it must begin with /", field="path")
    parts = tuple(part for part in text.split("/") if part)
    if parts:
        paths.check_relative("/".join(parts))
    return parts


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        raise InvalidError(f"{text!r} is not the number of a file", field="path")
    return int(text)
