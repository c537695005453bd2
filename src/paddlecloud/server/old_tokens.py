"""Who an old client speaks for: a token that never changes, or a name and a password.

The client keeps its token in a file, for whatever server it talks to, and never asks for another.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from datetime import datetime

from starlette.concurrency import run_in_threadpool

from paddlecloud.model.accounts import LoginRequest
from paddlecloud.model.errors import UnauthenticatedError
from paddlecloud.model.user import Role, Scope, User
from paddlecloud.server.audit import Origin
from paddlecloud.server.auth import Identity
from paddlecloud.server.derived_tokens import DerivedTokens
from paddlecloud.server.logins import Logins
from paddlecloud.store.users import Users

_PURPOSE = "tokens of PaddlePaddle Cloud clients"
OLD_SCHEMES = ("token", "basic")


class OldTokens:
    def __init__(self, users: Users, sign: Callable[[str, str], str], logins: Logins) -> None:
        self._logins = logins
        self._tokens = DerivedTokens(users, sign, purpose=_PURPOSE)

    async def exchange(self, name: str, password: str, origin: Origin) -> str:
        """A user's token, for their password."""
        user = await self._logins.check(LoginRequest(name=name, password=password), origin)
        return await run_in_threadpool(self.token_of, user)

    def token_of(self, user: User) -> str:
        return self._tokens.of(user)

    async def identify(self, authorization: str, origin: Origin, now: datetime) -> Identity:
        scheme, _, rest = authorization.strip().partition(" ")
        if scheme.lower() == "token":
            return _identity(await self._tokens.owner(rest.strip(), origin.address, now))
        if scheme.lower() == "basic":
            name, password = _basic(rest.strip())
            return _identity(await self._logins.check(LoginRequest(name=name, password=password), origin))
        raise UnauthenticatedError("Authentication credentials were not provided.")


def _identity(user: User) -> Identity:
    # An old client has no use for what only admins may do, but for filling the public folders.
    return Identity(user=user, scope=Scope.ADMIN if user.role is Role.ADMIN else Scope.WRITE)


def _basic(encoded: str) -> tuple[str, str]:
    try:
        name, _, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        raise UnauthenticatedError("Invalid basic header. Credentials not correctly base64 encoded.") from None
    return name, password
