"""Coming in by a password: counted before it is hashed, and on record however it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

from anyio import CapacityLimiter, to_thread
from starlette.concurrency import run_in_threadpool

from paddlecloud.model.accounts import LoginRequest, NewToken
from paddlecloud.model.audit import Action
from paddlecloud.model.errors import NotFoundError, UnauthenticatedError
from paddlecloud.model.user import User
from paddlecloud.server.accounts import Accounts
from paddlecloud.server.audit import AuditService, Origin
from paddlecloud.server.rates import Rates
from paddlecloud.server.recent_passwords import RecentPasswords
from paddlecloud.store.users import Users

_AT_ONCE = 2


class Logins:
    def __init__(
        self, *, accounts: Accounts, users: Users, rates: Rates, audit: AuditService, clock: Callable[[], datetime]
    ) -> None:
        self._accounts = accounts
        self._users = users
        self._rates = rates
        self._audit = audit
        self._clock = clock
        self._recent = RecentPasswords()
        # Anybody may try one and each takes long: the threads of all others are not theirs.
        self._threads = CapacityLimiter(_AT_ONCE)

    async def login(self, request: LoginRequest, origin: Origin) -> NewToken:
        """A new token for a password."""
        self._rates.log_in(request.name, origin.address, self._clock())
        return await to_thread.run_sync(self._login, request, origin, limiter=self._threads)

    async def check(self, request: LoginRequest, origin: Origin) -> User:
        """Whose password this is, for those who come with it each time, or with a token of another kind.

        One that was right a while ago is no guess: it is not counted, nor hashed again, nor on record again.
        """
        epoch = self._recent.epoch(request.name, request.password, origin.address, self._clock())
        if epoch is not None:
            user = await run_in_threadpool(self._in_epoch, request.name, epoch)
            if user is not None:
                return user
        self._rates.log_in(request.name, origin.address, self._clock())
        return await to_thread.run_sync(self._check, request, origin, limiter=self._threads)

    def _login(self, request: LoginRequest, origin: Origin) -> NewToken:
        with self._recording_refusal(request.name, origin):
            made = self._accounts.login(request)
        self._came_in(made.token.user, origin, f"token {made.token.id}")
        return made

    def _check(self, request: LoginRequest, origin: Origin) -> User:
        epoch = self._epoch(request.name)
        with self._recording_refusal(request.name, origin):
            user = self._users.check_password(request.name, request.password)
        self._came_in(user.name, origin, "password")
        if epoch is not None:
            self._recent.remember(user.name, request.password, origin.address, epoch, self._clock())
        return user

    def _epoch(self, name: str) -> int | None:
        try:
            return self._users.epoch(name)
        except NotFoundError:
            return None

    def _in_epoch(self, name: str, epoch: int) -> User | None:
        """The user, if nothing has ended what they came in by since."""
        try:
            user, now = self._users.in_epoch(name)
        except (NotFoundError, UnauthenticatedError):
            return None
        return user if now == epoch else None

    @contextmanager
    def _recording_refusal(self, name: str, origin: Origin) -> Iterator[None]:
        try:
            yield
        except UnauthenticatedError as error:
            # A name that nobody has may be a password that was typed in the wrong place.
            known = self._known(name)
            detail = error.message if known else "no such user"
            self._audit.record(Action.LOGIN_REFUSED, origin, target=known, detail=detail)
            raise

    def _came_in(self, user: str, origin: Origin, by: str) -> None:
        self._rates.logged_in(user, origin.address)
        self._audit.record(Action.LOGIN, origin, user=user, target=user, detail=by)

    def _known(self, name: str) -> str:
        try:
            return self._users.get(name).name
        except NotFoundError:
            return ""
