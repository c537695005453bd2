"""Records users with their quotas, passwords, access keys and tokens.

Invariant: no credential is stored in plain text. Passwords are argon2 hashes; tokens are SHA-256 hashes, which is
enough since they are random; secret keys are encrypted. Every check reads the record, so a disabled user and a revoked
key are rejected from the next request on.
"""

from __future__ import annotations

import builtins
import hashlib
import secrets
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, bindparam, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from paddlecloud.model.errors import ConflictError, InvalidError, NotFoundError, UnauthenticatedError
from paddlecloud.model.user import (
    AccessKey,
    Account,
    Quota,
    Role,
    Scope,
    Token,
    User,
    check_user_name,
)
from paddlecloud.store import quotas as limits
from paddlecloud.store.db import Database
from paddlecloud.store.passwords import Passwords
from paddlecloud.store.plain import text_of
from paddlecloud.store.schema import access_keys as key_table
from paddlecloud.store.schema import tokens as token_table
from paddlecloud.store.schema import users as user_table
from paddlecloud.store.secrets import Cipher
from paddlecloud.store.user_rows import account_of, enabled_user, token_of, user_of

TOKEN_PREFIX = "pct_"
_TOKEN_NAME_LENGTH = 100
_ALL = select(user_table).order_by(user_table.c.name)
_BY_KEY = (
    select(user_table, key_table.c.sk_encrypted)
    .join(key_table, key_table.c.user == user_table.c.name)
    .where(key_table.c.ak == bindparam("sought"))
)
_EPOCHS = select(user_table.c.name, user_table.c.epoch)
_EPOCH = select(user_table.c.epoch).where(user_table.c.name == bindparam("sought"))
_END_EPOCH = update(user_table).where(user_table.c.name == bindparam("sought")).values(epoch=user_table.c.epoch + 1)


