"""How often: so many tries to come in, mails and submits in a time, for each user and each address.

What one machine may ask for must not depend on a stranger: who knows your name cannot use up what you have. So a name
together with an address is limited tightly, and a name or an address alone ten times as wide, for a lab behind one
address has many people.
"""

from __future__ import annotations

import ipaddress
import math
import threading
from collections.abc import Hashable
from dataclasses import dataclass
from datetime import datetime, timedelta

from paddlecloud.model.errors import RateError
from paddlecloud.model.units import describe_duration

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
TENFOLD = 10
_IPV6_NETWORK_BITS = 64  # what one customer of a provider has: addresses in it cost nothing
_REMEMBERED = 20_000
_NAME_CHARACTERS = 100  # a name that nobody has may be as long as a request


class Rates:
    """The limits of one server; 0 is no limit."""

    def __init__(
        self,
        *,
        logins_a_minute: int = 0,
        mails_an_hour: int = 0,
        submits_a_minute: int = 0,
        wrong_tokens_a_minute: int = 0,
        unknown_callers_a_minute: int = 0,
    ) -> None:
        self._lock = threading.Lock()
        logins, mails, submits = logins_a_minute, mails_an_hour, submits_a_minute
        self._wrong = Meter(logins, MINUTE, "wrong passwords a minute for one name from one address")
        self._names = Meter(TENFOLD * logins, MINUTE, "logins a minute with one name")
        self._addresses = Meter(TENFOLD * logins, MINUTE, "logins a minute from one address")
        self._mails = Meter(mails, HOUR, "mails an hour to one address")
        self._askers = Meter(TENFOLD * mails, HOUR, "mails an hour at the wish of one machine")
        self._submitters = Meter(submits, MINUTE, "jobs a minute of one user")
        self._submitting = Meter(TENFOLD * submits, MINUTE, "jobs a minute from one address")
        self._wrong_tokens = Meter(wrong_tokens_a_minute, MINUTE, "wrong tokens a minute from one address")
        self._unknown = Meter(unknown_callers_a_minute, MINUTE, "calls a minute under a name that is not believed")

    def log_in(self, name: str, address: str, now: datetime) -> None:
        """Count a try before the password is looked at, so that many at once are no way around it."""
        name, near = name[:_NAME_CHARACTERS], network(address)
        self._take([_Claim(self._wrong, (name, near)), _Claim(self._names, name), _Claim(self._addresses, near)], now)

    def logged_in(self, name: str, address: str) -> None:
        """The password was right, so that try was no guess."""
        with self._lock:
            self._wrong.give_back((name[:_NAME_CHARACTERS], network(address)))

    def mail(self, to: str, address: str, now: datetime) -> None:
        self._take([_Claim(self._mails, to), _Claim(self._askers, network(address))], now)

    def submit(self, user: str, address: str, now: datetime) -> None:
        self._take([_Claim(self._submitters, user), _Claim(self._submitting, network(address))], now)

    def wrong_token(self, address: str, now: datetime) -> None:
        self._take([_Claim(self._wrong_tokens, network(address))], now)

    def unknown_caller(self, address: str, now: datetime) -> None:
        """Count a call that was refused because nothing but a name said who sent it."""
        self._take([_Claim(self._unknown, network(address))], now)

    def check_unknown_caller(self, address: str, now: datetime) -> None:
        """Raise if too many of them came from there."""
        with self._lock:
            wait = self._unknown.wait(network(address), now)
        if wait > timedelta(0):
            raise _refusal(self._unknown, wait)

    def _take(self, claims: list[_Claim], now: datetime) -> None:
        """Count all of them or, where one is over its limit, none."""
        with self._lock:
            waits = [claim.meter.wait(claim.key, now) for claim in claims]
            longest = max(waits)
            if longest > timedelta(0):
                raise _refusal(claims[waits.index(longest)].meter, longest)
            for claim in claims:
                claim.meter.take(claim.key, now)


class Meter:
    """A limit and how much of it each key has used: `count` at once, and then one for each share of the time.

    Of a key one moment is kept, when all it has used will be paid back (the generic cell rate algorithm). Of more
    keys than fit, those unused longest are forgotten.
    """

    def __init__(self, count: int, period: timedelta, what: str, *, remembered: int = _REMEMBERED) -> None:
        self.count = count
        self.what = what
        self._period = period
        self._share = period / count if count else timedelta(0)
        self._remembered = remembered
        self._paid_at: dict[Hashable, datetime] = {}

    def wait(self, key: Hashable, now: datetime) -> timedelta:
        """How long until one more is allowed; 0 or less: now."""
        if not self.count:
            return timedelta(0)
        # A clock that was set back must not lock anybody out for longer than the limit's own time.
        paid_at = min(self._paid_at.get(key, now), now + self._period)
        return paid_at + self._share - self._period - now

    def take(self, key: Hashable, now: datetime) -> None:
        if not self.count:
            return
        paid_at = max(min(self._paid_at.pop(key, now), now + self._period), now)
        self._paid_at[key] = paid_at + self._share
        if len(self._paid_at) > self._remembered:
            del self._paid_at[next(iter(self._paid_at))]

    def give_back(self, key: Hashable) -> None:
        """Forget one that was taken."""
        if key in self._paid_at:
            self._paid_at[key] -= self._share

    def __len__(self) -> int:
        return len(self._paid_at)


@dataclass(frozen=True, slots=True)
class _Claim:
    meter: Meter
    key: Hashable


def network(address: str) -> str:
    """What counts as one address: of IPv6 a whole network, as whoever has one has them all."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, _IPV6_NETWORK_BITS), strict=False))


def _refusal(meter: Meter, wait: timedelta) -> RateError:
    seconds = math.ceil(wait.total_seconds())
    return RateError(
        f"too often: {meter.count} {meter.what} are allowed; try again in {describe_duration(seconds)}",
        retry_after_seconds=seconds,
    )
