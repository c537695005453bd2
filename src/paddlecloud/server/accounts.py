"""What may be done with users, their keys, tokens and quotas, and by whom.

Nobody gets more than they came with: a token cannot make a stronger one nor one that outlasts it, nor a key or a
password for a user whose power it does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from paddlecloud.model import signature
from paddlecloud.model.accounts import (
    KeyRequest,
    LoginRequest,
    NewKey,
    NewToken,
    QuotaUse,
    TokenRequest,
    UserChange,
    UserRequest,
)
from paddlecloud.model.errors import ConflictError, ForbiddenError, InvalidError, UnauthenticatedError
from paddlecloud.model.group import check_extension
from paddlecloud.model.user import ALL_CLUSTERS, AccessKey, Account, Quota, Role, Token, User, check_email
from paddlecloud.server.auth import Identity
from paddlecloud.server.quotas import QuotaService
from paddlecloud.store.users import Users

_LOGIN_SECONDS = 30 * 86400
_MOST_SECONDS = 10 * 365 * 86400
_PASSWORD_CHARACTERS = 8


class Accounts:
    def __init__(self, *, users: Users, quotas: QuotaService, clock: Callable[[], datetime]) -> None:
        self._users = users
        self._quotas = quotas
        self._clock = clock

    def login(self, request: LoginRequest) -> NewToken:
        """A token that may do all its user may, for a password."""
        seconds = _LOGIN_SECONDS if request.expires_in_seconds is None else request.expires_in_seconds
        expires_at = self._expiry(seconds)
        user = self._users.check_password(request.name, request.password)
        scope = user.full_scope
        token, secret = self._users.add_token(user.name, "login", scope, expires_at, self._clock())
        return NewToken(token=token, secret=secret)

    def recheck(self, authorization: str, role: Role) -> None:
        """Raise if what a request identified itself with has been revoked since, or its user is no admin any more."""
        scheme, _, secret = authorization.strip().partition(" ")
        if scheme.lower() == "bearer":
            user, _ = self._users.token(secret.strip(), self._clock())
        else:
            user, _ = self._users.key_secret(signature.parse_authorization(authorization).ak)
        if user.role is not role:
            raise UnauthenticatedError(f"the role of {user.name} has changed: ask again")

    def users(self) -> list[Account]:
        return self._users.accounts()

    def get(self, identity: Identity, name: str) -> Account:
        self._require_self_or_admin(identity, name)
        return self._users.account(name)

    def add(self, request: UserRequest) -> Account:
        """Add a user, or a disabled one again: the same user, with their jobs and files and no older credential."""
        if request.password is not None:
            _check_password(request.password)
        check_email(request.email)
        check_extension(request.extension)
        name, role, password, email, more = (
            request.name,
            request.role,
            request.password,
            request.email,
            request.extension,
        )
        try:
            self._users.add(name, role, password, self._clock(), email=email, extension=more)
        except ConflictError:
            self._users.add_again(name, role, password, email, more)
        return self._users.account(request.name)

    def change(self, identity: Identity, name: str, change: UserChange) -> Account:
        """Change a user. Password, email and extension they may change themselves, the rest is for an admin."""
        identity.need_person()
        self._require_self_or_admin(identity, name)
        more_than_their_own = (change.disabled, change.role, change.quota, change.quotas) != (None, None, None, None)
        if more_than_their_own and not identity.admin:
            raise ForbiddenError(
                f"{identity.user.name} may change only their own password, email and extension: the rest is for an "
                "admin"
            )
        check_email(change.email)
        check_extension(change.extension)
        if change.password is not None:
            _require_power_of(identity, self._users.get(name))
            _check_password(change.password)
        return self._users.change(
            name,
            role=change.role,
            quotas=self._changed_quotas(name, change),
            password=change.password,
            disabled=change.disabled,
            email=change.email,
            extension=change.extension,
        )

    def keys(self, identity: Identity, user: str | None) -> list[AccessKey]:
        identity.need_full_power()
        name = user or identity.user.name
        self._require_self_or_admin(identity, name)
        return self._users.keys(name)

    def add_key(self, identity: Identity, request: KeyRequest) -> NewKey:
        identity.need_full_power()
        name = request.user or identity.user.name
        self._require_self_or_admin(identity, name)
        _require_power_of(identity, self._users.get(name))
        key, sk = self._users.add_key(name, self._clock())
        return NewKey(key=key, sk=sk)

    def revoke_key(self, identity: Identity, ak: str) -> None:
        identity.need_full_power()
        self._users.revoke_key(ak, None if identity.admin else identity.user.name)

    def tokens(self, identity: Identity) -> list[Token]:
        identity.need_full_power()
        return self._users.tokens(identity.user.name)

    def add_token(self, identity: Identity, request: TokenRequest) -> NewToken:
        identity.need_full_power()
        if not identity.scope.allows(request.scope):
            raise ForbiddenError(
                f"a token of scope {identity.scope.value} cannot make one of scope {request.scope.value}"
            )
        asked = None if request.expires_in_seconds is None else self._expiry(request.expires_in_seconds)
        expires_at, user, now = _outlasted_by(identity, asked), identity.user.name, self._clock()
        token, secret = self._users.add_token(user, request.name, request.scope, expires_at, now)
        return NewToken(token=token, secret=secret)

    def revoke_token(self, identity: Identity, token_id: str) -> None:
        identity.need_full_power()
        self._users.revoke_token(token_id, None if identity.admin else identity.user.name)

    def revoke_old_clients(self, identity: Identity, name: str) -> None:
        """Make the tokens of a user's old clients useless; their own anyone may, another user's an admin."""
        identity.need_full_power()
        self._require_self_or_admin(identity, name)
        self._users.end_epoch(name)

    def quota(self, identity: Identity, name: str | None) -> QuotaUse:
        user = self.get(identity, name or identity.user.name)
        return self._quotas.use(user.name)

    def _changed_quotas(self, name: str, change: UserChange) -> Mapping[str, Quota | None]:
        overall = {} if change.quota is None else {ALL_CLUSTERS: change.quota}
        if not change.quotas:
            return overall
        self._quotas.check_clusters(change.quotas, self._users.account(name).quotas)
        return {**overall, **change.quotas}

    def _require_self_or_admin(self, identity: Identity, name: str) -> None:
        if name != identity.user.name and not identity.admin:
            raise ForbiddenError(f"{identity.user.name} may not see or change user {name}: it takes an admin")

    def _expiry(self, seconds: int) -> datetime:
        if not 0 < seconds <= _MOST_SECONDS:
            raise InvalidError(f"expires_in_seconds must be from 1 to {_MOST_SECONDS}", field="expires_in_seconds")
        return self._clock() + timedelta(seconds=seconds)


def _outlasted_by(identity: Identity, asked: datetime | None) -> datetime | None:
    """When a token ends that somebody makes: when they asked for, or with what they came by if they asked for none."""
    ends = identity.expires_at
    if ends is not None and asked is not None and asked > ends:
        raise ForbiddenError(
            f"a token that expires at {ends:%Y-%m-%dT%H:%M:%SZ} cannot make one that lasts longer: ask for less time, "
            "or log in again"
        )
    return ends if asked is None else asked


def _require_power_of(identity: Identity, user: User) -> None:
    """A key or a password has all the power of its user, so who makes one must have it already."""
    identity.need(user.full_scope)


def _check_password(password: str) -> None:
    if len(password) < _PASSWORD_CHARACTERS:
        raise InvalidError(f"a password needs {_PASSWORD_CHARACTERS} characters or more", field="password")
