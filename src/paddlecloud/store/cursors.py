"""Encodes the position of a page, newest first, as an opaque text that clients send back."""

from __future__ import annotations

import base64
import binascii
import re

from paddlecloud.model.errors import InvalidError

_CURSOR = re.compile(r"before:(\d{1,18})")


def write(seq: int) -> str:
    return base64.urlsafe_b64encode(f"before:{seq}".encode()).decode().rstrip("=")


def read(cursor: str) -> int:
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        found = _CURSOR.fullmatch(base64.b64decode(padded, altchars=b"-_", validate=True).decode("ascii"))
    except (UnicodeError, binascii.Error):
        found = None
    if found is None:
        raise InvalidError(
            f"cursor {cursor!r} was not issued by this server: send next_cursor of the last page unchanged",
            field="cursor",
        )
    return int(found[1])
