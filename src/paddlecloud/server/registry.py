"""What a user may do with their registry secrets, and with nobody else's: add, list, remove; each act is on record."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from datetime import datetime

from paddlecloud.model.audit import Action
from paddlecloud.model.registry import Registry, RegistryLogin, RegistryRequest, registry_name
from paddlecloud.server.audit import AuditService, Origin
from paddlecloud.store.registry import Registries


class RegistryService:
    def __init__(self, *, registries: Registries, audit: AuditService, clock: Callable[[], datetime]) -> None:
        self._registries = registries
        self._audit = audit
        self._clock = clock

    def add(self, user: str, *, name: str, server: str, username: str, password: str, origin: Origin) -> Registry:
        request = RegistryRequest(name=registry_name(name), server=server, username=username, password=password)
        # What has not been checked yet may be a password that was typed in the wrong place.
        with self._audit.beside(Action.REGISTRY_ADD, origin, user=user, target=request.name):
            return self._registries.add(user, request, self._clock())

    def list(self, user: str) -> builtins.list[Registry]:
        return self._registries.list(user)

    def remove(self, user: str, name: str, *, origin: Origin) -> None:
        with self._audit.beside(Action.REGISTRY_DELETE, origin, user=user, target=registry_name(name)):
            self._registries.remove(user, name)

    def login(self, user: str, name: str) -> RegistryLogin:
        """For a backend that pulls an image of this user's job; for no answer to anybody."""
        return self._registries.get(user, name)
