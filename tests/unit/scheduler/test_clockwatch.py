"""A clock that is set is noticed, also by the next server; one that is corrected bit by bit is not taken for one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from paddlecloud.model.clock import STEADY, Jump, Jumps
from paddlecloud.scheduler.clockwatch import ClockWatch

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
HOURS = timedelta(hours=2)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "clock.json"


@pytest.mark.parametrize("by", [HOURS, -HOURS, timedelta(minutes=1)])
def test_a_clock_that_is_set_is_noticed_once(file: Path, by: timedelta) -> None:
    watch = ClockWatch(file)
    assert watch.look(NOW) == STEADY
    [jump] = watch.look(NOW + by).all
    assert jump.at == NOW + by
    assert abs(jump.by - by) < timedelta(seconds=5)
    assert watch.look(NOW + by).all == (jump,)


@pytest.mark.parametrize("by", [HOURS, -HOURS])
def test_a_clock_that_is_set_while_no_server_runs_is_noticed_by_the_next(file: Path, by: timedelta) -> None:
    ClockWatch(file).look(NOW)
    [jump] = ClockWatch(file).look(NOW + by).all
    assert ClockWatch(file).look(NOW + by).all == (jump,)


def test_a_few_seconds_are_no_jump(file: Path) -> None:
    watch = ClockWatch(file)
    watch.look(NOW)
    assert watch.look(NOW + timedelta(seconds=20)) == STEADY


def test_of_another_boot_the_jumps_count_and_the_clocks_do_not(file: Path) -> None:
    ClockWatch(file).look(NOW)
    ClockWatch(file).look(NOW + HOURS)
    plain = msgspec.json.decode(file.read_bytes())
    file.write_bytes(msgspec.json.encode({**plain, "boot": "another"}))
    assert len(ClockWatch(file).look(NOW + 10 * HOURS).all) == 1


@pytest.mark.parametrize("left", [b"", b"{", b'{"boot": 1}'])
def test_a_file_that_makes_no_sense_is_none(file: Path, left: bytes) -> None:
    file.write_bytes(left)
    assert ClockWatch(file).look(NOW) == STEADY


def test_time_is_counted_without_the_jumps_after_its_beginning() -> None:
    minute = timedelta(minutes=1)
    ahead = Jumps((Jump(NOW, HOURS),))
    assert ahead.elapsed(NOW - HOURS - 5 * minute, NOW + minute) == 6 * minute
    assert ahead.elapsed(NOW, NOW + minute) == minute
    back_again = Jumps((*ahead.all, Jump(NOW - HOURS + 3 * minute, -HOURS)))
    now = NOW - HOURS + 10 * minute
    assert back_again.elapsed(NOW - HOURS - 5 * minute, now) == 15 * minute, "before both"
    assert back_again.elapsed(NOW - HOURS + 4 * minute, now) == 6 * minute, "after both"
    assert back_again.elapsed(NOW + minute, now) < timedelta(), "between: not told apart from a time after both"