class Users:
    def __init__(self, db: Database, cipher: Cipher) -> None:
        self._db = db
        self._cipher = cipher
        self._passwords = Passwords()
        self._added = 0
        self._several = (-1, False)
        self._check_key_file()

    def add(
        self,
        name: str,
        role: Role,
        password: str | None,
        now: datetime,
        *,
        email: str = "",
        extension: Mapping[str, Any] | None = None,
    ) -> User:
        user = User(name=check_user_name(name), role=role, created_at=now, email=email)
        password_hash = None if password is None else self._passwords.hash(password)
        row = {"name": name, "role": role.value, "password_hash": password_hash, "created_at": now}
        row |= {"email": email, "extension": text_of(extension or {})}
        try:
            with self._db.write() as connection:
                connection.execute(insert(user_table), row)
        except IntegrityError:
            raise ConflictError(f"user {name} exists already", field="name") from None
        self._added += 1
        return user

    def add_again(self, name: str, role: Role, password: str | None, email: str, extension: Mapping[str, Any]) -> None:
        """Let a disabled user in again as if they were new: their jobs and files are theirs, and everything that they
        came in by has ended. ConflictError: they are not disabled."""
        hashed = None if password is None else self._passwords.hash(password)
        said = {"role": role.value, "password_hash": hashed, "email": email, "extension": text_of(extension)}
        with self._db.write() as connection:
            if not _get(connection, name).disabled:
                raise ConflictError(f"user {name} exists already", field="name")
            _set(connection, name, {**said, "disabled": False})
            _end_credentials(connection, name)
            connection.execute(delete(key_table).where(key_table.c.user == name))

    def get(self, name: str) -> User:
        with self._db.read() as connection:
            return _get(connection, name)

    def several(self) -> bool:
        """Whether there is more than one user. Cached, since every task start asks; only this object adds users."""
        added = self._added
        if self._several[0] != added:
            with self._db.read() as connection:
                found = len(connection.execute(select(user_table.c.name).limit(2)).all()) > 1
            self._several = added, found  # a user added meanwhile changes `_added`, so this entry becomes stale
        return self._several[1]

    def list(self) -> builtins.list[User]:
        with self._db.read() as connection:
            return [user_of(row) for row in connection.execute(_ALL)]

    def account(self, name: str) -> Account:
        """A user with their assigned limits."""
        with self._db.read() as connection:
            return _account(connection, name)

    def accounts(self) -> builtins.list[Account]:
        """All users with their assigned limits."""
        with self._db.read() as connection:
            given = limits.of_all(connection)
            return [account_of(row, given.get(row.name, {})) for row in connection.execute(_ALL)]

    def quotas(self, names: Collection[str]) -> limits.Given:
        """The limits assigned to these users."""
        with self._db.read() as connection:
            return limits.of(connection, names)

    def change(
        self,
        name: str,
        *,
        role: Role | None = None,
        quotas: Mapping[str, Quota | None] | None = None,
        password: str | None = None,
        disabled: bool | None = None,
        email: str | None = None,
        extension: Mapping[str, Any] | None = None,
    ) -> Account:
        """Change the given fields, all or none of them.

        `quotas` are by cluster; None removes one. A new password revokes all tokens and ends the sessions of old
        clients, since somebody may have logged in with the old password. Setting the same password again ends nothing.
        """
        given = {"role": None if role is None else role.value, "disabled": disabled, "email": email}
        columns: dict[str, object] = {column: value for column, value in given.items() if value is not None}
        if extension is not None:
            columns["extension"] = text_of(extension)
        if password is not None and not self._has_password(name, password):
            columns["password_hash"] = self._passwords.hash(password)
        for cluster, quota in (quotas or {}).items():
            if quota is not None:
                limits.check(cluster, quota)
        return self._change(name, columns, quotas or {})

    def check_password(self, name: str, password: str) -> User:
        """Return the user with this name and password. Rejecting an unknown name takes as long as a wrong password."""
        with self._db.read() as connection:
            row = connection.execute(_by_name(name)).one_or_none()
        if not self._passwords.fits(password, None if row is None else row.password_hash) or row is None:
            raise UnauthenticatedError("wrong user name or password")
        user = enabled_user(row)
        if self._passwords.outdated(row.password_hash):
            with self._db.write() as connection:
                _set(connection, name, {"password_hash": self._passwords.hash(password)})
        return user

    def _has_password(self, name: str, password: str) -> bool:
        with self._db.read() as connection:
            row = connection.execute(_by_name(name)).one_or_none()
        return row is not None and row.password_hash is not None and self._passwords.fits(password, row.password_hash)

    def epoch(self, name: str) -> int:
        """How often the tokens of the user's old clients were revoked; new tokens contain this number."""
        with self._db.read() as connection:
            found: int | None = connection.execute(_EPOCH, {"sought": name}).scalar()
        if found is None:
            raise _no_such_user(name)
        return found

    def epochs(self) -> dict[str, int]:
        """The epochs of all users, by name."""
        with self._db.read() as connection:
            return {row.name: row.epoch for row in connection.execute(_EPOCHS)}

    def in_epoch(self, name: str) -> tuple[User, int]:
        """An enabled user and their epoch, read at the same moment."""
        with self._db.read() as connection:
            row = connection.execute(_by_name(name)).one_or_none()
        if row is None:
            raise _no_such_user(name)
        return enabled_user(row), row.epoch

    def end_epoch(self, name: str) -> None:
        """Revoke the tokens of all of the user's old clients at once."""
        with self._db.write() as connection:
            if not connection.execute(_END_EPOCH, {"sought": name}).rowcount:
                raise _no_such_user(name)

    def add_key(self, user: str, now: datetime) -> tuple[AccessKey, str]:
        """Create an access key; return it with its secret key, which is shown only once."""
        key = AccessKey(ak=secrets.token_hex(16), user=user, created_at=now)
        sk = secrets.token_hex(32)
        sealed = self._cipher.encrypt(sk, bound_to=key.ak)
        with self._db.write() as connection:
            _get(connection, user)
            connection.execute(
                insert(key_table), {"ak": key.ak, "user": user, "created_at": now, "sk_encrypted": sealed}
            )
        return key, sk

    def key_secret(self, ak: str) -> tuple[User, str]:
        """The owner of an access key, and its secret key."""
        with self._db.read() as connection:
            row = connection.execute(_BY_KEY, {"sought": ak}).one_or_none()
        if row is None:
            raise UnauthenticatedError(
                f"access key {ak!r} is not known here: it was revoked, or belongs to another server"
            )
        return enabled_user(row), self._cipher.decrypt(row.sk_encrypted, bound_to=ak)

    def note_ahead(self, ak: str, until: datetime) -> None:
        """Record that requests with this access key were accepted with future dates, up to `until`."""
        with self._db.write() as connection:
            connection.execute(update(key_table).where(key_table.c.ak == ak).values(ahead_until=until))

    def ahead(self) -> dict[str, datetime]:
        """The dates recorded by `note_ahead`, by access key."""
        query = select(key_table.c.ak, key_table.c.ahead_until).where(key_table.c.ahead_until.is_not(None))
        with self._db.read() as connection:
            return {row.ak: row.ahead_until for row in connection.execute(query)}

    def keys(self, user: str) -> builtins.list[AccessKey]:
        query = select(key_table).where(key_table.c.user == user).order_by(key_table.c.created_at, key_table.c.ak)
        with self._db.read() as connection:
            rows = connection.execute(query).all()
        return [AccessKey(ak=row.ak, user=row.user, created_at=row.created_at) for row in rows]

    def revoke_key(self, ak: str, user: str | None) -> None:
        """Revoke an access key at once; `user` None allows any owner."""
        statement = delete(key_table).where(key_table.c.ak == ak)
        if user is not None:
            statement = statement.where(key_table.c.user == user)
        with self._db.write() as connection:
            if not connection.execute(statement).rowcount:
                raise NotFoundError(f"there is no access key {ak!r}")

    def add_token(
        self, user: str, name: str, scope: Scope, expires_at: datetime | None, now: datetime
    ) -> tuple[Token, str]:
        """Create a bearer token; return it with its secret, which is shown only once."""
        if not name.isprintable() or not 0 < len(name) <= _TOKEN_NAME_LENGTH:
            raise InvalidError(
                f"invalid token name {name[:80]!r}: use 1 to {_TOKEN_NAME_LENGTH} printable characters", field="name"
            )
        if expires_at is not None and expires_at <= now:
            raise InvalidError(
                f"expires_at {expires_at.isoformat()} is in the past: use a later time", field="expires_at"
            )
        token = Token(
            id=f"token-{secrets.token_hex(8)}", user=user, name=name, scope=scope, created_at=now, expires_at=expires_at
        )
        secret = TOKEN_PREFIX + secrets.token_urlsafe(32)
        row = {"id": token.id, "user": user, "name": name, "scope": scope.value, "created_at": now}
        with self._db.write() as connection:
            _get(connection, user)
            connection.execute(delete(token_table).where(token_table.c.user == user, token_table.c.expires_at <= now))
            connection.execute(insert(token_table), row | {"expires_at": expires_at, "secret_hash": _hash(secret)})
        return token, secret

    def token(self, secret: str, now: datetime) -> tuple[User, Token]:
        """The owner and the token with this secret; rejects an unknown, revoked or expired one."""
        with self._db.read() as connection:
            query = select(token_table).where(token_table.c.secret_hash == _hash(secret))
            row = connection.execute(query).one_or_none()
            if row is None:
                raise UnauthenticatedError("the token is not known here: it was revoked, or belongs to another server")
            owner = connection.execute(_by_name(row.user)).one()
        token = token_of(row)
        if token.expires_at is not None and now >= token.expires_at:
            raise UnauthenticatedError(
                f"token {token.name!r} expired at {token.expires_at:%Y-%m-%dT%H:%M:%SZ}: log in again or create another"
            )
        return enabled_user(owner), token

    def tokens(self, user: str) -> builtins.list[Token]:
        query = select(token_table).where(token_table.c.user == user)
        with self._db.read() as connection:
            rows = connection.execute(query.order_by(token_table.c.created_at, token_table.c.id)).all()
        return [token_of(row) for row in rows]

    def revoke_token(self, token_id: str, user: str | None) -> None:
        """Revoke a token at once; `user` None allows any owner."""
        statement = delete(token_table).where(token_table.c.id == token_id)
        if user is not None:
            statement = statement.where(token_table.c.user == user)
        with self._db.write() as connection:
            if not connection.execute(statement).rowcount:
                raise NotFoundError(f"there is no token {token_id!r}")

    def _change(self, name: str, columns: dict[str, object], quotas: Mapping[str, Quota | None]) -> Account:
        with self._db.write() as connection:
            before = _get(connection, name)
            if columns:
                _set(connection, name, columns)
            limits.put(connection, name, quotas)
            if "password_hash" in columns:
                _end_credentials(connection, name)
            after = _account(connection, name)
            if _is_enabled_admin(before) and not _is_enabled_admin(after) and not _count_enabled_admins(connection):
                raise ConflictError(f"{name} is the last enabled admin: make another user admin first")
        return after

    def _check_key_file(self) -> None:
        """Fail at startup, not at a user's first request, if the key file does not match these records."""
        with self._db.read() as connection:
            row = connection.execute(select(key_table.c.ak, key_table.c.sk_encrypted).limit(1)).one_or_none()
        if row is not None:
            self._cipher.decrypt(row.sk_encrypted, bound_to=row.ak)


