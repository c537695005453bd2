"""The operator: an admin that the process's own user is, so that a new server can be used at all.

The access key lies in the data folder, which nobody else can read; whoever can has the records anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from paddlecloud.model.errors import InvalidError, NotFoundError, PaddleCloudError
from paddlecloud.model.user import Role, check_user_name
from paddlecloud.runtime import rootless
from paddlecloud.server.datadir import DataFolder, read_private, write_private
from paddlecloud.store.users import Users


def ensure_operator(users: Users, folder: DataFolder, clock: Callable[[], datetime]) -> None:
    """An admin of the name that this process runs as, with an access key that works, in embedded.json."""
    name = _login_name()
    try:
        user = users.get(name)
    except NotFoundError:
        user = users.add(name, Role.ADMIN, None, clock())
    if _key_works(users, folder):
        return
    key, sk = users.add_key(user.name, clock())
    write_private(folder.embedded, {"user": user.name, "ak": key.ak, "sk": sk})


def _key_works(users: Users, folder: DataFolder) -> bool:
    kept = read_private(folder.embedded)
    try:
        _, sk = users.key_secret(str(kept.get("ak")))
    except PaddleCloudError:
        return False
    return sk == kept.get("sk")


def _login_name() -> str:
    try:
        return check_user_name(rootless.own_name())
    except InvalidError:  # a user id without an account, as in containers
        return "admin"
