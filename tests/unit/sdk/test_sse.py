"""Server-sent events, however the bytes are cut."""

from __future__ import annotations

import pytest

from paddlecloud.sdk.sse import Event, parse

STREAM = ": keep-alive\n\nid: 1\nevent: log\ndata: zwölf 长\ndata: lines\n\ndata:no name\r\n\r\nid: 3\nevent: log\n\n"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_events_are_the_same_however_the_bytes_are_cut(size: int) -> None:
    raw = STREAM.encode()
    pieces = [raw[start : start + size] for start in range(0, len(raw), size)]
    assert list(parse(pieces)) == [
        Event(name="log", data="zwölf 长\nlines", id="1"),
        Event(name="message", data="no name", id="1"),
    ]


def test_an_event_that_was_broken_off_is_dropped() -> None:
    assert list(parse([b"id: 1\ndata: half"])) == []
    assert list(parse([b"id: 1\ndata: all but the empty line\n"])) == []
