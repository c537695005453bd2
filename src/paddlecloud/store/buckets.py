"""Keys to buckets of users' own, encrypted and tied to their user and id, and how far the files of jobs are that come
from there or from elsewhere as inputs.

A job and its row here are written together, and only while its key is there; a key goes when the last job that named it
needs it no more, or after a day if none did.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Row, delete, false, func, insert, or_, select, update

from paddlecloud.model import wire
from paddlecloud.model.bos import StorageKey, StorageKeyRequest, StorageLogin, check_storage_key
from paddlecloud.model.errors import ConflictError, NotFoundError
from paddlecloud.model.job import Job
from paddlecloud.model.state import FINAL, JobState
from paddlecloud.store.db import Database
from paddlecloud.store.schema import attempts, buckets, jobs, storage_keys, users
from paddlecloud.store.secrets import Cipher

_PURPOSE = "storage keys"
_MOST = 1000  # of one user
LEASE = timedelta(days=1)  # of a key, for the submit that it was sent for


class Stage(StrEnum):
    FETCHING = "fetching"
    HERE = "here"
    REFUSED = "refused"  # its files will never be here
    SENT = "sent"  # all is done


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """A job whose files or results are not yet where they belong. It is `over` when nothing of it runs any more."""

    job: str
    user: str
    url: str
    storage_key: str
    stage: Stage
    why: str
    over: bool
    waiting: bool


def new_key_id() -> str:
    return f"key-{secrets.token_hex(16)}"


class Buckets:
    def __init__(self, db: Database, cipher: Cipher) -> None:
        self._db = db
        self._cipher = cipher

    def add_key(self, user: str, key_id: str, request: StorageKeyRequest, now: datetime) -> StorageKey:
        key = StorageKey(id=key_id, url=str(check_storage_key(request)), created_at=now)
        login = wire.encode(StorageLogin(key_id=request.key_id, secret=request.secret)).decode()
        row = {
            "id": key.id,
            "user": user,
            "url": key.url,
            "created_at": now,
            "key_encrypted": self._cipher.encrypt(login, _bound_to(user, key.id), _PURPOSE),
        }
        count = select(func.count()).select_from(storage_keys).where(storage_keys.c.user == user)
        with self._db.write() as connection:
            if connection.execute(count).scalar_one() >= _MOST:
                raise ConflictError(f"{user} has {_MOST} storage keys, which is the most: wait for some jobs to end")
            if connection.execute(select(users.c.name).where(users.c.name == user)).first() is None:
                raise NotFoundError(f"there is no user {user!r}")
            connection.execute(insert(storage_keys), row)
        return key

    def key(self, user: str, key_id: str) -> tuple[StorageKey, StorageLogin]:
        """A key of this user's, for the server's own use."""
        with self._db.read() as connection:
            row = _find(connection, user, key_id)
        if row is None:
            raise missing(key_id)
        plain = self._cipher.decrypt(row.key_encrypted, _bound_to(user, row.id), _PURPOSE)
        return StorageKey(id=row.id, url=row.url, created_at=row.created_at), wire.decode(StorageLogin, plain.encode())

    def outstanding(self) -> list[Errand]:
        """What is still to be done, oldest jobs first."""
        held = select(attempts.c.job).where(attempts.c.job == jobs.c.id, attempts.c.cleaned == false()).exists()
        query = (
            select(buckets, jobs.c.user, jobs.c.state, held.label("held"))
            .join(jobs, jobs.c.id == buckets.c.job)
            .where(buckets.c.stage != Stage.SENT.value)
            .order_by(jobs.c.seq)
        )
        with self._db.read() as connection:
            return [_errand(row) for row in connection.execute(query)]

    def stage(self, job: str) -> tuple[Stage, str]:
        """How far a job is, and what is to be said of it."""
        with self._db.read() as connection:
            row = connection.execute(select(buckets.c.stage, buckets.c.why).where(buckets.c.job == job)).one_or_none()
        return (Stage.SENT, "") if row is None else (Stage(row.stage), row.why)

    def reach(self, job: str, stage: Stage, why: str = "") -> None:
        with self._db.write() as connection:
            connection.execute(update(buckets).where(buckets.c.job == job).values(stage=stage.value, why=why))

    def sweep(self, now: datetime) -> int:
        """Forget the keys that nothing needs any more; how many there were."""
        needed = select(buckets.c.storage_key).where(buckets.c.stage != Stage.SENT.value)
        named = select(buckets.c.storage_key)
        done = or_(storage_keys.c.id.in_(named), storage_keys.c.created_at < now - LEASE)
        with self._db.write() as connection:
            return connection.execute(delete(storage_keys).where(storage_keys.c.id.not_in(needed), done)).rowcount


def add_errand(connection: Connection, job: Job) -> None:
    """In the transaction that adds a job: it needs its key, if it has one, from now on."""
    if not job.spec.carried:
        return
    if job.spec.storage_key and _find(connection, job.user, job.spec.storage_key) is None:
        raise missing(job.spec.storage_key)
    row = {"job": job.id, "storage_key": job.spec.storage_key, "stage": Stage.FETCHING.value, "why": ""}
    connection.execute(insert(buckets), row | {"url": job.spec.bos_url or job.spec.inputs[0].source})


def forget(connection: Connection, names: list[str]) -> None:
    """In the transaction that forgets jobs: with them go the keys that no other job named."""
    keys = list(connection.execute(select(buckets.c.storage_key).where(buckets.c.job.in_(names))).scalars())
    connection.execute(delete(buckets).where(buckets.c.job.in_(names)))
    named = select(buckets.c.storage_key)
    connection.execute(delete(storage_keys).where(storage_keys.c.id.in_(keys), storage_keys.c.id.not_in(named)))


def missing(key_id: str) -> NotFoundError:
    return NotFoundError(
        f"no storage key {key_id[:80]!r} of yours: send the key again (POST /v1/storage_keys), and name it in the job",
        field="storage_key",
    )


def _find(connection: Connection, user: str, key_id: str) -> Row[Any] | None:
    query = select(storage_keys).where(storage_keys.c.user == user, storage_keys.c.id == key_id)
    return connection.execute(query).one_or_none()


def _bound_to(user: str, key_id: str) -> str:
    return f"{user}/{key_id}"


def _errand(row: Row[Any]) -> Errand:
    state = JobState(row.state)
    return Errand(
        job=row.job,
        user=row.user,
        url=row.url,
        storage_key=row.storage_key,
        stage=Stage(row.stage),
        why=row.why,
        over=state in FINAL and not row.held,
        waiting=state.waiting,
    )
