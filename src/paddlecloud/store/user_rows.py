"""Converts rows to users, accounts and tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Row

from paddlecloud.model.errors import UnauthenticatedError
from paddlecloud.model.user import ALL_CLUSTERS, NO_LIMITS, Account, Quota, Role, Scope, Token, User
from paddlecloud.store.plain import mapping_of


def enabled_user(row: Row[Any]) -> User:
    user = user_of(row)
    if user.disabled:
        raise UnauthenticatedError(f"user {user.name} is disabled: ask an admin of this server")
    return user


def user_of(row: Row[Any]) -> User:
    return User(name=row.name, role=Role(row.role), created_at=row.created_at, disabled=row.disabled, email=row.email)


def account_of(row: Row[Any], given: Mapping[str, Quota]) -> Account:
    user = user_of(row)
    return Account(
        name=user.name,
        role=user.role,
        created_at=user.created_at,
        disabled=user.disabled,
        email=user.email,
        extension=mapping_of(row.extension),
        quota=given.get(ALL_CLUSTERS, NO_LIMITS),
        quotas={cluster: quota for cluster, quota in sorted(given.items()) if cluster != ALL_CLUSTERS},
    )


def token_of(row: Row[Any]) -> Token:
    return Token(
        id=row.id,
        user=row.user,
        name=row.name,
        scope=Scope(row.scope),
        created_at=row.created_at,
        expires_at=row.expires_at,
    )
