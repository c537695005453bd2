"""The server's days: wherever it is, whatever its clocks did, a moment is in exactly one."""

from __future__ import annotations

import zoneinfo
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.scheduler.day import day_of

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "now", "start", "hours"),
    [
        ("UTC", "2026-11-15T12:00", "2026-11-15T00:00", 24),
        ("UTC", "2026-11-15T00:00", "2026-11-15T00:00", 24),
        ("UTC", "2026-11-14T23:59:59.999999", "2026-11-14T00:00", 24),
        ("Asia/Shanghai", "2026-11-15T12:00", "2026-11-14T16:00", 24),
        ("Asia/Shanghai", "2026-11-15T16:00", "2026-11-15T16:00", 24),
        ("Europe/Berlin", "2026-03-29T12:00", "2026-03-28T23:00", 23),
        ("Europe/Berlin", "2026-10-25T12:00", "2026-10-24T22:00", 25),
        ("America/Havana", "2025-03-09T12:00", "2025-03-09T05:00", 23),  # midnight itself does not exist
        ("America/Havana", "2025-11-02T04:30", "2025-11-02T04:00", 25),  # the hour after midnight comes twice
        ("America/Havana", "2025-11-02T05:30", "2025-11-02T04:00", 25),
        ("Pacific/Apia", "2011-12-30T12:00", "2011-12-30T10:00", 24),  # the date before it was left out
        ("America/St_Johns", "2010-11-07T03:00", "2010-11-07T02:30", 25),  # a minute after midnight it was 23:01 again
    ],
)
def test_a_day_goes_from_midnight_to_midnight(zone: str, now: str, start: str, hours: int) -> None:
    day = day_of(utc(now), ZoneInfo(zone))
    assert (day.start, day.end - day.start) == (utc(start), hours * HOUR)


def test_the_end_of_a_day_is_told_as_its_clocks_show_it() -> None:
    assert day_of(NOW, ZoneInfo("Asia/Shanghai")).next_begins == "2026-11-16T00:00+08:00"
    assert day_of(NOW, UTC).next_begins == "2026-11-16T00:00+00:00"


@pytest.mark.parametrize(
    ("start", "end", "seconds"),
    [(-1, 1, 3600), (23, 25, 3600), (1, 2, 3600), (-2, -1, 0), (24, 30, 0), (-5, 40, 24 * 3600), (3, 2, 0)],
)
def test_only_what_is_in_a_day_counts_in_it(start: int, end: int, seconds: int) -> None:
    day = day_of(NOW, UTC)
    assert day.seconds(day.start + start * HOUR, day.start + end * HOUR) == seconds


zones = st.sampled_from(sorted(zoneinfo.available_timezones())).map(ZoneInfo)
moments = st.timedeltas(timedelta(days=-20_000), timedelta(days=5_000)).map(lambda apart: NOW + apart)


@given(moments, zones)
def test_days_leave_no_gap_and_never_overlap(now: datetime, zone: ZoneInfo) -> None:
    day = day_of(now, zone)
    assert day.start <= now < day.end
    assert day_of(day.start, zone) == day_of(day.end - timedelta(microseconds=1), zone) == day
    assert day_of(day.end, zone).start == day.end


@given(moments, st.timedeltas(timedelta(0), timedelta(days=5)), zones)
def test_what_counts_on_all_days_together_is_all_of_it(began: datetime, length: timedelta, zone: ZoneInfo) -> None:
    day, total = day_of(began, zone), 0.0
    while day.start <= began + length:
        total += day.seconds(began, began + length)
        day = day_of(day.end, zone)
    assert total == pytest.approx(length.total_seconds())
