"""Who sends this request: checks signatures and bearer tokens against the records, and nothing else.

A signed request is good once, within five minutes of its date. The numbers used are remembered in memory until their
dates are out of the window; what was accepted before this server's start is not, so such dates are refused. Of a key
whose dates are ahead of this clock it is recorded how far: they too were before the start of the next server.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from paddlecloud.model import signature
from paddlecloud.model.errors import ForbiddenError, InvalidError, StaleError, UnauthenticatedError
from paddlecloud.model.pfs import Who
from paddlecloud.model.signature import BODY_HASH_HEADER, DATE_HEADER, NONCE_HEADER, WINDOW, SignedRequest
from paddlecloud.model.units import describe_duration
from paddlecloud.model.user import Role, Scope, Token, User
from paddlecloud.store.applications import is_application
from paddlecloud.store.users import Users

NONCES_OF_A_KEY = 50_000
AHEAD_STEP = timedelta(seconds=1)  # what is recorded at a time, so that not every request waits for the disk

_IDENTIFYING = {name.lower() for name in ("Authorization", DATE_HEADER, NONCE_HEADER, BODY_HASH_HEADER)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who asks, how much they may do and until when; None: for ever.

    `body_hash` is what the body must have; None: nothing was said of it.
    """

    user: User
    scope: Scope
    expires_at: datetime | None = None
    body_hash: str | None = None
    application: bool = False  # by a token of an application, which is good for jobs and files alone

    @property
    def admin(self) -> bool:
        return self.user.role is Role.ADMIN and self.scope is Scope.ADMIN

    @property
    def who(self) -> Who:
        """Who asks, as the PFS wants to know it."""
        return Who(user=self.user.name, admin=self.admin)

    def need(self, scope: Scope) -> None:
        if not self.scope.allows(scope):
            raise ForbiddenError(
                f"this token of {self.user.name} has the scope {self.scope.value}, and {scope.value} is needed: "
                "make one with that scope"
            )

    def need_person(self) -> None:
        if self.application:
            raise ForbiddenError(
                f"a token of an application of {self.user.name} may use jobs and files, and nothing that is about "
                "users, keys, tokens and other secrets: log in"
            )

    def need_full_power(self) -> None:
        """Raise unless the caller may do all that the user may: else a leaked token could see, make or revoke
        others."""
        self.need_person()
        self.need(self.user.full_scope)

    def need_to_keep_secrets(self) -> None:
        """Raise unless the caller may list, add and remove what the user's jobs log in elsewhere with."""
        self.need_person()
        self.need(Scope.WRITE)

    def need_admin(self) -> None:
        if self.user.role is not Role.ADMIN:
            raise ForbiddenError(f"only an admin may do this, and {self.user.name} is none")
        self.need(Scope.ADMIN)


class Authenticator:
    def __init__(self, users: Users, clock: Callable[[], datetime], *, nonces_of_a_key: int = NONCES_OF_A_KEY) -> None:
        self._users = users
        self._clock = clock
        self._replays = _Replays(clock(), nonces_of_a_key, users.ahead())
        self._ahead = _Ahead(users)

    def identify(self, method: str, path: str, query: str, headers: Mapping[str, str]) -> Identity:
        """Who sends a request of this path and query, both as sent; UnauthenticatedError says what is wrong."""
        sent = _lower(headers)
        authorization = sent.get("authorization", "").strip()
        if not authorization:
            raise UnauthenticatedError(
                "the request does not say who sends it: run `paddlecloud login`, or set an access key in the config"
            )
        scheme, _, rest = authorization.partition(" ")
        if scheme.lower() == "bearer":
            return self.bearer(rest.strip())[0]
        return self._signed(method, path, query, sent, authorization)

    def bearer(self, secret: str) -> tuple[Identity, Token]:
        """Who has this token."""
        user, token = self._users.token(secret, self._clock())
        identity = Identity(
            user=user, scope=token.scope, expires_at=token.expires_at, application=is_application(token)
        )
        return identity, token

    def nonces_remembered(self) -> int:
        """How many signed requests are kept in mind, so that none is accepted twice."""
        return self._replays.count()

    def _signed(self, method: str, path: str, query: str, sent: Mapping[str, str], authorization: str) -> Identity:
        credential = signature.parse_authorization(authorization)
        request = SignedRequest(
            method=method,
            path=path,
            query=query,
            body_hash=_needed(sent, BODY_HASH_HEADER),
            date=_needed(sent, DATE_HEADER),
            nonce=_needed(sent, NONCE_HEADER),
        )
        date = signature.parse_date(request.date)
        now = self._clock()
        _check_window(date, now)
        user, secret = self._users.key_secret(credential.ak)
        if not _fits(secret, request, credential.signature):
            raise UnauthenticatedError(
                f"the signature is wrong for access key {credential.ak}: check the secret key, "
                "and that nothing between changes the request"
            )
        self._replays.refuse(credential.ak, request.nonce, date, now)
        if date > now:
            self._ahead.note(credential.ak, date)
        return Identity(user=user, scope=Scope.ADMIN, body_hash=request.body_hash)


