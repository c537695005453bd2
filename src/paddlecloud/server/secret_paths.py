"""Addresses that hold a secret, `/t/<secret>/…` or a token to be revoked, as they may be shown: whoever reads a log
must not come in by it."""

from __future__ import annotations

import re

PREFIX = "pcw_"  # begins every such secret, so that it is known wherever it stands
TOKENS = ("pct_", "eyJ")  # begin our tokens, and JSON Web Tokens
_HELD = re.compile(rf"(?<=^/t/)[^/]+|{PREFIX}[^/\s]*|(?<=/)(?:{'|'.join(TOKENS)})[^/\s]*")


def has_secret(path: str) -> bool:
    return path.startswith("/t/") or PREFIX in path or any(f"/{begin}" in path for begin in TOKENS)


def without_secret(path: str) -> str:
    return _HELD.sub("…", path)
