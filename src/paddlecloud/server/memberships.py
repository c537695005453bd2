"""Which groups a user is in, those that are computed too: asked by name, and cheap enough for every request."""

from __future__ import annotations

from paddlecloud.model.errors import NotFoundError
from paddlecloud.model.group import ADMINS, EVERYBODY
from paddlecloud.model.user import Role
from paddlecloud.store.groups import Groups
from paddlecloud.store.users import Users


class Memberships:
    def __init__(self, groups: Groups, users: Users) -> None:
        self._groups = groups
        self._users = users

    def names(self, user: str, *, admins: bool = True) -> frozenset[str]:
        """Without `admins` the user's role, which is not kept in memory, is not asked for."""
        mine = {EVERYBODY, *self._groups.membership().of_user.get(user, ())}
        if admins and self._is_admin(user):
            mine.add(ADMINS)
        return frozenset(mine)

    def queues(self, user: str) -> frozenset[str]:
        """Those that groups of the user were given."""
        known = self._groups.membership()
        return frozenset(queue for group in known.of_user.get(user, ()) for queue in known.queues.get(group, ()))

    def _is_admin(self, user: str) -> bool:
        try:
            return self._users.get(user).role is Role.ADMIN
        except NotFoundError:
            return False
