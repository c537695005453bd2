"""Calls about shared folders: which there are, and which groups may read or write in them."""

from __future__ import annotations

import builtins
from collections.abc import Sequence

from paddlecloud.model.shared import SharedFolder, SharedRequest
from paddlecloud.sdk.http import Http


class Shared:
    """`client.pfs.shared`: the folders that are shared with you; an admin sees all of them, and changes them."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def list(self) -> builtins.list[SharedFolder]:
        return self._http.get(list[SharedFolder], "/v1/shared")

    def add(
        self, name: str, *, datacenter: str = "", readers: Sequence[str] = (), writers: Sequence[str] = ()
    ) -> SharedFolder:
        """Make a folder that is shared with these groups, in the first datacenter if none is named."""
        asked = SharedRequest(name=name, datacenter=datacenter, readers=tuple(readers), writers=tuple(writers))
        return self._http.send(SharedFolder, "POST", "/v1/shared", asked)

    def grant(self, datacenter: str, name: str, group: str, *, write: bool = False) -> None:
        query = {"write": True} if write else None
        self._http.request("PUT", f"/v1/shared/{datacenter}/{name}/groups/{group}", query=query)

    def revoke(self, datacenter: str, name: str, group: str) -> None:
        self._http.request("DELETE", f"/v1/shared/{datacenter}/{name}/groups/{group}")

    def remove(self, datacenter: str, name: str, *, recursive: bool = False) -> None:
        """Take it away; with what is in it only if it is asked for."""
        query = {"recursive": True} if recursive else None
        self._http.request("DELETE", f"/v1/shared/{datacenter}/{name}", query=query)
