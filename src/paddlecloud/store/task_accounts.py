"""Assigns numbers to the accounts that tasks run as.

Invariant: two owners never share a number, and an owner keeps its number forever, since its files belong to it.
"""

from __future__ import annotations

from sqlalchemy import func, insert, select

from paddlecloud.store.db import Database
from paddlecloud.store.schema import task_accounts


class TaskAccountNumbers:
    def __init__(self, db: Database) -> None:
        self._db = db
        self._known: dict[str, int] = {}

    def number(self, owner: str) -> int:
        """The owner's number, starting at 0; a new owner gets the next one."""
        if owner not in self._known:
            self._known[owner] = self._assigned(owner)
        return self._known[owner]

    def last(self) -> int | None:
        """The highest number assigned so far."""
        with self._db.read() as connection:
            found = connection.execute(select(func.max(task_accounts.c.number))).scalar_one_or_none()
        return None if found is None else int(found)

    def _assigned(self, owner: str) -> int:
        with self._db.write() as connection:
            query = select(task_accounts.c.number).where(task_accounts.c.owner == owner)
            found = connection.execute(query).scalar_one_or_none()
            if found is not None:
                return int(found)
            last = connection.execute(select(func.max(task_accounts.c.number))).scalar_one_or_none()
            number = 0 if last is None else int(last) + 1
            connection.execute(insert(task_accounts), {"owner": owner, "number": number})
        return number
