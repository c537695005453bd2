"""Tokens that never change: made from the server's key, a user's name and their epoch, and kept nowhere.

One is good until an admin, or its user, ends all that the user came in by. A token that nobody has costs a look into
memory: anybody may send as many as they like.
"""

from __future__ import annotations

import hmac
import threading
from collections.abc import Callable
from datetime import datetime

from anyio import CapacityLimiter, to_thread
from starlette.concurrency import run_in_threadpool

from paddlecloud.model.errors import NotFoundError, UnauthenticatedError
from paddlecloud.model.user import User
from paddlecloud.server.rates import Rates
from paddlecloud.store.users import Users

_CHARACTERS = 40
_WRONG_A_MINUTE = 100  # from one address, behind which many old clients may have kept theirs


class DerivedTokens:
    """Those of one `purpose`; `refusal` is what is said of a wrong one."""

    def __init__(
        self,
        users: Users,
        sign: Callable[[str, str], str],
        *,
        purpose: str,
        prefix: str = "",
        refusal: str = "Invalid token.",
    ) -> None:
        self._users = users
        self._sign = sign
        self._purpose = purpose
        self._prefix = prefix
        self._refusal = refusal
        # A token cannot be guessed, so this has nothing to do with what is configured for passwords.
        self._rates = Rates(wrong_tokens_a_minute=_WRONG_A_MINUTE)
        self._lock = threading.Lock()
        self._owners: dict[str, str] = {}
        self._made_all = False
        self._making = CapacityLimiter(1)  # anybody may be the first: the threads of all others are not theirs

    def of(self, user: User) -> str:
        token = self._made(user.name, self._users.epoch(user.name))
        with self._lock:
            self._owners[token] = user.name
        return token

    async def owner(self, token: str, address: str, now: datetime) -> User:
        """The user whose token this is now; a right one is never held up by wrong ones of the same address."""
        if token not in self._owners and not self._made_all:
            await to_thread.run_sync(self._make_all, limiter=self._making)
        name = self._owners.get(token)
        try:
            if name is not None:
                return await run_in_threadpool(self._check, name, token)
        except (NotFoundError, UnauthenticatedError):
            pass
        self._rates.wrong_token(address, now)
        raise UnauthenticatedError(self._refusal)

    def _make_all(self) -> None:
        """Make the tokens that were handed out before this start, once: later ones are kept as they are handed out."""
        if not self._made_all:
            made = {self._made(name, epoch): name for name, epoch in self._users.epochs().items()}
            with self._lock:
                self._owners.update(made)
            self._made_all = True

    def _check(self, name: str, token: str) -> User:
        user, epoch = self._users.in_epoch(name)
        if not hmac.compare_digest(self._made(name, epoch), token):
            raise UnauthenticatedError(self._refusal)
        return user

    def _made(self, name: str, epoch: int) -> str:
        return self._prefix + self._sign(f"{name} {epoch}", self._purpose)[:_CHARACTERS]
