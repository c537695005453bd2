"""One connection to a server: signs, retries what may be repeated, and raises the error that the server raised.

Every try is signed anew, since the server takes a nonce once; only calls that change nothing when made twice are
tried again. A password is sent once, for a token, which is kept and made anew when it is refused.
"""

from __future__ import annotations

import hashlib
import os
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from paddlecloud.model import signature, wire
from paddlecloud.model.errors import (
    BY_CODE,
    InvalidError,
    NotFoundError,
    PaddleCloudError,
    RateError,
    StaleError,
    UnauthenticatedError,
    UnreachableError,
)
from paddlecloud.sdk import identity, trust
from paddlecloud.sdk.connections import Answer, BrokenError
from paddlecloud.sdk.profile import Profile
from paddlecloud.sdk.sse import Event, parse

T = TypeVar("T")
Query = Mapping[str, str | int | bool | None]

_REPEATABLE = frozenset({"GET", "HEAD", "PUT", "DELETE"})
_AWAY = frozenset({502, 503, 504})
_FIRST_PATIENCE_SECONDS = 2.0
_PATIENCE_SECONDS = 60.0
_LONGEST_PAUSE_SECONDS = 3.0
_LOGIN_SECONDS = 3600
_KEPT_LOGIN_SECONDS = 7 * 24 * 3600
_LONGEST_TURN_SECONDS = 60  # that is waited for without being asked to
_TURNS_SECONDS = 600.0


def utc_now() -> datetime:
    """The SDK's only clock: signatures carry the time of this machine."""
    return datetime.now(UTC)  # noqa: TID251


def warn(text: str) -> None:
    """Say what a program need not act on; Python prints it to stderr unless told otherwise."""
    import logging  # which takes longer than most calls to a server

    logging.getLogger("paddlecloud").warning("%s", text)


