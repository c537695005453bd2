"""Records revoked session tokens ("passes") until they would have expired.

A valid pass needs no row. For a user who has revoked very many, one row revokes all passes issued until then.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import delete, func, insert, select

from paddlecloud.store.db import Database
from paddlecloud.store.schema import ended_passes

ENDED_OF_A_USER = 200
_ALL_OF_USER = ""


class EndedPasses:
    def __init__(self, db: Database) -> None:
        self._db = db

    def end(self, user: str, pass_id: str, *, expires_at: datetime, now: datetime) -> None:
        row = {"user": user, "id": pass_id, "ended_at": now, "expires_at": expires_at}
        mine = ended_passes.c.user == user
        with self._db.write() as connection:
            connection.execute(delete(ended_passes).where(ended_passes.c.expires_at <= now))
            connection.execute(delete(ended_passes).where(mine, ended_passes.c.id == pass_id))
            count = connection.execute(select(func.count()).select_from(ended_passes).where(mine)).scalar_one()
            if count >= ENDED_OF_A_USER:
                latest = connection.execute(select(func.max(ended_passes.c.expires_at)).where(mine)).scalar_one()
                connection.execute(delete(ended_passes).where(mine))
                row |= {"id": _ALL_OF_USER, "expires_at": max(latest, expires_at)}
            connection.execute(insert(ended_passes), row)

    def ended(self, user: str, pass_id: str, made_at: datetime) -> bool:
        query = select(ended_passes.c.id, ended_passes.c.ended_at).where(
            ended_passes.c.user == user, ended_passes.c.id.in_((pass_id, _ALL_OF_USER))
        )
        with self._db.read() as connection:
            return any(row.id == pass_id or made_at <= row.ended_at for row in connection.execute(query))
