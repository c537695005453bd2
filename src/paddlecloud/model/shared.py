"""Shared folders: parts of the PFS that an operator makes and grants to groups, to read or to write."""

from __future__ import annotations

import re
from datetime import datetime

from msgspec import Struct

from paddlecloud.model.errors import InvalidError

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,59}")
_TAKEN = ("user", "pfs", "tmp")  # what WebHDFS has at the top of its tree


class SharedFolder(Struct, frozen=True, kw_only=True):
    """`readers` and `writers` are groups; who may write may read too. Its size is as last counted."""

    name: str
    datacenter: str
    path: str
    created_at: datetime
    readers: tuple[str, ...] = ()
    writers: tuple[str, ...] = ()
    size_bytes: int = 0
    files: int = 0


class SharedRequest(Struct, frozen=True, kw_only=True):
    """`datacenter` "" is the first."""

    name: str
    datacenter: str = ""
    readers: tuple[str, ...] = ()
    writers: tuple[str, ...] = ()


def check_folder_name(name: str) -> str:
    """The name itself, if it may be a shared folder's."""
    if not _NAME.fullmatch(name):
        raise InvalidError(
            f"name {name[:80]!r} is not one of a shared folder: use up to 60 letters, digits and _ . -, beginning with "
            "a letter, a digit or _",
            field="name",
        )
    if name in _TAKEN:
        raise InvalidError(f"name {name!r} means something else in WebHDFS: take another", field="name")
    return name