class Http:
    """Speaks to the server of a profile, in the name of its user. Safe to share between threads."""

    def __init__(self, profile: Profile, *, clock: Callable[[], datetime] = utc_now) -> None:
        self.profile = profile
        self._clock = clock
        self._token = profile.token or self._kept_token()
        self._logging_in = Lock()
        self._settling = Lock()
        self._met = False  # a server that has answered once is waited for longer
        self._connections = trust.connections(profile)

    def close(self) -> None:
        self._connections.close()

    def get(self, kind: type[T], path: str, query: Query | None = None) -> T:
        """The answer of a GET as a `kind`."""
        return self._read(kind, path, self.request("GET", path, query=query).data)

    def send(
        self,
        kind: type[T],
        method: str,
        path: str,
        value: object = None,
        *,
        headers: Mapping[str, str] | None = None,
        repeatable: bool = False,
    ) -> T:
        """The answer, as a `kind`, to a call whose body is `value` in JSON."""
        body = b"" if value is None else _encoded(value)
        response = self.request(method, path, body=body, headers=headers, repeatable=repeatable)
        return self._read(kind, path, response.data)

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        repeatable: bool = False,
        stream: bool = False,
    ) -> Answer:
        """The server's answer below 400; `path` is plain, it is percent-encoded here. `stream` leaves it unread."""
        repeatable = repeatable or method in _REPEATABLE
        target = _target(path, query)
        patience = _Patience(_PATIENCE_SECONDS if self._met else _FIRST_PATIENCE_SECONDS)
        turns = _Patience(_TURNS_SECONDS)
        stale: _Patience | None = None
        renewed = False
        while True:
            token = self._token
            try:
                response = self._send_once(method, target, body, headers or {}, stream)
            except BrokenError as error:
                if isinstance(error.cause, ssl.SSLError) or not repeatable or not patience.pause():
                    raise self._unreachable(error) from None
                continue
            if response.status in _AWAY and repeatable and patience.pause():
                response.close()
                continue
            self._met = True
            if response.status < 400:
                return response
            if response.status == 401 and not renewed and self._lets_go(token):
                renewed = True
                response.close()
                continue
            refusal = identity.with_source(_refusal(response, f"{self.profile.server}{path}"), self.profile)
            if isinstance(refusal, StaleError):  # signed before the server's start: nothing was done
                stale = stale or _Patience(_PATIENCE_SECONDS)
                if not stale.pause():
                    raise self._always_stale() from None
            elif not _waited(refusal, turns):
                raise refusal

    def follow(self, path: str, query: Query, *, is_last: Callable[[Event], bool], after: str = "") -> Iterator[Event]:
        """Server-sent events up to and with the one that `is_last`; a broken connection is taken up where it broke."""
        patience = _Patience(_PATIENCE_SECONDS)
        has_broken = False
        while True:
            try:
                for event in self.events(path, query, after=after):
                    patience = _Patience(_PATIENCE_SECONDS)
                    yield event
                    if is_last(event):
                        return
                    after = event.id or after
            except BrokenError as error:
                if not patience.pause():
                    raise self._unreachable(error) from None
            except (NotFoundError, UnauthenticatedError) as error:
                if not has_broken:
                    raise
                raise type(error)(
                    f"another server answers at {self.profile.server} since the connection broke: {error.message}; "
                    "was it started with another data folder?"
                ) from None
            else:
                # It ended in good order and too early: the server is going down, or a proxy lost its patience.
                if not patience.pause():
                    raise UnreachableError(f"{self.profile.server} ends the stream {path} at once, again and again")
            has_broken = True

    def events(self, path: str, query: Query, *, after: str = "") -> Iterator[Event]:
        """Server-sent events of one connection, until the server closes it."""
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": after} if after else {})
        response = self.request("GET", path, query=query, headers=headers, stream=True)
        try:
            yield from parse(response.stream())
        finally:
            response.close()

    def _read(self, kind: type[T], path: str, body: bytes) -> T:
        try:
            return wire.decode_answer(kind, body)
        except InvalidError as error:
            raise PaddleCloudError(
                f"{self.profile.server}{path}: {error.message}; is that a PaddleCloud server?"
            ) from None

    def _send_once(self, method: str, target: str, body: bytes, headers: Mapping[str, str], stream: bool) -> Answer:
        if not self.profile.server:
            raise UnreachableError("no server is configured and none runs here; start one with: paddlecloud up")
        if self.profile.servers:
            self._settle()
        sent = dict(headers) | self._identity(method, target, body)
        if body:
            sent.setdefault("Content-Type", "application/json")
        answer = self._connections.request(method, target, body=body, headers=sent)
        return answer if stream else answer.read()

    def _settle(self) -> None:
        """Take one of several servers, for good: what is sent to it is not at the others."""
        from paddlecloud.sdk import receivers

        with self._settling:
            if self.profile.servers:
                self._connections, self.profile = receivers.answering(self.profile)
                self._token = self.profile.token or self._kept_token()

    def _identity(self, method: str, target: str, body: bytes) -> dict[str, str]:
        profile = self.profile
        if profile.ak and profile.sk and not self._token:
            path, _, query = target.partition("?")
            return signature.headers(
                profile.ak,
                profile.sk,
                method=method,
                path=urlsplit(profile.server).path + path,
                query=query,
                body_hash=hashlib.sha256(body).hexdigest(),
                date=self._clock(),
                nonce=os.urandom(16).hex(),
            )
        if profile.password and target != "/v1/login":
            with self._logging_in:
                self._token = self._token or self._log_in()
        return {"Authorization": f"Bearer {self._token}"} if self._token else {}

    def _log_in(self) -> str:
        """A new token for the password."""
        from paddlecloud.model.accounts import LoginRequest, NewToken

        profile = self.profile
        seconds = _KEPT_LOGIN_SECONDS if profile.tokens_file else _LOGIN_SECONDS
        asked = LoginRequest(name=profile.user, password=profile.password, expires_in_seconds=seconds)
        made = self.send(NewToken, "POST", "/v1/login", asked)
        if profile.tokens_file and made.token.expires_at is not None:
            from paddlecloud.sdk import kept_tokens

            file = Path(profile.tokens_file)
            kept_tokens.keep(file, profile.server, profile.user, made.secret, made.token.expires_at, self._clock())
        return made.secret

    def _kept_token(self) -> str:
        profile = self.profile
        if not profile.tokens_file:
            return ""
        from paddlecloud.sdk import kept_tokens

        return kept_tokens.find(Path(profile.tokens_file), profile.server, profile.user, self._clock())

    def _lets_go(self, refused: str) -> bool:
        """Whether another token can be had for one that was refused, as one that was kept may be revoked or expired."""
        profile = self.profile
        if not profile.password or not refused:
            return False
        with self._logging_in:
            if self._token == refused:
                self._token = ""
        if profile.tokens_file:
            from paddlecloud.sdk import kept_tokens

            kept_tokens.forget(Path(profile.tokens_file), profile.server, profile.user, refused)
        return True

    def _always_stale(self) -> UnreachableError:
        return UnreachableError(
            f"{self.profile.server} has refused every request for {_PATIENCE_SECONDS:.0f} s as dated before its start: "
            "the clock of this machine is behind the server's, or the server is started again and again"
        )

    def _unreachable(self, error: BrokenError) -> UnreachableError:
        profile = self.profile
        if not self._met and (complaint := trust.complaint(error, profile)):
            return UnreachableError(f"{profile.server} cannot be spoken to: {complaint}")
        named = profile.sources.get("server", "the program")
        if profile.embedded:
            todo = "start it again with: paddlecloud up"
        else:
            todo = f"is it running, and is its address right? It was named by {named}"
        return UnreachableError(f"{profile.server} does not answer ({str(error).lower()}); {todo}")


