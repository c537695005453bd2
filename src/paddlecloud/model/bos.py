"""A folder in a bucket of a user's own, as seed 002 writes it (`<bucket>.<region>.bcebos.com/dir`), and the key to it.

A secret goes in and is never told again. The region becomes a part of the address that the key is used at, so nothing
but plain letters, digits and - may stand there.
"""

from __future__ import annotations

import re
from datetime import datetime

from msgspec import Struct

from paddlecloud.model import paths
from paddlecloud.model.errors import InvalidError

RESULTS = "output"  # the folder in a bucket's folder that results go to; it is not fetched

_HOST = re.compile(r"(?P<bucket>[a-z0-9][a-z0-9-]{1,61}[a-z0-9])\.(?P<region>[a-z][a-z0-9-]{0,29})\.bcebos\.com")
_FORM = "write <bucket>.<region>.bcebos.com/dir"
_FOLDER_BYTES = 500  # a key has 1024 at most, and results have paths of their own below it
_KEY_CHARACTERS = 255


class Place(Struct, frozen=True, kw_only=True):
    """A folder in a bucket; "" is all of it."""

    bucket: str
    region: str
    folder: str = ""

    def __str__(self) -> str:
        return "/".join(filter(None, [f"{self.bucket}.{self.region}.bcebos.com", self.folder]))


class StorageKey(Struct, frozen=True, kw_only=True):
    """A key that the server keeps, without the key: a job names it by its id."""

    id: str
    url: str
    created_at: datetime


class StorageKeyRequest(Struct, frozen=True, kw_only=True):
    url: str
    key_id: str
    secret: str

    def __repr__(self) -> str:
        return f"StorageKeyRequest(url={self.url!r})"


class StorageLogin(Struct, frozen=True, kw_only=True):
    """What a bucket is opened with; it crosses no wire of ours."""

    key_id: str
    secret: str

    def __repr__(self) -> str:
        return "StorageLogin()"


def parse_bos_url(text: str, name: str = "bos_url") -> Place:
    plain = text.removeprefix("https://").removeprefix("http://")
    host, _, folder = plain.partition("/")
    found = _HOST.fullmatch(host)
    if found is None:
        raise InvalidError(f"{name} {text[:200]!r} is not a folder in a bucket: {_FORM}", field=name)
    return Place(bucket=found["bucket"], region=found["region"], folder=_folder(folder.removesuffix("/"), name))


def check_storage_key(request: StorageKeyRequest) -> Place:
    """The folder that a key is for; raise what is wrong with any of it, without the key."""
    place = parse_bos_url(request.url, "url")
    for name, text in (("key_id", request.key_id), ("secret", request.secret)):
        if not 0 < len(text) <= _KEY_CHARACTERS or not text.isascii() or not text.isprintable() or " " in text:
            raise InvalidError(
                f"{name} of a storage key has 1 to {_KEY_CHARACTERS} letters, digits and signs, without spaces: copy "
                f"the {'ak' if name == 'key_id' else 'sk'} of your storage again",
                field=name,
            )
    return place


def _folder(folder: str, name: str) -> str:
    if not folder:
        return ""
    if set(folder) & set("?#\\") or not folder.isprintable():
        raise InvalidError(f"{name}: the folder {folder[:200]!r} has odd characters in it: {_FORM}", field=name)
    paths.check_relative(folder, name)
    if len(folder.encode()) > _FOLDER_BYTES:
        raise InvalidError(f"{name}: the folder is longer than {_FOLDER_BYTES} bytes: take one higher up", field=name)
    return folder
