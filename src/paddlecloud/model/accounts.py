"""What crosses the wire about users: what they may have, and what they identify themselves with."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct, field

from paddlecloud.model.user import AccessKey, Quota, Role, Scope, Token


class Use(Struct, frozen=True, kw_only=True):
    """What a user may have and has, in one place. A waiting job counts wherever it may go.

    `source` is who set the limits: "own" (of this user), "group lab", "groups a, b" or "cluster" (of everybody there);
    "": nothing is limited.
    """

    quota: Quota
    running_jobs: int
    waiting_jobs: int
    minutes_today: float
    source: str = ""


class QuotaUse(Struct, frozen=True, kw_only=True):
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
    space_source: str = ""  # "own", "group lab", or "" for everybody's


class LoginRequest(Struct, frozen=True, kw_only=True):
    name: str
    password: str
    expires_in_seconds: int | None = None


class UserRequest(Struct, frozen=True, kw_only=True):
    name: str
    role: Role = Role.USER
    password: str | None = None
    email: str = ""
    extension: Mapping[str, Any] = field(default_factory=dict)


class UserChange(Struct, frozen=True, kw_only=True):
    """What to change of a user; None leaves it as it is. A quota is replaced as a whole.

    `quota` is on all clusters together; `quotas` on single ones, where null means: as the cluster gives everybody.
    """

    disabled: bool | None = None
    role: Role | None = None
    password: str | None = None
    quota: Quota | None = None
    quotas: Mapping[str, Quota | None] | None = None
    email: str | None = None
    extension: Mapping[str, Any] | None = None


class KeyRequest(Struct, frozen=True, kw_only=True):
    """`user` is the owner of the new access key, None: who asks; only an admin may name another."""

    user: str | None = None


class NewKey(Struct, frozen=True, kw_only=True):
    """An access key with its secret, which is shown this once."""

    key: AccessKey
    sk: str


class TokenRequest(Struct, frozen=True, kw_only=True):
    name: str
    scope: Scope = Scope.WRITE
    expires_in_seconds: int | None = None


class NewToken(Struct, frozen=True, kw_only=True):
    """A bearer token with its secret, which is shown this once."""

    token: Token
    secret: str


# What an operator writes so that the VS Code client reaches WebHDFS with the configuration that it makes by itself.
VSCODE_SETTING = 'plain = "logins" below [webhdfs] in the server\'s config'


def vscode_line(host: str, path: str) -> str:
    """The line of the VS Code client's configuration by which it reaches WebHDFS; `path` holds the user's secret."""
    return f'"webhdfs_uri": "{host}{path}/webhdfs/v1"'


class WebHdfsAccess(Struct, frozen=True, kw_only=True):
    """How clients of HDFS reach a user's files: `path`, behind the server's address, holds a secret of that user's.

    `plain` is whose name alone is believed without it: nobody's (off), that of tasks, that of logins.
    """

    user: str
    path: str
    plain: str


class RegistrationRequest(Struct, frozen=True, kw_only=True):
    email: str


class Registration(Struct, frozen=True, kw_only=True):
    """An access key for `user` is being made. `mailed` is False where the operator has to hand it over."""

    user: str
    mailed: bool