class _Patience:
    """How long to go on trying: pauses that grow, until the time is used up."""

    def __init__(self, seconds: float) -> None:
        self._deadline = time.monotonic() + seconds
        self._next = 0.1

    def pause(self) -> bool:
        """Wait a little and say True, or False where there is no time left."""
        # A random share keeps many clients from coming back at the same moment.
        length = self._next * (0.5 + os.urandom(1)[0] / 512)
        self._next = min(self._next * 2, _LONGEST_PAUSE_SECONDS)
        return self.wait(length)

    def wait(self, length: float) -> bool:
        """Wait so long and say True, or False where there is not so much time left."""
        if time.monotonic() + length > self._deadline:
            return False
        time.sleep(length)
        return True


def _waited(refusal: PaddleCloudError, turns: _Patience) -> bool:
    """Whether the same may be asked again now: of what was refused for its time alone, nothing was done."""
    seconds = refusal.retry_after_seconds if isinstance(refusal, RateError) else None
    if seconds is None or seconds > _LONGEST_TURN_SECONDS:
        return False
    warn(f"{refusal.message}; waiting")
    return turns.wait(seconds)


def _encoded(value: object) -> bytes:
    try:
        return wire.encode(value)
    except UnicodeEncodeError as error:
        raise _not_utf8(error) from None


def _target(path: str, query: Query | None) -> str:
    try:
        asked = _query(query)
        return f"{quote(path)}?{asked}" if asked else quote(path)
    except UnicodeEncodeError as error:
        raise _not_utf8(error) from None


def _not_utf8(error: UnicodeEncodeError) -> InvalidError:
    return InvalidError(f"not UTF-8 text, which no server can be asked with: {error.object[:80]!r}; write it in UTF-8")


def _query(query: Query | None) -> str:
    def text(value: str | int | bool) -> str:
        return str(value).lower() if isinstance(value, bool) else str(value)

    return urlencode({name: text(value) for name, value in (query or {}).items() if value is not None}, quote_via=quote)


def _refusal(response: Answer, url: str) -> PaddleCloudError:
    """The error that the server raised; an answer that is not ours, such as a proxy's, is told as it came."""
    plain = _problem(response.data)
    detail = plain.get("detail")
    if not isinstance(detail, str):
        kinds = {401: UnauthenticatedError, 503: UnreachableError}
        return kinds.get(response.status, PaddleCloudError)(f"{url} answered {response.status} {response.reason}")
    kind = BY_CODE.get(str(plain.get("code")), PaddleCloudError)
    named = plain.get("field")
    refusal = kind(detail, field=named if isinstance(named, str) else None)
    after = response.headers.get("retry-after", "")
    if isinstance(refusal, RateError) and after.isdecimal():
        refusal.retry_after_seconds = int(after)
    return refusal


def _problem(body: bytes) -> dict[str, Any]:
    try:
        return wire.decode_answer(dict[str, Any], body)
    except InvalidError:
        return {}
