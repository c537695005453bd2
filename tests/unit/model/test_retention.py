"""What may go: by age, by size, never what is younger than it must be, and never an uploaded folder that is needed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from paddlecloud.model import retention
from paddlecloud.model.kept import Kept, Removed, kinds_at
from paddlecloud.model.retention import Going, Item, Rule, TreeUse, unused_since

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def items(*of: tuple[float, int]) -> list[Item]:
    """Things of so many days and bytes, named by their place."""
    return [Item(name=str(at), since=NOW - days * DAY, size_bytes=size) for at, (days, size) in enumerate(of)]


def names(going: Iterator[Going]) -> list[str]:
    return [one.item.name for one in going]


@pytest.mark.parametrize(
    ("rule", "of", "gone"),
    [
        (Rule(kind=Kept.RESULTS), [(900, 1), (1, 1)], []),
        (Rule(kind=Kept.RESULTS, age=30 * DAY), [(31, 1), (30, 1), (29.9, 1)], ["0", "1"]),
        (Rule(kind=Kept.RESULTS, age=30 * DAY), [], []),
        (Rule(kind=Kept.RESULTS, size_bytes=10), [(9, 5), (8, 5), (7, 5)], ["0"]),
        (Rule(kind=Kept.RESULTS, size_bytes=10), [(9, 5), (8, 5)], []),
        (Rule(kind=Kept.RESULTS, size_bytes=0), [(9, 5), (8, 0), (7, 1)], ["0", "1", "2"]),
        (Rule(kind=Kept.RESULTS, age=30 * DAY, size_bytes=10), [(31, 1), (8, 9), (7, 9)], ["0", "1"]),
        (Rule(kind=Kept.JOBS, age=DAY, least_age=2 * DAY), [(3, 1), (1.9, 1)], ["0"]),
        (Rule(kind=Kept.JOBS, size_bytes=0, least_age=2 * DAY), [(3, 1), (1, 1)], ["0"]),
        (Rule(kind=Kept.RESULTS, age=DAY), [(-1, 1)], []),
    ],
)
def test_what_a_rule_lets_go(rule: Rule, of: list[tuple[float, int]], gone: list[str]) -> None:
    found = items(*of)
    total = sum(item.size_bytes for item in found)
    assert names(retention.going(found, rule, NOW, total_bytes=total)) == gone


def test_no_more_is_asked_for_than_may_go() -> None:
    asked: list[str] = []

    def told() -> Iterator[Item]:
        for item in items((40, 1), (1, 1), (1, 1)):
            asked.append(item.name)
            yield item

    assert names(retention.going(told(), Rule(kind=Kept.LOGS, age=30 * DAY), NOW)) == ["0"]
    assert asked == ["0", "1"]


def test_what_goes_names_the_setting_that_lets_it() -> None:
    rule = Rule(kind=Kept.RESULTS, age=30 * DAY, size_bytes=2**30)
    going = retention.going(items((31, 2**30), (2, 2**30)), rule, NOW, total_bytes=2**31 + 1)
    assert [one.why for one in going] == ["retention.results = 30 days", "retention.results_size = 1.0 GiB"]


def test_what_is_removed_is_told_with_its_day_and_its_setting() -> None:
    removed = Removed(kind=Kept.LOGS, at=NOW, by="retention.logs = 7 days")
    said = "the logs of job-1 were removed on 2026-11-20 by the server's retention (retention.logs = 7 days)"
    assert removed.sentence("job-1") == said
    assert replace(removed, by="its owner ann").words == "removed on 2026-11-20 by its owner ann"


@pytest.mark.parametrize(
    ("asked_days", "use", "unused_days"),
    [
        (40, TreeUse(), 40),
        (0.9, TreeUse(), None),
        (1, TreeUse(), 1),
        (40, TreeUse(live=True, submitted_at=NOW - 40 * DAY), None),
        (40, TreeUse(submitted_at=NOW - 39 * DAY, ended_at=NOW - 10 * DAY), 10),
        (0.5, TreeUse(submitted_at=NOW - 0.4 * DAY, ended_at=NOW - 0.3 * DAY), 0.3),
        (0.5, TreeUse(submitted_at=NOW - 9 * DAY, ended_at=NOW - 8 * DAY), None),
        (3, TreeUse(submitted_at=NOW - 9 * DAY, ended_at=NOW - 8 * DAY), 3),
    ],
    ids=[
        "sent once and never used",
        "sent today, and its submit is still awaited",
        "sent a day ago, and no submit came",
        "a live job uses it",
        "its last job ended",
        "sent, submitted and done today",
        "asked for again today, after its last job",
        "asked for again, and no submit came",
    ],
)
def test_since_when_an_uploaded_folder_is_not_needed(
    asked_days: float, use: TreeUse, unused_days: float | None
) -> None:
    wanted = None if unused_days is None else NOW - unused_days * DAY
    assert unused_since(NOW - asked_days * DAY, use, NOW) == wanted


@pytest.mark.parametrize(
    ("path", "kinds"),
    [
        ("", (Kept.RESULTS, Kept.LOGS)),
        ("log", (Kept.LOGS,)),
        ("log/trainer-0.log", (Kept.LOGS,)),
        ("logs", (Kept.RESULTS,)),
        ("rank-0/log", (Kept.RESULTS,)),
    ],
)
def test_every_path_of_a_jobs_results_is_of_a_kind(path: str, kinds: tuple[Kept, ...]) -> None:
    assert kinds_at(path) == kinds
