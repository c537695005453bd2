"""How much time has passed by a clock that was set in between."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta

from msgspec import Struct


class Jump(Struct, frozen=True):
    """The clock was set: it says `at` right afterwards, and had said `at - by`."""

    at: datetime
    by: timedelta


class Jumps(Struct, frozen=True):
    """Every time that the clock was set, the oldest first."""

    all: tuple[Jump, ...] = ()

    def elapsed(self, since: datetime, now: datetime) -> timedelta:
        """Between two times of this clock. A time that it has told twice, since it was set back, is taken to be the
        later one: rather too little has passed than too much."""
        after = itertools.takewhile(lambda jump: since < jump.at, reversed(self.all))
        return now - since - sum((jump.by for jump in after), start=timedelta())


STEADY = Jumps()
