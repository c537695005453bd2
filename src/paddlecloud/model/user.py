"""Users, what they identify themselves with, and how much they may have."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct, field

from paddlecloud.model import paths
from paddlecloud.model.errors import InvalidError


class Role(StrEnum):
    ADMIN = "admin"
    USER = "user"


class Scope(StrEnum):
    """What a token lets its bearer do in its user's name."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"

    def allows(self, needed: Scope) -> bool:
        order = list(Scope)
        return order.index(self) >= order.index(needed)


class Quota(Struct, frozen=True, kw_only=True):
    """Limits of a user; None is no limit. `instances` and `wall_time_seconds` are of one job; `space_bytes`, the most
    they may keep in the PFS, is of all clusters together alone."""

    running_jobs: int | None = None
    waiting_jobs: int | None = None
    instances: int | None = None
    wall_time_seconds: int | None = None
    minutes_a_day: int | None = None
    space_bytes: int | None = None


NO_LIMITS = Quota()
ALL_CLUSTERS = ""  # stands for all of them together where a cluster is named


class User(Struct, frozen=True, kw_only=True):
    name: str
    role: Role
    created_at: datetime
    disabled: bool = False
    email: str = ""

    @property
    def full_scope(self) -> Scope:
        """The scope of a token that may do all that its user may."""
        return Scope.ADMIN if self.role is Role.ADMIN else Scope.WRITE


class Account(User, frozen=True, kw_only=True):
    """A user with the limits that an admin gave them: on all clusters together, and on single ones.

    Those on a single cluster take the place of what the cluster gives everybody. `extension` is other programs' own:
    kept as given, and shown again.
    """

    quota: Quota = NO_LIMITS
    quotas: Mapping[str, Quota] = field(default_factory=dict)
    extension: Mapping[str, Any] = field(default_factory=dict)


class AccessKey(Struct, frozen=True, kw_only=True):
    """An ak/sk pair without its secret, which is shown once and kept encrypted."""

    ak: str
    user: str
    created_at: datetime


class Token(Struct, frozen=True, kw_only=True):
    """A bearer token without its secret, which is shown once and kept as a hash."""

    id: str
    user: str
    name: str
    scope: Scope
    created_at: datetime
    expires_at: datetime | None = None


def check_email(email: str | None) -> None:
    """Raise unless this may be kept as where a user gets mail; "" is nowhere."""
    if not email:
        return
    local, _, domain = email.rpartition("@")
    if len(email) > 254 or not email.isprintable() or " " in email or not local or not domain:
        raise InvalidError(f"email {email[:80]!r} is not an address of mail, such as you@example.com", field="email")


def check_user_name(name: str) -> str:
    """The name itself, if it may be a user's: letters of any script, digits and `._@+-`; it is a folder's name too."""
    if not 0 < len(name) <= 60 or name[0] in ".-" or not all(c.isalnum() or c in "._@+-" for c in name):
        raise InvalidError(
            f"user name {name!r} is not allowed: use up to 60 letters, digits and . _ @ + -, not beginning with . or -",
            field="name",
        )
    if paths.is_job_id(name):
        raise InvalidError(f"user name {name!r} is not allowed: it could be the id of a job", field="name")
    return name
