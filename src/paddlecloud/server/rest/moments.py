"""A time as a query gives it: itself, or how long ago."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import Query

from paddlecloud.model.units import parse_duration

_LONGEST_AGO_SECONDS = 100 * 365 * 86400

Since = Annotated[str | None, Query(description="Begin with what came since: 10m ago, or at an RFC 3339 time.")]


def moment(text: str | None, now: datetime) -> datetime | None:
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
        return found if found.tzinfo else found.replace(tzinfo=UTC)
    except ValueError:
        return now - timedelta(seconds=min(parse_duration(text, "since"), _LONGEST_AGO_SECONDS))
