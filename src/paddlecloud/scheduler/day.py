"""The server's days, from one midnight of its time zone to the next, whatever the clocks do in between."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    start: datetime
    end: datetime
    zone: tzinfo

    def seconds(self, start: datetime, end: datetime) -> float:
        """How much of the time between two moments is in this day."""
        return max(0.0, (min(end, self.end) - max(start, self.start)).total_seconds())

    @property
    def next_begins(self) -> str:
        """The end as the zone's clocks show it: "2026-11-17T00:00+08:00"."""
        return self.end.astimezone(self.zone).isoformat(timespec="minutes")


def day_of(now: datetime, zone: tzinfo) -> Day:
    """The day that a moment is in. Days leave no gap and never overlap.

    Around a change of the clocks the calendar may show a date twice or not at all, so the nearest midnights decide.
    """
    today = now.astimezone(zone).date()
    midnights = [_midnight(today + timedelta(days=days), zone) for days in (-1, 0, 1, 2)]
    return Day(
        start=max(moment for moment in midnights if moment <= now),
        end=min(moment for moment in midnights if moment > now),
        zone=zone,
    )


def _midnight(day: date, zone: tzinfo) -> datetime:
    # In UTC, since two times of one zone are compared by what their clocks show.
    return datetime.combine(day, time(), zone).astimezone(UTC)
