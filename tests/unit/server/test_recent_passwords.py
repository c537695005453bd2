"""Passwords that were right a moment ago: known for a while, by nobody else, and never many."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from paddlecloud.server.recent_passwords import REMEMBERED_FOR, RecentPasswords

NOW = datetime(2026, 11, 17, tzinfo=UTC)


def test_one_that_was_right_is_known_for_a_while_by_the_same_name_and_address() -> None:
    recent = RecentPasswords()
    recent.remember("ann", "right horse", "192.0.2.1", 7, NOW)
    assert recent.epoch("ann", "right horse", "192.0.2.1", NOW) == 7
    assert recent.epoch("ann", "right horse", "192.0.2.1", NOW + REMEMBERED_FOR - timedelta(seconds=1)) == 7
    assert recent.epoch("ann", "right horse", "192.0.2.1", NOW + REMEMBERED_FOR) is None
    assert len(recent) == 0
    recent.remember("ann", "right horse", "192.0.2.1", 7, NOW)
    for other in (
        ("bob", "right horse", "192.0.2.1"),
        ("ann", "wrong horse", "192.0.2.1"),
        ("ann", "right horse", "192.0.2.2"),
        ("annr", "ight horse", "192.0.2.1"),
        ("ann", "right horse\ud800", "192.0.2.1"),
    ):
        assert recent.epoch(*other, NOW) is None


def test_of_more_than_fit_the_oldest_are_forgotten() -> None:
    recent = RecentPasswords(most=3)
    for number in range(10):
        recent.remember(f"user{number}", "right horse", "192.0.2.1", 0, NOW)
    assert len(recent) == 3
    assert recent.epoch("user9", "right horse", "192.0.2.1", NOW) == 0
    assert recent.epoch("user0", "right horse", "192.0.2.1", NOW) is None


def test_nothing_of_a_password_is_kept() -> None:
    recent = RecentPasswords()
    recent.remember("ann", "right horse", "192.0.2.1", 0, NOW)
    assert "right horse" not in repr(vars(recent))
