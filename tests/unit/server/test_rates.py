"""How often: bursts, refills, who shares a limit with whom, and how much is remembered."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from paddlecloud.model.errors import RateError
from paddlecloud.server.rates import MINUTE, Meter, Rates, network

NOW = datetime(2026, 11, 16, 8, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def allowed(rates: Rates, name: str, address: str, now: datetime = NOW) -> int:
    """How many tries to log in are let through at one moment."""
    count = 0
    try:
        while count < 10_000:
            rates.log_in(name, address, now)
            count += 1
    except RateError:
        pass
    return count


def test_so_many_at_once_and_then_one_for_each_share_of_the_time() -> None:
    meter = Meter(6, MINUTE, "tries")
    for _ in range(6):
        assert meter.wait("a", NOW) <= timedelta(0)
        meter.take("a", NOW)
    assert meter.wait("a", NOW) == 10 * SECOND
    assert meter.wait("a", NOW + 4 * SECOND) == 6 * SECOND
    assert meter.wait("a", NOW + 10 * SECOND) <= timedelta(0)
    assert meter.wait("b", NOW) <= timedelta(0)


def test_over_a_long_time_no_more_than_the_limit_is_let_through() -> None:
    meter = Meter(60, MINUTE, "tries")
    taken = 0
    for tenth in range(10 * 600):
        now = NOW + tenth * SECOND / 10
        if meter.wait("a", now) <= timedelta(0):
            meter.take("a", now)
            taken += 1
    assert 600 <= taken <= 660


def test_a_clock_that_is_set_back_locks_nobody_out_for_longer_than_the_limits_own_time() -> None:
    meter = Meter(2, MINUTE, "tries")
    for _ in range(2):
        meter.take("a", NOW)
    long_ago = NOW - timedelta(days=365)
    assert meter.wait("a", long_ago) == 30 * SECOND
    assert meter.wait("a", long_ago + 30 * SECOND) == 30 * SECOND
    meter.take("a", long_ago)
    assert meter.wait("a", long_ago + MINUTE) <= MINUTE


def test_what_is_given_back_was_not_used() -> None:
    meter = Meter(2, MINUTE, "tries")
    for _ in range(2):
        meter.take("a", NOW)
    meter.give_back("a")
    assert meter.wait("a", NOW) <= timedelta(0)
    meter.give_back("nobody")


def test_memory_is_bounded_and_what_was_used_last_is_remembered() -> None:
    meter = Meter(1, MINUTE, "tries", remembered=100)
    meter.take("victim", NOW)
    for number in range(99):
        meter.take(number, NOW)
    meter.take("victim", NOW + SECOND)
    for number in range(50):
        meter.take(f"more {number}", NOW)
    assert len(meter) == 100
    assert meter.wait("victim", NOW + SECOND) > timedelta(0)
    assert meter.wait(0, NOW) <= timedelta(0)


def test_0_is_no_limit() -> None:
    rates = Rates()
    assert allowed(rates, "ann", "192.0.2.1") == 10_000
    for _ in range(1000):
        rates.mail("ann@lab.example", "192.0.2.1", NOW)
        rates.submit("ann", "192.0.2.1", NOW)
        rates.wrong_token("192.0.2.1", NOW)


def test_a_stranger_who_guesses_does_not_lock_the_owner_of_a_name_out() -> None:
    rates = Rates(logins_a_minute=10)
    assert allowed(rates, "ann", "192.0.2.1") == 10
    assert allowed(rates, "ann", "192.0.2.2") == 10
    with pytest.raises(RateError, match="10 wrong passwords a minute for one name from one address"):
        rates.log_in("ann", "192.0.2.1", NOW)


def test_many_machines_together_guess_ten_times_as_often_and_no_more() -> None:
    rates = Rates(logins_a_minute=10)
    tried = sum(allowed(rates, "ann", f"192.0.2.{number}") for number in range(1, 51))
    assert tried == 100
    assert allowed(rates, "bob", "192.0.2.1") == 10


def test_one_machine_guesses_for_many_names_ten_times_as_often_and_no_more() -> None:
    rates = Rates(logins_a_minute=10)
    assert sum(allowed(rates, f"user-{number}", "192.0.2.1") for number in range(50)) == 100


def test_names_too_long_to_be_remembered_are_one_name() -> None:
    rates = Rates(logins_a_minute=10)
    tried = sum(allowed(rates, "x" * 10_000 + str(number), "192.0.2.1") for number in range(5))
    assert tried == 10


def test_who_knows_the_password_may_come_in_more_often() -> None:
    rates = Rates(logins_a_minute=10)
    for _ in range(50):
        rates.log_in("ann", "192.0.2.1", NOW)
        rates.logged_in("ann", "192.0.2.1")
    assert allowed(rates, "ann", "192.0.2.1") == 10


def test_what_is_refused_is_not_counted_anywhere() -> None:
    rates = Rates(logins_a_minute=10)
    allowed(rates, "ann", "192.0.2.1")
    for _ in range(1000):
        with pytest.raises(RateError):
            rates.log_in("ann", "192.0.2.1", NOW)
    assert allowed(rates, "bob", "192.0.2.1") == 10
    assert allowed(rates, "ann", "192.0.2.2") == 10


def test_a_refusal_says_the_numbers_and_when_again() -> None:
    rates = Rates(mails_an_hour=3)
    for _ in range(3):
        rates.mail("ann@lab.example", "192.0.2.1", NOW)
    with pytest.raises(RateError) as refused:
        rates.mail("ann@lab.example", "192.0.2.9", NOW + SECOND)
    assert refused.value.message == "too often: 3 mails an hour to one address are allowed; try again in 20 min"
    assert refused.value.retry_after_seconds == 20 * 60 - 1
    rates.mail("ann@lab.example", "192.0.2.9", NOW + timedelta(minutes=20))


def test_a_user_and_a_whole_lab_behind_one_address_have_limits_of_their_own() -> None:
    rates = Rates(submits_a_minute=2)
    for number in range(10):
        for _ in range(2):
            rates.submit(f"user-{number}", "192.0.2.1", NOW)
        with pytest.raises(RateError, match="jobs a minute of one user"):
            rates.submit(f"user-{number}", "192.0.2.2", NOW)
    with pytest.raises(RateError, match="20 jobs a minute from one address"):
        rates.submit("one more", "192.0.2.1", NOW)


def test_wrong_tokens_are_counted_for_each_address() -> None:
    rates = Rates(wrong_tokens_a_minute=2)
    for address in ("192.0.2.1", "192.0.2.2"):
        for _ in range(2):
            rates.wrong_token(address, NOW)
        with pytest.raises(RateError, match="2 wrong tokens a minute from one address"):
            rates.wrong_token(address, NOW)
    rates.wrong_token("192.0.2.1", NOW + 30 * SECOND)


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("testclient", "testclient"),
    ],
)
def test_of_ipv6_a_whole_network_counts_as_one_address(address: str, counted: str) -> None:
    assert network(address) == counted
