"""A file of a user's that anybody who knows its uuid may read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    uuid: str
    user: str
    path: str
    created_at: datetime
