"""Who an old client speaks for: a token that never changes, or a name and a password.

The client keeps its token in a file, for whatever server it talks to, and never asks for another: so it is made from
the server's key, the user's name and their epoch, and is good until an admin ends all that the user came in by.
A token that nobody has costs a look into memory: anybody may send as many as they like.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import threading
from collections.abc import Callable
from datetime import datetime

from anyio import CapacityLimiter, to_thread
from starlette.concurrency import run_in_threadpool

from paddlecloud.model.accounts import LoginRequest
from paddlecloud.model.errors import NotFoundError, UnauthenticatedError
from paddlecloud.model.user import Role, Scope, User
from paddlecloud.server.audit import Origin
from paddlecloud.server.auth import Identity
from paddlecloud.server.logins import Logins
from paddlecloud.server.rates import Rates
from paddlecloud.store.users import Users

_PURPOSE = "tokens of PaddlePaddle Cloud clients"
_CHARACTERS = 40
_WRONG_A_MINUTE = 100  # from one address, behind which many old clients may have kept theirs
OLD_SCHEMES = ("token", "basic")


class OldTokens:
    def __init__(self, users: Users, sign: Callable[[str, str], str], logins: Logins) -> None:
        self._users = users
        self._sign = sign
        self._logins = logins
        # A token cannot be guessed, so this has nothing to do with what is configured for passwords.
        self._rates = Rates(wrong_tokens_a_minute=_WRONG_A_MINUTE)
        self._lock = threading.Lock()
        self._owners: dict[str, str] = {}
        self._made_all = False
        self._making = CapacityLimiter(1)  # anybody may be the first: the threads of all others are not theirs

    async def exchange(self, name: str, password: str, origin: Origin) -> str:
        """A user's token, for their password."""
        user = await self._logins.check(LoginRequest(name=name, password=password), origin)
        return await run_in_threadpool(self.token_of, user)

    def token_of(self, user: User) -> str:
        token = self._made(user.name, self._users.epoch(user.name))
        with self._lock:
            self._owners[token] = user.name
        return token

    async def identify(self, authorization: str, origin: Origin, now: datetime) -> Identity:
        scheme, _, rest = authorization.strip().partition(" ")
        if scheme.lower() == "token":
            return _identity(await self._owner(rest.strip(), origin, now))
        if scheme.lower() == "basic":
            name, password = _basic(rest.strip())
            return _identity(await self._logins.check(LoginRequest(name=name, password=password), origin))
        raise UnauthenticatedError("Authentication credentials were not provided.")

    async def _owner(self, token: str, origin: Origin, now: datetime) -> User:
        """The user whose token this is now; a right one is never held up by wrong ones of the same address."""
        if token not in self._owners and not self._made_all:
            await to_thread.run_sync(self._make_all, limiter=self._making)
        name = self._owners.get(token)
        try:
            if name is not None:
                return await run_in_threadpool(self._check, name, token)
        except (NotFoundError, UnauthenticatedError):
            pass
        self._rates.wrong_token(origin.address, now)
        raise UnauthenticatedError("Invalid token.")

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
            raise UnauthenticatedError("Invalid token.")
        return user

    def _made(self, name: str, epoch: int) -> str:
        return self._sign(f"{name} {epoch}", _PURPOSE)[:_CHARACTERS]


def _identity(user: User) -> Identity:
    # An old client has no use for what only admins may do, but for filling the public folders.
    return Identity(user=user, scope=Scope.ADMIN if user.role is Role.ADMIN else Scope.WRITE)


def _basic(encoded: str) -> tuple[str, str]:
    try:
        name, _, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        raise UnauthenticatedError("Invalid basic header. Credentials not correctly base64 encoded.") from None
    return name, password
