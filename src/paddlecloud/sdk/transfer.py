"""Sends a folder to a server: only what it lacks, several pieces at a time; an upload broken off goes on by itself."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial

from paddlecloud.model import tree, wire
from paddlecloud.model.errors import ConflictError
from paddlecloud.model.transfers import UploadPlan
from paddlecloud.sdk.bundle import Bundle, Source
from paddlecloud.sdk.download import Downloaded, download
from paddlecloud.sdk.exchange import Http, Progress, Shown, in_packs, in_parallel

__all__ = ["Downloaded", "Http", "Progress", "download", "upload"]

_ROUNDS = 3


def upload(http: Http, bundle: Bundle, progress: Progress | None = None) -> str:
    """Bring a folder to the server, sending only what it lacks; returns the tree's id. To resume, call it again."""
    shown = Shown(progress)
    body = wire.encode(bundle.manifest)
    pieces = _pieces(bundle)
    for _ in range(_ROUNDS):
        answer = http.request("POST", "/v1/trees", body=body, repeatable=True)
        plan = wire.decode(UploadPlan, answer.data)
        if not plan.missing:
            return plan.tree
        _send(http, [_piece(pieces, digest) for digest in plan.missing], shown)
    raise ConflictError("the server does not keep the files that were sent; is its disk failing? Ask its operator")


class _Piece:
    """A chunk to send, read only when its turn comes."""

    __slots__ = ("digest", "number", "size", "source")

    def __init__(self, digest: str, source: Source, number: int) -> None:
        self.digest = digest
        self.source = source
        self.number = number
        self.size = min(tree.CHUNK_BYTES, source.size - number * tree.CHUNK_BYTES)

    def read(self) -> bytes:
        content = self.source.read(self.number)
        if hashlib.sha256(content).hexdigest() != self.digest:
            raise self.source.changed()
        return content


def _pieces(bundle: Bundle) -> dict[str, tuple[Source, int]]:
    """Where each chunk can be read."""
    return {
        digest: (bundle.sources[entry.path], number)
        for entry in bundle.manifest.entries
        for number, digest in enumerate(entry.chunks)
    }


def _piece(pieces: Mapping[str, tuple[Source, int]], digest: str) -> _Piece:
    if digest not in pieces:
        raise ConflictError(f"the server asks for {digest[:80]!r}, which is not of this folder")
    return _Piece(digest, *pieces[digest])


def _send(http: Http, pieces: list[_Piece], shown: Shown) -> None:
    shown.total(sum(piece.size for piece in pieces))

    def send_alone(piece: _Piece) -> None:
        _put(http, "PUT", f"/v1/chunks/{piece.digest}", piece.read())
        shown.advance(piece.size)

    def send_packed(packed: list[_Piece]) -> None:
        _put(http, "POST", "/v1/chunks", tree.pack((piece.digest, piece.read()) for piece in packed))
        shown.advance(sum(piece.size for piece in packed))

    alone = [piece for piece in pieces if piece.size > tree.PACKED_BYTES]
    packs = in_packs([piece for piece in pieces if piece.size <= tree.PACKED_BYTES], lambda piece: piece.size)
    calls = [*(partial(send_packed, pack) for pack in packs), *(partial(send_alone, piece) for piece in alone)]
    in_parallel(calls, shown)


def _put(http: Http, method: str, path: str, body: bytes) -> None:
    http.request(method, path, body=body, headers={"Content-Type": "application/octet-stream"}, repeatable=True)
