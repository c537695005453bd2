"""Manifests for tests, made from contents in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from paddlecloud.files.uploads import Uploads
from paddlecloud.model.tree import CHUNK_BYTES, Entry, Kind, Manifest


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def chunks_of(content: bytes) -> list[bytes]:
    return [content[at : at + CHUNK_BYTES] for at in range(0, len(content), CHUNK_BYTES)]


def file(path: str, content: bytes, *, executable: bool = False) -> Entry:
    return Entry(
        path=path,
        kind=Kind.FILE,
        size=len(content),
        executable=executable,
        chunks=tuple(digest(chunk) for chunk in chunks_of(content)),
    )


def folder(path: str) -> Entry:
    return Entry(path=path, kind=Kind.FOLDER)


def link(path: str, target: str) -> Entry:
    return Entry(path=path, kind=Kind.LINK, target=target)


def manifest(files: Mapping[str, bytes], *others: Entry) -> Manifest:
    return Manifest(entries=(*(file(path, content) for path, content in files.items()), *others))


def send(uploads: Uploads, user: str, wanted: Manifest, *contents: bytes) -> list[str]:
    """Put the chunks that are missing, as far as `contents` has them; returns their digests."""
    chunks = {digest(chunk): chunk for content in contents for chunk in chunks_of(content)}
    missing = [name for name in uploads.missing(user, wanted) if name in chunks]
    for name in missing:
        uploads.put_chunk(user, name, chunks[name])
    return missing