def _end_credentials(connection: Connection, name: str) -> None:
    """End the tokens and passes of a user, and the secrets of their old clients; access keys stay."""
    connection.execute(_END_EPOCH, {"sought": name})
    connection.execute(delete(token_table).where(token_table.c.user == name))


def _set(connection: Connection, name: str, columns: dict[str, object]) -> None:
    connection.execute(update(user_table).where(user_table.c.name == name).values(columns))


def _get(connection: Connection, name: str) -> User:
    row = connection.execute(_by_name(name)).one_or_none()
    if row is None:
        raise _no_such_user(name)
    return user_of(row)


def _no_such_user(name: str) -> NotFoundError:
    return NotFoundError(f"there is no user {name!r}")


def _account(connection: Connection, name: str) -> Account:
    row = connection.execute(_by_name(name)).one_or_none()
    if row is None:
        raise _no_such_user(name)
    return account_of(row, limits.of(connection, [name]).get(name, {}))


def _by_name(name: str) -> Select[Any]:
    return select(user_table).where(user_table.c.name == name)


def _is_enabled_admin(user: User) -> bool:
    return user.role is Role.ADMIN and not user.disabled


def _count_enabled_admins(connection: Connection) -> int:
    query = select(func.count()).select_from(user_table)
    return connection.execute(
        query.where(user_table.c.role == Role.ADMIN.value, user_table.c.disabled.is_(False))
    ).scalar_one()


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()
