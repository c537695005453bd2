"""When rounds run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from paddlecloud.scheduler.loop import Loop
from paddlecloud.scheduler.round import Round
from tests.waiting import wait_until

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)


class Counted(Round):
    """Rounds that are only counted; the first `faults` of them fail."""

    def __init__(self, *, idle: bool = True, faults: int = 0) -> None:
        self.idle = idle
        self.faults = faults
        self.count = 0

    def run(self, now: datetime) -> bool:
        assert now == NOW
        self.count += 1
        if self.count <= self.faults:
            raise RuntimeError("the disk is on fire")
        return True


@contextmanager
def running(rounds: Counted) -> Iterator[Loop]:
    loop = Loop(rounds, clock=lambda: NOW)
    loop.start()
    try:
        yield loop
    finally:
        loop.stop()


def wait_for_round(rounds: Counted, count: int) -> None:
    wait_until(lambda: rounds.count >= count, f"round {count}")


def test_a_wake_runs_a_round_at_once_also_when_idle() -> None:
    rounds = Counted()
    with running(rounds) as loop:
        for count in range(1, 4):
            wait_for_round(rounds, count)
            loop.wake()


def test_with_live_jobs_rounds_follow_by_themselves() -> None:
    rounds = Counted(idle=False)
    with running(rounds):
        wait_for_round(rounds, 3)


def test_what_happens_in_quick_succession_is_dealt_with_in_few_rounds() -> None:
    rounds = Counted()
    with running(rounds) as loop:
        began = time.monotonic()
        while time.monotonic() < began + 0.5 or rounds.count < 3:
            loop.wake()
    assert rounds.count <= (time.monotonic() - began) / 0.005 + 2


def test_a_round_that_fails_is_followed_by_another_and_shows_until_then() -> None:
    rounds = Counted(idle=False, faults=1)
    with running(rounds) as loop:
        wait_until(lambda: not loop.healthy, "the fault shows")
        wait_until(lambda: loop.healthy, "the next round went well")


def test_a_stopped_loop_is_not_healthy() -> None:
    with running(Counted()) as loop:
        wait_until(lambda: loop.healthy, "it runs")
    assert not loop.healthy


def test_every_round_is_told_with_how_long_it_took_and_whether_it_failed() -> None:
    rounds, told = Counted(idle=False, faults=1), list[tuple[float, bool]]()
    loop = Loop(rounds, clock=lambda: NOW, observe=lambda seconds, failed: told.append((seconds, failed)))
    loop.start()
    try:
        wait_for_round(rounds, 2)
        wait_until(lambda: len(told) >= 2, "both are told")
    finally:
        loop.stop()
    assert [failed for _, failed in told[:2]] == [True, False]
    assert all(0 <= seconds < 60 for seconds, _ in told)
