"""Calls about groups of users: which queues their members may use, and what each of them may have."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from typing import Any

from paddlecloud.model.group import Group, GroupChange, GroupRequest
from paddlecloud.model.user import NO_LIMITS, Quota
from paddlecloud.sdk.http import Http


class Groups:
    """`client.accounts.groups`: one's own groups; an admin sees all of them, and changes them."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def list(self) -> builtins.list[Group]:
        return self._http.get(list[Group], "/v1/groups")

    def get(self, name: str) -> Group:
        return self._http.get(Group, f"/v1/groups/{name}")

    def add(
        self,
        name: str,
        *,
        description: str = "",
        external_name: str = "",
        members: Sequence[str] = (),
        queues: Sequence[str] = (),
        quota: Quota = NO_LIMITS,
        quotas: Mapping[str, Quota] | None = None,
        extension: Mapping[str, Any] | None = None,
    ) -> Group:
        """Make a group. `quota` is what each member may have on all clusters together, `quotas` on single ones."""
        asked = GroupRequest(
            name=name,
            description=description,
            external_name=external_name,
            members=tuple(members),
            queues=tuple(queues),
            quota=quota,
            quotas=quotas or {},
            extension=extension or {},
        )
        return self._http.send(Group, "POST", "/v1/groups", asked)

    def change(
        self,
        name: str,
        *,
        description: str | None = None,
        external_name: str | None = None,
        members: Sequence[str] | None = None,
        queues: Sequence[str] | None = None,
        quota: Quota | None = None,
        quotas: Mapping[str, Quota | None] | None = None,
        extension: Mapping[str, Any] | None = None,
    ) -> Group:
        """Change what is given and leave the rest; lists, a quota and the extension are replaced as a whole."""
        change = GroupChange(
            description=description,
            external_name=external_name,
            members=None if members is None else tuple(members),
            queues=None if queues is None else tuple(queues),
            quota=quota,
            quotas=quotas,
            extension=extension,
        )
        return self._http.send(Group, "PATCH", f"/v1/groups/{name}", change)

    def remove(self, name: str) -> None:
        """Take a group away, with all that it gave its members."""
        self._http.request("DELETE", f"/v1/groups/{name}")

    def join(self, name: str, user: str) -> None:
        self._http.request("PUT", f"/v1/groups/{name}/members/{user}")

    def leave(self, name: str, user: str) -> None:
        self._http.request("DELETE", f"/v1/groups/{name}/members/{user}")
