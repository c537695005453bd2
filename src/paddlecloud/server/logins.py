"""Coming in by a password: counted before it is looked at, and on record however it ends."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from anyio import CapacityLimiter, to_thread

from paddlecloud.model.accounts import LoginRequest, NewToken
from paddlecloud.model.audit import Action
from paddlecloud.model.errors import NotFoundError, UnauthenticatedError
from paddlecloud.server.accounts import Accounts
from paddlecloud.server.audit import AuditService, Origin
from paddlecloud.server.rates import Rates
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
        # Anybody may try one and each takes long: the threads of all others are not theirs.
        self._threads = CapacityLimiter(_AT_ONCE)

    async def login(self, request: LoginRequest, origin: Origin) -> NewToken:
        self._rates.log_in(request.name, origin.address, self._clock())
        return await to_thread.run_sync(self._login, request, origin, limiter=self._threads)

    def _login(self, request: LoginRequest, origin: Origin) -> NewToken:
        try:
            made = self._accounts.login(request)
        except UnauthenticatedError as error:
            # A name that nobody has may be a password that was typed in the wrong place.
            known = self._known(request.name)
            detail = error.message if known else "no such user"
            self._audit.record(Action.LOGIN_REFUSED, origin, target=known, detail=detail)
            raise
        self._rates.logged_in(request.name, origin.address)
        self._audit.record(
            Action.LOGIN, origin, user=made.token.user, target=made.token.user, detail=f"token {made.token.id}"
        )
        return made

    def _known(self, name: str) -> str:
        try:
            return self._users.get(name).name
        except NotFoundError:
            return ""
