"""What crosses the wire about users: what they may have, and what they identify themselves with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from paddlecloud.model.user import AccessKey, Quota, Role, Scope, Token


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What a user may have and has, in one place. A waiting job counts wherever it may go."""

    quota: Quota
    running_jobs: int
    waiting_jobs: int
    minutes_today: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaUse:
    """What a user may have and has on each cluster and, as `overall`, on all of them together.

    The day is the server's: it ends at midnight of `timezone`, which is at `resets_at`. Of the PFS they keep
    `space_bytes`, as last counted, of `space_limit_bytes`, their own limit or else everybody's.
    """

    user: str
    timezone: str
    resets_at: datetime
    overall: Use
    clusters: Mapping[str, Use]
    space_bytes: int = 0
    space_limit_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginRequest:
    name: str
    password: str
    expires_in_seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UserRequest:
    name: str
    role: Role = Role.USER
    password: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UserChange:
    """What to change of a user; None leaves it as it is. A quota is replaced as a whole.

    `quota` is on all clusters together; `quotas` on single ones, where null means: as the cluster gives everybody.
    """

    disabled: bool | None = None
    role: Role | None = None
    password: str | None = None
    quota: Quota | None = None
    quotas: Mapping[str, Quota | None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRequest:
    """`user` is the owner of the new access key, None: who asks; only an admin may name another."""

    user: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    """An access key with its secret, which is shown this once."""

    key: AccessKey
    sk: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRequest:
    name: str
    scope: Scope = Scope.WRITE
    expires_in_seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken:
    """A bearer token with its secret, which is shown this once."""

    token: Token
    secret: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrationRequest:
    email: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """An access key for `user` is being made. `mailed` is False where the operator has to hand it over."""

    user: str
    mailed: bool
