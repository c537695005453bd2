"""Who did what, when, from where, for every act that an operator may one day be asked about.

What is done is recorded in the same transaction; where it cannot be recorded it is not done. A key, a token and a
login are recorded when they are made, before their secret is told to anybody.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime

from paddlecloud.model.audit import Action, AuditEntry, AuditPage
from paddlecloud.model.errors import InvalidError
from paddlecloud.model.wire import nearest
from paddlecloud.store.audit import Audit


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a request comes from: the address of the machine, and the id that its answer and the log have too."""

    address: str = ""
    request_id: str = ""
    passed_on: bool = False  # by a proxy, whose address it then is


HERE = Origin()  # the server itself


class AuditService:
    def __init__(self, audit: Audit, clock: Callable[[], datetime]) -> None:
        self._audit = audit
        self._clock = clock

    def record(self, action: Action, origin: Origin, *, user: str = "", target: str = "", detail: str = "") -> None:
        """Record an act that writes nothing else, or whose target is known only when it is done."""
        self._audit.record(self._entry(action, origin, user, target, detail))

    def beside(
        self, action: Action, origin: Origin, *, user: str = "", target: str = "", detail: str = ""
    ) -> AbstractContextManager[None]:
        """Record the act that is done within, in its own transaction."""
        return self._audit.beside(self._entry(action, origin, user, target, detail))

    def list(
        self, *, user: str | None, action: str | None, since: datetime | None, cursor: str | None, limit: int
    ) -> AuditPage:
        known = sorted({word for found in Action for word in (found.value, found.value.partition(".")[0])})
        if action is not None and action not in known:
            raise InvalidError(f"action {action!r} is not known{nearest(action, known)}", field="action")
        return self._audit.list(user=user, action=action, since=since, cursor=cursor, limit=limit)

    def _entry(self, action: Action, origin: Origin, user: str, target: str, detail: str) -> AuditEntry:
        return AuditEntry(
            at=self._clock(),
            action=action,
            user=user,
            target=target,
            detail=detail,
            address=origin.address,
            request_id=origin.request_id,
        )
