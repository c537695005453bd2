"""Tokens that passwords were exchanged for, kept between commands in one private file.

Each is kept under its server and its user, and is only ever found for both: a token is a secret that travels. Whatever
is wrong with the file only costs a login.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from paddlecloud.sdk import privatefile

_LEAST = timedelta(minutes=1)  # that a token must still be valid for, as a call takes its time


def find(file: Path, server: str, user: str, now: datetime) -> str:
    """The token of a user at a server; "" where none is kept, or not for long enough."""
    kept = _read(file).get(server, {}).get(user, {})
    return str(kept["secret"]) if _lasts(kept, now) else ""


def keep(file: Path, server: str, user: str, secret: str, expires_at: datetime, now: datetime) -> None:
    """Keep a token instead of the one before; those that have ended go."""
    kept = {"secret": secret, "expires_at": expires_at.isoformat()}
    before = {(where, who): one for where, users in _read(file).items() for who, one in users.items()}
    after = {**{place: one for place, one in before.items() if _lasts(one, now)}, (server, user): kept}
    _write(file, after)


def forget(file: Path, server: str, user: str, secret: str) -> None:
    """Let go of a token that was refused; another that was kept meanwhile stays."""
    kept = {(where, who): one for where, users in _read(file).items() for who, one in users.items()}
    if kept.get((server, user), {}).get("secret") == secret:
        del kept[server, user]
        _write(file, kept)


def forget_all(file: Path) -> bool:
    """Whether there was something to forget."""
    try:
        file.unlink()
    except FileNotFoundError:
        return False
    return True


def _lasts(kept: Mapping[str, Any], now: datetime) -> bool:
    try:
        return bool(kept["secret"]) and datetime.fromisoformat(kept["expires_at"]) - now > _LEAST
    except (KeyError, TypeError, ValueError):
        return False


def _read(file: Path) -> dict[str, dict[str, dict[str, Any]]]:
    try:
        whole = json.loads(file.read_bytes())
        return {str(server): {str(user): dict(kept) for user, kept in users.items()} for server, users in whole.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def _write(file: Path, kept: Mapping[tuple[str, str], Mapping[str, Any]]) -> None:
    whole: dict[str, dict[str, Mapping[str, Any]]] = {}
    for (server, user), one in kept.items():
        whole.setdefault(server, {})[user] = one
    with suppress(OSError):  # as on a disk that is full or read-only
        privatefile.write(file, json.dumps(whole, indent=2, ensure_ascii=False).encode())
