"""multipart/form-data of the Go client: one part, whose bytes go where they are told as they come."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from fastapi import Request
from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header
from starlette.concurrency import run_in_threadpool

from paddlecloud.model.errors import InvalidError
from paddlecloud.server.auth import Identity
from paddlecloud.server.caller import body_pieces, compare_hash
from paddlecloud.server.services import Services

_FILENAME_BYTES = 16 * 1024


class Part:
    """The one part of a body: its name, its filename, and its bytes as they come."""

    def __init__(self, content_type: str, take: Callable[[bytes], None]) -> None:
        kind, options = parse_options_header(content_type)
        boundary = options.get(b"boundary", b"")
        if kind != b"multipart/form-data" or not boundary:
            raise InvalidError("the body must be multipart/form-data", field="body")
        self.name = self.filename = ""
        self.ended = False
        self._take = take
        self._header = self._value = b""
        self._parts = 0
        try:
            self._parser = MultipartParser(
                boundary,
                {
                    "on_part_begin": self._on_part,
                    "on_header_field": self._on_header,
                    "on_header_value": self._on_value,
                    "on_header_end": self._on_header_end,
                    "on_part_data": self._on_bytes,
                    "on_end": self._on_end,
                },
            )
        except FormParserError as error:
            raise _unreadable(error) from None

    def feed(self, piece: bytes) -> None:
        try:
            self._parser.write(piece)
        except FormParserError as error:
            raise _unreadable(error) from None

    def close(self) -> None:
        """Drop the parser: it refers to this part, so only a collection of garbage would free the part's bytes."""
        del self._parser

    def check(self) -> None:
        """Raise unless all of the body has come."""
        if not self.ended or not self._parts:
            raise InvalidError("the multipart body ends in the middle: send it again", field="body")

    def _on_part(self) -> None:
        self._parts += 1
        if self._parts > 1:
            raise InvalidError("the multipart body has more than one part: send one file at a time", field="body")

    def _on_header(self, piece: bytes, start: int, end: int) -> None:
        self._header += piece[start:end]
        self._check_header()

    def _on_value(self, piece: bytes, start: int, end: int) -> None:
        self._value += piece[start:end]
        self._check_header()

    def _check_header(self) -> None:
        if len(self._header) + len(self._value) > _FILENAME_BYTES:
            raise InvalidError("a header of the multipart body is too long", field="body")

    def _on_header_end(self) -> None:
        if self._header.lower() == b"content-disposition":
            _, options = parse_options_header(self._value)
            self.name = options.get(b"name", b"").decode("utf-8", "replace")
            self.filename = options.get(b"filename", b"").decode("utf-8", "replace")
        self._header = self._value = b""

    def _on_bytes(self, piece: bytes, start: int, end: int) -> None:
        self._take(piece[start:end])

    def _on_end(self) -> None:
        self.ended = True


async def receive(
    part: Part, request: Request, identity: Identity, services: Services, *, limit: int | None = None
) -> None:
    """Let the part have the body as it comes, each piece in a turn of the caller's; raise unless it is the one that
    was signed and all of it has come."""
    digest = hashlib.sha256()

    def feed(piece: bytes) -> None:
        if identity.body_hash is not None:
            digest.update(piece)
        part.feed(piece)

    try:
        async for piece in body_pieces(request, limit):
            async with services.shares.turns.take(identity.user.name):
                await run_in_threadpool(feed, piece)
    finally:
        part.close()
    if identity.body_hash is not None:
        compare_hash(digest.hexdigest(), identity.body_hash)
    part.check()


def _unreadable(error: FormParserError) -> InvalidError:
    return InvalidError(f"the multipart body cannot be read: {error}", field="body")