@dataclass(slots=True)
class _Used:
    """The nonces that one access key has used. Those dated up to `floor` are forgotten, so such dates are refused."""

    floor: datetime | None = None
    nonces: set[str] = field(default_factory=set)
    by_date: list[tuple[datetime, str]] = field(default_factory=list)

    def forget_before(self, date: datetime) -> None:
        while self.by_date and self.by_date[0][0] < date:
            self._forget_oldest()

    def forget_half(self) -> None:
        for _ in range(len(self.by_date) // 2):
            self.floor = self._forget_oldest()

    def _forget_oldest(self) -> datetime:
        date, nonce = heapq.heappop(self.by_date)
        self.nonces.discard(nonce)
        return date


class _Ahead:
    """Records how far ahead of the clock the dates of each access key have been, before such a request is taken."""

    def __init__(self, users: Users) -> None:
        self._users = users
        self._lock = threading.Lock()
        self._until: dict[str, datetime] = {}

    def note(self, ak: str, date: datetime) -> None:
        with self._lock:
            if ak in self._until and date <= self._until[ak]:
                return
            self._users.note_ahead(ak, date + AHEAD_STEP)
            self._until[ak] = date + AHEAD_STEP


class _Replays:
    """Remembers each nonce until its date is out of the window, up to a fixed count for each access key.

    Over that count the oldest half is forgotten and their dates are refused: a flood makes its own window narrower,
    never that of another key, and nothing is accepted twice.
    """

    def __init__(self, started_at: datetime, limit: int, ahead: Mapping[str, datetime]) -> None:
        self._started_at = _milliseconds(started_at)
        self._limit = limit
        self._ahead = ahead
        self._lock = threading.Lock()
        self._used: dict[str, _Used] = {}
        self._swept_at = started_at

    def refuse(self, ak: str, nonce: str, date: datetime, now: datetime) -> None:
        """Raise if this was sent before, or may have been; else remember it."""
        if now < self._started_at:  # the clock was set back: who signs now is as after a start at this time
            self._started_at = _milliseconds(now)
        if date < self._started_at or date <= self._ahead.get(ak, self._started_at - WINDOW):
            raise StaleError(
                "the request is dated before this server's start, so it may have been sent before: sign it anew"
            )
        with self._lock:
            self._sweep(now)
            used = self._used.setdefault(ak, _Used())
            if used.floor is not None and date <= used.floor:
                raise UnauthenticatedError(
                    f"access key {ak} has sent too many requests since this one was dated: sign it anew"
                )
            if nonce in used.nonces:
                raise UnauthenticatedError("the request was sent before: sign each request anew")
            used.nonces.add(nonce)
            heapq.heappush(used.by_date, (date, nonce))
            used.forget_before(now - WINDOW)
            if len(used.by_date) > self._limit:
                used.forget_half()

    def count(self) -> int:
        with self._lock:
            return sum(len(used.by_date) for used in self._used.values())

    def _sweep(self, now: datetime) -> None:
        """Once a window, forget the keys that have not been used in it."""
        if now - self._swept_at < WINDOW:
            return
        for ak, used in list(self._used.items()):
            used.forget_before(now - WINDOW)
            if not used.by_date:
                del self._used[ak]
        self._swept_at = now


def _milliseconds(time: datetime) -> datetime:
    """Dates come in milliseconds: one of the same millisecond as the start is not before it."""
    return time.replace(microsecond=time.microsecond // 1000 * 1000)


def _fits(secret: str, request: SignedRequest, given: str) -> bool:
    try:
        return signature.fits(secret, request, given)
    except InvalidError as error:
        raise UnauthenticatedError(error.message, field=error.field) from None


def _check_window(date: datetime, now: datetime) -> None:
    if abs(now - date) <= WINDOW:
        return
    apart = describe_duration(abs(now - date).total_seconds())
    side = "behind" if date < now else "ahead of"
    raise UnauthenticatedError(
        f"the request is dated {apart} {side} this server's clock ({signature.format_date(now)}), and "
        f"{describe_duration(WINDOW.total_seconds())} are allowed: set the clock that is wrong",
        field=DATE_HEADER,
    )


def _needed(sent: Mapping[str, str], name: str) -> str:
    value = sent.get(name.lower(), "").strip()
    if not value:
        raise UnauthenticatedError(f"a signed request needs the header {name}", field=name)
    return value


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers that identify, by their names in small letters; two of one name could mean two senders."""
    found: dict[str, str] = {}
    for name, value in headers.items():
        lower = name.lower()
        if lower in _IDENTIFYING:
            if lower in found:
                raise UnauthenticatedError(f"the header {name} was given twice", field=name)
            found[lower] = value
    return found
