"""Groups of users: what may be done with them, and by whom. Admins write; members see their own groups.

`default` (everybody) and `admin` (users of role admin) are computed here, and nowhere stored. Each act is on record.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Collection, Mapping
from datetime import datetime

from msgspec.structs import replace

from paddlecloud.model.audit import Action
from paddlecloud.model.errors import InvalidError
from paddlecloud.model.group import (
    ADMINS,
    COMPUTED,
    EVERYBODY,
    Group,
    GroupChange,
    GroupRequest,
    check_extension,
    check_group_name,
    check_texts,
)
from paddlecloud.model.user import ALL_CLUSTERS, Quota, Role, User
from paddlecloud.model.wire import nearest
from paddlecloud.server.audit import AuditService, Origin
from paddlecloud.server.auth import Identity
from paddlecloud.store import quotas as limits
from paddlecloud.store.groups import Groups, missing
from paddlecloud.store.users import Users

CheckClusters = Callable[[Mapping[str, Quota | None], Mapping[str, Quota]], None]
_DESCRIBED = {EVERYBODY: "everybody", ADMINS: "users of role admin"}


class GroupService:
    def __init__(
        self,
        *,
        groups: Groups,
        users: Users,
        queues: Collection[str],
        check_clusters: CheckClusters,
        audit: AuditService,
        clock: Callable[[], datetime],
    ) -> None:
        """`queues` are those of the config; `check_clusters` refuses quotas on clusters that there are not."""
        self._groups = groups
        self._users = users
        self._queues = queues
        self._check_clusters = check_clusters
        self._audit = audit
        self._clock = clock

    def list(self) -> builtins.list[Group]:
        """All, those that are computed first."""
        return [*(self._computed(name) for name in COMPUTED), *self._groups.list()]

    def get(self, name: str) -> Group:
        return self._computed(name) if name in COMPUTED else self._groups.get(name)

    def list_for(self, identity: Identity) -> builtins.list[Group]:
        """Those that the caller may see: all for an admin, else their own."""
        if identity.admin:
            return self.list()
        return [_shown_to(identity, self.get(name)) for name in self.names_of(identity.user)]

    def get_for(self, identity: Identity, name: str) -> Group:
        if identity.admin:
            return self.get(name)
        if name not in self.names_of(identity.user):
            raise missing(name)
        return _shown_to(identity, self.get(name))

    def names_of(self, user: User) -> tuple[str, ...]:
        """The groups that a user is in, computed ones first: cheap, for every request."""
        mine = self._groups.membership().of_user.get(user.name, ())
        return (EVERYBODY, *((ADMINS,) if user.role is Role.ADMIN else ()), *mine)

    def add(self, by: Identity, request: GroupRequest, origin: Origin) -> Group:
        by.need_admin()
        check_group_name(request.name)
        check_texts(request.description, request.external_name)
        check_extension(request.extension)
        self._check_queues(request.queues, ())
        self._check_quotas({ALL_CLUSTERS: request.quota, **request.quotas}, {})
        with self._audit.beside(Action.GROUP_ADD, origin, user=by.user.name, target=request.name):
            return self._groups.add(replace(request, queues=_once(request.queues)), self._clock())

    def change(self, by: Identity, name: str, change: GroupChange, origin: Origin) -> Group:
        by.need_admin()
        check_group_name(name)
        check_texts(change.description, change.external_name)
        check_extension(change.extension)
        before = self._groups.get(name)
        if change.queues is not None:
            self._check_queues(change.queues, before.queues)
            change = replace(change, queues=_once(change.queues))
        overall = {} if change.quota is None else {ALL_CLUSTERS: change.quota}
        self._check_quotas({**overall, **(change.quotas or {})}, before.quotas)
        what = ", ".join(field for field in change.__struct_fields__ if getattr(change, field) is not None)
        with self._audit.beside(Action.GROUP_CHANGE, origin, user=by.user.name, target=name, detail=what):
            return self._groups.change(name, change)

    def remove(self, by: Identity, name: str, origin: Origin) -> None:
        """Its members lose what it gave them, at once."""
        by.need_admin()
        check_group_name(name)
        with self._audit.beside(Action.GROUP_REMOVE, origin, user=by.user.name, target=name):
            self._groups.remove(name)

    def join(self, by: Identity, name: str, user: str, origin: Origin) -> Group:
        by.need_admin()
        check_group_name(name)
        with self._audit.beside(Action.GROUP_JOIN, origin, user=by.user.name, target=name, detail=user):
            self._groups.join(name, user)
        return self.get(name)

    def leave(self, by: Identity, name: str, user: str, origin: Origin) -> Group:
        by.need_admin()
        check_group_name(name)
        with self._audit.beside(Action.GROUP_LEAVE, origin, user=by.user.name, target=name, detail=user):
            self._groups.leave(name, user)
        return self.get(name)

    def set_groups(self, by: Identity, user: str, names: Collection[str], origin: Origin) -> None:
        """Have a user be in these groups and in no others; computed ones are passed over."""
        by.need_admin()
        wanted = [check_group_name(name) for name in names if name not in COMPUTED]
        with self._audit.beside(
            Action.GROUP_JOIN, origin, user=by.user.name, target=", ".join(wanted) or "none", detail=f"only {user}'s"
        ):
            self._groups.set_groups(user, wanted)

    def _computed(self, name: str) -> Group:
        members = [user.name for user in self._users.list() if name == EVERYBODY or user.role is Role.ADMIN]
        return Group(name=name, description=_DESCRIBED[name], members=tuple(members))

    def _check_queues(self, asked: Collection[str], before: Collection[str]) -> None:
        """A queue of before may stay, although the config has lost it."""
        for name in asked:
            if name not in self._queues and name not in before:
                hint = nearest(name, list(self._queues)) if self._queues else "; it has none"
                raise InvalidError(f"queue {name[:80]!r} is not configured on this server{hint}", field="queues")

    def _check_quotas(self, changed: Mapping[str, Quota | None], before: Mapping[str, Quota]) -> None:
        for cluster, quota in changed.items():
            if quota is not None:
                limits.check(cluster, quota)
        self._check_clusters({name: quota for name, quota in changed.items() if name != ALL_CLUSTERS}, before)


def _shown_to(identity: Identity, group: Group) -> Group:
    """Who is in a group is its members' to know; who is on this server is the admins'."""
    return replace(group, members=(identity.user.name,)) if group.computed else group


def _once(names: Collection[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
