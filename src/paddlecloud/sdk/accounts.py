"""Calls about users and what they identify themselves with: the part of the client that operators use."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from paddlecloud.model.accounts import (
    KeyRequest,
    LoginRequest,
    NewKey,
    NewToken,
    Registration,
    RegistrationRequest,
    TokenRequest,
    UserChange,
    UserRequest,
    WebHdfsAccess,
)
from paddlecloud.model.audit import AuditEntry, AuditPage
from paddlecloud.model.user import AccessKey, Account, Quota, Role, Scope, Token, User
from paddlecloud.sdk.groups import Groups
from paddlecloud.sdk.http import Http

_PAGE = 500


class Accounts:
    """`client.accounts`: users, access keys and tokens, and `groups`. Those of others are for admins."""

    def __init__(self, http: Http) -> None:
        self._http = http

    @cached_property
    def groups(self) -> Groups:
        return Groups(self._http)

    def me(self) -> User:
        """The user that the server takes you for."""
        return self._http.get(User, "/v1/me")

    def login(self, name: str, password: str, expires_in_seconds: int | None = None) -> NewToken:
        """A new token for a password; its secret is shown this once."""
        asked = LoginRequest(name=name, password=password, expires_in_seconds=expires_in_seconds)
        return self._http.send(NewToken, "POST", "/v1/login", asked)

    def register(self, email: str) -> Registration:
        """Ask for an access key by mail; nothing tells whether there is such a user."""
        return self._http.send(Registration, "POST", "/v1/registrations", RegistrationRequest(email=email))

    def users(self) -> list[Account]:
        return self._http.get(list[Account], "/v1/users")

    def user(self, name: str) -> Account:
        return self._http.get(Account, f"/v1/users/{name}")

    def add_user(
        self,
        name: str,
        role: Role = Role.USER,
        password: str | None = None,
        *,
        email: str = "",
        extension: Mapping[str, Any] | None = None,
    ) -> Account:
        """Add a user. One without a password needs an access key: `create_key(name)`."""
        asked = UserRequest(name=name, role=role, password=password, email=email, extension=extension or {})
        return self._http.send(Account, "POST", "/v1/users", asked)

    def change_user(
        self,
        name: str,
        *,
        disabled: bool | None = None,
        role: Role | None = None,
        password: str | None = None,
        quota: Quota | None = None,
        quotas: Mapping[str, Quota | None] | None = None,
        email: str | None = None,
        extension: Mapping[str, Any] | None = None,
    ) -> Account:
        """Change what is given and leave the rest; a quota is replaced as a whole.

        `quota` is on all clusters together. `quotas` are by cluster, and take the place of what the cluster gives
        everybody; None gives that back.
        """
        change = UserChange(
            disabled=disabled,
            role=role,
            password=password,
            quota=quota,
            quotas=quotas,
            email=email,
            extension=extension,
        )
        return self._http.send(Account, "PATCH", f"/v1/users/{name}", change)

    def audit(
        self, *, user: str | None = None, action: str | None = None, since: str | None = None, limit: int | None = 100
    ) -> list[AuditEntry]:
        """Who did what, newest first: by a user, of one kind ("login", "key.revoke"), since ("10m"); for admins.

        `limit` None is all there is.
        """
        found: list[AuditEntry] = []
        cursor: str | None = None
        while limit is None or len(found) < limit:
            size = _PAGE if limit is None else min(_PAGE, limit - len(found))
            query = {"user": user, "action": action, "since": since, "cursor": cursor, "limit": size}
            page = self._http.get(AuditPage, "/v1/audit", query)
            found += page.items
            cursor = page.next_cursor
            if cursor is None:
                break
        return found

    def keys(self) -> list[AccessKey]:
        return self._http.get(list[AccessKey], "/v1/keys")

    def create_key(self, user: str | None = None) -> NewKey:
        """A new ak/sk pair; the sk is shown this once. An admin may make one for another `user`."""
        return self._http.send(NewKey, "POST", "/v1/keys", KeyRequest(user=user))

    def revoke_key(self, ak: str) -> None:
        """Make an access key worthless, at once."""
        self._http.request("DELETE", f"/v1/keys/{ak}")

    def tokens(self) -> list[Token]:
        return self._http.get(list[Token], "/v1/tokens")

    def create_token(self, name: str, scope: Scope = Scope.WRITE, expires_in_seconds: int | None = None) -> NewToken:
        """A new bearer token; its secret is shown this once."""
        asked = TokenRequest(name=name, scope=scope, expires_in_seconds=expires_in_seconds)
        return self._http.send(NewToken, "POST", "/v1/tokens", asked)

    def revoke_token(self, token: str) -> None:
        """Make a token, named by its id, worthless, at once."""
        self._http.request("DELETE", f"/v1/tokens/{token}")

    def webhdfs(self) -> WebHdfsAccess:
        """How clients of HDFS reach your files: an address with a secret in it, which is the same each time."""
        return self._http.get(WebHdfsAccess, "/v1/webhdfs")

    def revoke_old_clients(self, user: str) -> None:
        """Make every token that a user's PaddlePaddle Cloud clients keep worthless, at once."""
        self._http.request("DELETE", f"/v1/users/{user}/old-clients")
