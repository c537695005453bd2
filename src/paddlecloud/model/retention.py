"""What may go, and when: pure, so that every rule can be read and tested without a clock, a disk or a database.

Only what no live job needs is ever put before these rules. What ended less than `RECENT` ago is not forgotten, whatever
the settings say: a user's minutes of the day are counted from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from msgspec import Struct

from paddlecloud.model.kept import Kept
from paddlecloud.model.units import describe_duration, format_size

RECENT = timedelta(days=2)
LEASE = timedelta(days=1)  # of an uploaded folder, for the submit that it was sent for


class Rule(Struct, frozen=True, kw_only=True):
    """How long a kind is kept, and how much of it; None is no limit. Nothing younger than `least_age` goes."""

    kind: Kept
    age: timedelta | None = None
    size_bytes: int | None = None
    least_age: timedelta = timedelta(0)

    @property
    def limits(self) -> bool:
        return self.age is not None or self.size_bytes is not None


class Item(Struct, frozen=True, kw_only=True):
    """Something that no live job needs, since a time: what a job left, its record, an uploaded folder."""

    name: str
    since: datetime
    user: str = ""
    size_bytes: int = 0
    files: int = 0
    count: int = 1  # of the things that it stands for


class Going(Struct, frozen=True):
    item: Item
    why: str  # the setting that lets it go


def going(items: Iterable[Item], rule: Rule, now: datetime, *, total_bytes: int = 0) -> Iterator[Going]:
    """Those that the rule lets go of `items`, which come oldest first and take `total_bytes` in all.

    It asks for no more of them than it needs: whatever is younger than one that stays, stays.
    """
    for item in items:
        why = _why(item, rule, now, total_bytes)
        if why is None:
            return
        total_bytes -= item.size_bytes
        yield Going(item, why)


def _why(item: Item, rule: Rule, now: datetime, total_bytes: int) -> str | None:
    age = now - item.since
    if age < rule.least_age:
        return None
    if rule.age is not None and age >= rule.age:
        return f"retention.{rule.kind.value} = {describe_duration(rule.age.total_seconds())}"
    if rule.size_bytes is not None and total_bytes > rule.size_bytes:
        return f"retention.{rule.kind.value}_size = {format_size(rule.size_bytes)}"
    return None


class TreeUse(Struct, frozen=True, kw_only=True):
    """What the records say of an uploaded folder: whether a live job uses it, and what the last ones did."""

    live: bool = False
    submitted_at: datetime | None = None
    ended_at: datetime | None = None


def unused_since(asked_at: datetime, use: TreeUse, now: datetime) -> datetime | None:
    """Since when nobody needs an uploaded folder that was last sent, or asked for, at `asked_at`; None: it is needed.

    Whoever asked for it has a day to submit the job that it is for.
    """
    if use.live:
        return None
    awaited = use.submitted_at is None or use.submitted_at < asked_at
    if awaited and now - asked_at < LEASE:
        return None
    return max(asked_at, use.ended_at or asked_at)
