"""A file of a user's that anybody who knows its uuid may read."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct


class Publication(Struct, frozen=True, kw_only=True):
    uuid: str
    user: str
    path: str
    created_at: datetime
