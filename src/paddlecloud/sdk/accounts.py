"""Calls about users and what they identify themselves with: the part of the client that operators use."""

from __future__ import annotations

from paddlecloud.model.user import AccessKey, Quota, Role, Scope, Token, User
from paddlecloud.model.views import (
    KeyRequest,
    LoginRequest,
    NewKey,
    NewToken,
    TokenRequest,
    UserChange,
    UserRequest,
)
from paddlecloud.sdk.http import Http


class Accounts:
    """`client.accounts`: users, access keys and tokens. Those of others are for admins."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def me(self) -> User:
        """The user that the server takes you for."""
        return self._http.get(User, "/v1/me")

    def login(self, name: str, password: str, expires_in_seconds: int | None = None) -> NewToken:
        """A new token for a password; its secret is shown this once."""
        asked = LoginRequest(name=name, password=password, expires_in_seconds=expires_in_seconds)
        return self._http.send(NewToken, "POST", "/v1/login", asked)

    def users(self) -> list[User]:
        return self._http.get(list[User], "/v1/users")

    def user(self, name: str) -> User:
        return self._http.get(User, f"/v1/users/{name}")

    def add_user(self, name: str, role: Role = Role.USER, password: str | None = None) -> User:
        """Add a user. One without a password needs an access key: `create_key(name)`."""
        return self._http.send(User, "POST", "/v1/users", UserRequest(name=name, role=role, password=password))

    def change_user(
        self,
        name: str,
        *,
        disabled: bool | None = None,
        role: Role | None = None,
        password: str | None = None,
        quota: Quota | None = None,
    ) -> User:
        """Change what is given and leave the rest; a `quota` replaces the whole quota."""
        change = UserChange(disabled=disabled, role=role, password=password, quota=quota)
        return self._http.send(User, "PATCH", f"/v1/users/{name}", change)

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
