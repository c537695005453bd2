"""Where a page of records ended, as a text that a client hands back unread: newest first, before a row's number."""

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
            f"cursor {cursor!r} is not one this server gave: take next_cursor of the last page as it is", field="cursor"
        )
    return int(found[1])
