"""Calls about registry secrets, by which images of one's own are pulled."""

from __future__ import annotations

import builtins

from paddlecloud.model.registry import Registry, RegistryRequest
from paddlecloud.sdk.http import Http


class Registries:
    """`client.registries`: one's own registry secrets."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def list(self) -> builtins.list[Registry]:
        return self._http.get(list[Registry], "/v1/registries")

    def add(self, name: str, server: str, username: str, password: str) -> Registry:
        """Keep a registry's password under a name; it is not told again, and a name that is taken is refused."""
        asked = RegistryRequest(name=name, server=server, username=username, password=password)
        return self._http.send(Registry, "POST", "/v1/registries", asked)

    def remove(self, name: str) -> None:
        self._http.request("DELETE", f"/v1/registries/{name}")
