"""Registry secrets: what lets a backend pull images in a user's name. A password goes in and is never told again."""

from __future__ import annotations

import re
from datetime import datetime

from msgspec import Struct

from paddlecloud.model.errors import InvalidError

# A client of PaddlePaddle Cloud writes it before the name that was typed, but not where a job names the secret.
OLD_PREFIX = "pcloud-registry-"
_NAME = re.compile(r"[A-Za-z0-9.-]{1,60}")
_SERVER = re.compile(
    r"(?:https?://)?(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?(?:/[A-Za-z0-9._~%+/-]*)?"
)
_SERVER_CHARACTERS = 255
_USERNAME_CHARACTERS = 255
_PASSWORD_CHARACTERS = 8192  # some registries have a whole key file for a password


class Registry(Struct, frozen=True, kw_only=True):
    """A registry secret without its password."""

    name: str
    server: str
    username: str
    created_at: datetime


class RegistryRequest(Struct, frozen=True, kw_only=True):
    name: str
    server: str
    username: str
    password: str

    def __repr__(self) -> str:
        return f"RegistryRequest(name={self.name!r}, server={self.server!r}, username={self.username!r})"


class RegistryLogin(Struct, frozen=True, kw_only=True):
    """What a backend that pulls images needs; it crosses no wire of ours."""

    server: str
    username: str
    password: str

    def __repr__(self) -> str:
        return f"RegistryLogin(server={self.server!r}, username={self.username!r})"


def registry_name(text: str) -> str:
    """The name that is meant, in whichever of the two ways it was written."""
    name = text.removeprefix(OLD_PREFIX)
    if not _NAME.fullmatch(name):
        raise InvalidError(
            f"registry name {name[:80]!r} is not allowed: use 1 to 60 letters, digits, - and .", field="name"
        )
    return name


def check_registry(request: RegistryRequest) -> None:
    """Raise what is wrong with all but the name."""
    if len(request.server) > _SERVER_CHARACTERS or not _SERVER.fullmatch(request.server):
        raise InvalidError(
            f"registry server {request.server[:80]!r} is not an address: write host, host:port or host:port/path",
            field="server",
        )
    name = request.username
    if not 0 < len(name) <= _USERNAME_CHARACTERS or not name.isprintable() or ":" in name:
        raise InvalidError(
            f"registry username {name[:80]!r} is not allowed: use 1 to {_USERNAME_CHARACTERS} printable characters "
            "without :",
            field="username",
        )
    if not 0 < len(request.password) <= _PASSWORD_CHARACTERS or not _storable(request.password):
        raise InvalidError(f"a registry's password has 1 to {_PASSWORD_CHARACTERS} characters", field="password")


def _storable(text: str) -> bool:
    """Whether it has no half of a surrogate pair, which no bytes stand for."""
    return not any("\ud800" <= character <= "\udfff" for character in text)
