"""Groups of users: who is in one, which queues its members may use, and what each of them may have.

`default` (everybody) and `admin` (users of role admin) are computed from the users and cannot be made or changed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct, field

from paddlecloud.model.errors import InvalidError
from paddlecloud.model.user import NO_LIMITS, Quota

EVERYBODY, ADMINS = "default", "admin"
COMPUTED = (EVERYBODY, ADMINS)

_NAME = re.compile(r"[A-Za-z0-9_]{1,60}")  # OpenPAI's, with a length
_DESCRIPTION_CHARACTERS = 1000
_EXTENSION_BYTES = 64 * 1024


class Group(Struct, frozen=True, kw_only=True):
    """`quota` is on all clusters together, `quotas` are on single ones; both are of each member, not of all together.

    `external_name` and `extension` are other programs' own: kept as given, and shown again.
    """

    name: str
    created_at: datetime | None = None  # None: it is computed
    description: str = ""
    external_name: str = ""
    members: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    quota: Quota = NO_LIMITS
    quotas: Mapping[str, Quota] = field(default_factory=dict)
    extension: Mapping[str, Any] = field(default_factory=dict)

    @property
    def computed(self) -> bool:
        return self.created_at is None


class GroupRequest(Struct, frozen=True, kw_only=True):
    name: str
    description: str = ""
    external_name: str = ""
    members: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    quota: Quota = NO_LIMITS
    quotas: Mapping[str, Quota] = field(default_factory=dict)
    extension: Mapping[str, Any] = field(default_factory=dict)


class GroupChange(Struct, frozen=True, kw_only=True):
    """What to change of a group; None leaves it as it is. Lists, a quota and the extension are replaced as a whole.

    In `quotas` null takes the group's limits on a cluster away.
    """

    description: str | None = None
    external_name: str | None = None
    members: tuple[str, ...] | None = None
    queues: tuple[str, ...] | None = None
    quota: Quota | None = None
    quotas: Mapping[str, Quota | None] | None = None
    extension: Mapping[str, Any] | None = None


def check_group_name(name: str) -> str:
    """The name itself, if it may be a group's."""
    if not _NAME.fullmatch(name):
        raise InvalidError(
            f"group name {name[:80]!r} is not allowed: use up to 60 letters, digits and _, such as vision_lab",
            field="name",
        )
    if name in COMPUTED:
        raise InvalidError(
            f"group {name} is made of the users by itself and cannot be made or changed: take another name; "
            "who is an admin is set by their role",
            field="name",
        )
    return name


def check_texts(description: str | None, external_name: str | None) -> None:
    for field_name, text in (("description", description), ("external_name", external_name)):
        if text is not None and len(text) > _DESCRIPTION_CHARACTERS:
            raise InvalidError(
                f"{field_name} has {len(text)} characters; {_DESCRIPTION_CHARACTERS} is the most", field=field_name
            )


def check_extension(extension: Mapping[str, Any] | None) -> None:
    """Whatever another program keeps there, it must not fill the records."""
    if extension is None:
        return
    try:
        size = len(msgspec.json.encode(extension))
    except (RecursionError, UnicodeEncodeError, TypeError, ValueError) as error:
        raise InvalidError(f"extension cannot be kept: {error}", field="extension") from None
    if size > _EXTENSION_BYTES:
        raise InvalidError(f"extension has {size} bytes; {_EXTENSION_BYTES} is the most", field="extension")
