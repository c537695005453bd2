"""Tokens for users' applications, which are valid until revoked and can be displayed again.

Like all tokens they are found by the hash of their secret. Their secrets are derived from their ids with the server's
key, so that a user who lost one need not replace it everywhere.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime

from sqlalchemy import func, insert, select

from paddlecloud.model.errors import QuotaError
from paddlecloud.model.user import Scope, Token
from paddlecloud.store.db import Database
from paddlecloud.store.schema import tokens
from paddlecloud.store.secrets import Cipher
from paddlecloud.store.users import TOKEN_PREFIX

MOST = 100
_ID_PREFIX = "app-"
_NAME = "application"
_PURPOSE = "tokens of applications"


class Applications:
    def __init__(self, db: Database, cipher: Cipher) -> None:
        self._db = db
        self._cipher = cipher

    def add(self, user: str, now: datetime) -> tuple[Token, str]:
        """Create an application token for an existing user; return it with its secret."""
        token = Token(
            id=f"{_ID_PREFIX}{secrets.token_hex(8)}", user=user, name=_NAME, scope=Scope.WRITE, created_at=now
        )
        secret = self._secret(token.id, user)
        row = {"id": token.id, "user": user, "name": _NAME, "scope": token.scope.value, "created_at": now}
        mine = (tokens.c.user == user, tokens.c.id.startswith(_ID_PREFIX))
        with self._db.write() as connection:
            if connection.execute(select(func.count()).select_from(tokens).where(*mine)).scalar_one() >= MOST:
                raise QuotaError(f"quota: {user} has {MOST} application tokens: revoke one first")
            hashed = hashlib.sha256(secret.encode()).hexdigest()
            connection.execute(insert(tokens), row | {"expires_at": None, "secret_hash": hashed})
        return token, secret

    def secrets(self, user: str) -> list[str]:
        """The secrets of all of a user's application tokens, oldest first."""
        query = select(tokens.c.id).where(tokens.c.user == user, tokens.c.id.startswith(_ID_PREFIX))
        with self._db.read() as connection:
            found = connection.execute(query.order_by(tokens.c.created_at, tokens.c.id)).scalars().all()
        return [self._secret(token, user) for token in found]

    def _secret(self, token: str, user: str) -> str:
        return TOKEN_PREFIX + self._cipher.sign(f"{token} {user}", _PURPOSE)


def is_application(token: Token) -> bool:
    return token.id.startswith(_ID_PREFIX)
