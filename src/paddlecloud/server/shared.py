"""Shared folders: admins make them and grant them to groups; members of those see them as a part of the PFS."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from datetime import datetime

from msgspec.structs import replace

from paddlecloud.model import pfs as names
from paddlecloud.model.audit import Action
from paddlecloud.model.errors import ConflictError, InvalidError
from paddlecloud.model.group import ADMINS
from paddlecloud.model.shared import SharedFolder, SharedRequest, check_folder_name
from paddlecloud.server.audit import AuditService, Origin
from paddlecloud.server.auth import Identity
from paddlecloud.server.memberships import Memberships
from paddlecloud.server.pfs import Pfs
from paddlecloud.server.room import Room
from paddlecloud.store.groups import Groups
from paddlecloud.store.shared import Grants, Key, SharedFolders, no_such_folder
from paddlecloud.store.users import Users


class Granted:
    """What is shared with a user, by datacenter and name, and whether they may write there: asked by every request."""

    def __init__(self, groups: Groups, memberships: Memberships) -> None:
        self._groups = groups
        self._memberships = memberships

    def __call__(self, user: str) -> Mapping[Key, bool]:
        known = self._groups.membership()
        if not known.shared:
            return {}
        mine = self.groups_of(user)
        return {
            key: any(writable for group, writable in grants.items() if group in mine)
            for key, grants in known.shared.items()
            if mine & grants.keys()
        }

    def groups_of(self, user: str) -> frozenset[str]:
        shared = self._groups.membership().shared
        return self._memberships.names(user, admins=any(ADMINS in grants for grants in shared.values()))


class SharedService:
    def __init__(
        self,
        *,
        folders: SharedFolders,
        granted: Granted,
        users: Users,
        pfs: Pfs,
        room: Room,
        audit: AuditService,
        clock: Callable[[], datetime],
    ) -> None:
        self._folders = folders
        self._granted = granted
        self._users = users
        self._pfs = pfs
        self._room = room
        self._audit = audit
        self._clock = clock

    def list(self) -> builtins.list[SharedFolder]:
        since = self._folders.since()
        return [self._shown(key, grants, since[key]) for key, grants in sorted(self._folders.all().items())]

    def list_for(self, identity: Identity) -> builtins.list[SharedFolder]:
        """Those that the caller may see: all for an admin, else what is shared with them, by which of their groups."""
        if identity.admin:
            return self.list()
        mine = self._granted.groups_of(identity.user.name)
        seen = self._granted(identity.user.name)
        return [
            replace(
                one,
                readers=tuple(group for group in one.readers if group in mine),
                writers=tuple(group for group in one.writers if group in mine),
            )
            for one in self.list()
            if (one.datacenter, one.name) in seen
        ]

    def get(self, datacenter: str, name: str) -> SharedFolder:
        key = self._key(datacenter, name)
        found = next((one for one in self.list() if (one.datacenter, one.name) == key), None)
        if found is None:
            raise no_such_folder(key)
        return found

    def add(self, by: Identity, request: SharedRequest, origin: Origin) -> SharedFolder:
        by.need_admin()
        key = self._key(request.datacenter, check_folder_name(request.name))
        if any(user.name == request.name for user in self._users.list()):
            raise ConflictError(
                f"{request.name} is a user's name, and /{request.name} of WebHDFS is their home: take another",
                field="name",
            )
        grants = dict.fromkeys(request.readers, False) | dict.fromkeys(request.writers, True)
        detail = ", ".join(_said(group, writable) for group, writable in grants.items())
        with self._audit.beside(Action.SHARE_ADD, origin, user=by.user.name, target=names.shared(*key), detail=detail):
            self._folders.add(key, grants, self._clock())
        self._pfs.make_shared(*key)
        return self.get(*key)

    def grant(
        self, by: Identity, datacenter: str, name: str, group: str, origin: Origin, *, writable: bool
    ) -> SharedFolder:
        by.need_admin()
        key, detail = self._key(datacenter, name), _said(group, writable)
        target = names.shared(*key)
        with self._audit.beside(Action.SHARE_GRANT, origin, user=by.user.name, target=target, detail=detail):
            self._folders.grant(key, group, writable=writable)
        return self.get(*key)

    def revoke(self, by: Identity, datacenter: str, name: str, group: str, origin: Origin) -> SharedFolder:
        """Its members lose the folder at once; a task that runs keeps it until it ends."""
        by.need_admin()
        key = self._key(datacenter, name)
        target = names.shared(*key)
        with self._audit.beside(Action.SHARE_REVOKE, origin, user=by.user.name, target=target, detail=group):
            self._folders.revoke(key, group)
        return self.get(*key)

    def remove(self, by: Identity, datacenter: str, name: str, origin: Origin, *, recursive: bool) -> None:
        """Its files go before its record: what is left of it must not be found by the next of its name."""
        by.need_admin()
        found = self.get(datacenter, name)
        key = (found.datacenter, found.name)
        self._pfs.remove_shared(*key, recursive=recursive)
        with self._audit.beside(Action.SHARE_REMOVE, origin, user=by.user.name, target=found.path):
            self._folders.remove(key)
        self._room.forget(names.keeper_of(key[1]), key[0])

    def _key(self, datacenter: str, name: str) -> Key:
        known = self._pfs.datacenters
        if datacenter and datacenter not in known:
            raise InvalidError(
                f"there is no datacenter {datacenter[:80]!r}: this server has {', '.join(known)}", field="datacenter"
            )
        return datacenter or known[0], name

    def _shown(self, key: Key, grants: Grants, created_at: datetime) -> SharedFolder:
        size, files = self._room.used_in(names.keeper_of(key[1]), key[0])
        return SharedFolder(
            name=key[1],
            datacenter=key[0],
            path=names.shared(*key),
            created_at=created_at,
            readers=tuple(sorted(group for group, writable in grants.items() if not writable)),
            writers=tuple(sorted(group for group, writable in grants.items() if writable)),
            size_bytes=size,
            files=files,
        )


def _said(group: str, writable: bool) -> str:
    return f"{group} may {'write' if writable else 'read'}"
