"""Server-sent events from bytes, as the HTML standard defines them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """`id` is the last one the stream gave, which Last-Event-ID takes it up from."""

    name: str
    data: str
    id: str = ""


def parse(pieces: Iterable[bytes]) -> Iterator[Event]:
    """Events as they come; one that the stream broke off in the middle of is dropped, for it will be sent again."""
    name, last_id = "", ""
    data: list[str] = []
    for line in _lines(pieces):
        if not line:
            if data:
                yield Event(name=name or "message", data="\n".join(data), id=last_id)
            name, data = "", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            data.append(value)
        elif field == "event":
            name = value
        elif field == "id":
            last_id = value


def _lines(pieces: Iterable[bytes]) -> Iterator[str]:
    """Whole lines, cut before decoding, so that a character may lie across two pieces."""
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r").decode("utf-8", errors="replace")
