"""Records encrypted keys to users' own buckets, and the progress of jobs' file transfers.

Keys are bound to their user and id. A job and its row here are written together, and only if its key exists. A key is
deleted when the last job that names it no longer needs it, or after a day if no job does.
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
_MAX_KEYS = 1000  # per user
LEASE = timedelta(days=1)  # how long a key waits for the submit it was sent for


class Stage(StrEnum):
    FETCHING = "fetching"
    HERE = "here"
    REFUSED = "refused"  # its files will never arrive
    SENT = "sent"  # everything is done


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """A job whose files or results are still to be transferred. It is `over` when nothing of it runs any more."""

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
            if connection.execute(count).scalar_one() >= _MAX_KEYS:
                raise ConflictError(f"{user} has {_MAX_KEYS} storage keys, which is the limit: wait for jobs to end")
            if connection.execute(select(users.c.name).where(users.c.name == user)).first() is None:
                raise NotFoundError(f"there is no user {user!r}")
            connection.execute(insert(storage_keys), row)
        return key

    def key(self, user: str, key_id: str) -> tuple[StorageKey, StorageLogin]:
        """A user's key with its secret, for the server's own use."""
        with self._db.read() as connection:
            row = _find(connection, user, key_id)
        if row is None:
            raise missing(key_id)
        plain = self._cipher.decrypt(row.key_encrypted, _bound_to(user, row.id), _PURPOSE)
        return StorageKey(id=row.id, url=row.url, created_at=row.created_at), wire.decode(StorageLogin, plain.encode())

    def outstanding(self) -> list[Errand]:
        """Pending transfers, oldest jobs first."""
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
        """A job's transfer stage and its explanation."""
        with self._db.read() as connection:
            row = connection.execute(select(buckets.c.stage, buckets.c.why).where(buckets.c.job == job)).one_or_none()
        return (Stage.SENT, "") if row is None else (Stage(row.stage), row.why)

    def reach(self, job: str, stage: Stage, why: str = "") -> None:
        with self._db.write() as connection:
            connection.execute(update(buckets).where(buckets.c.job == job).values(stage=stage.value, why=why))

    def sweep(self, now: datetime) -> int:
        """Delete keys that are no longer needed; return how many."""
        needed = select(buckets.c.storage_key).where(buckets.c.stage != Stage.SENT.value)
        named = select(buckets.c.storage_key)
        done = or_(storage_keys.c.id.in_(named), storage_keys.c.created_at < now - LEASE)
        with self._db.write() as connection:
            return connection.execute(delete(storage_keys).where(storage_keys.c.id.not_in(needed), done)).rowcount


def add_errand(connection: Connection, job: Job) -> None:
    """Add the transfer of a new job, in the transaction that adds the job; its key must exist."""
    if not job.spec.carried:
        return
    if job.spec.storage_key and _find(connection, job.user, job.spec.storage_key) is None:
        raise missing(job.spec.storage_key)
    row = {"job": job.id, "storage_key": job.spec.storage_key, "stage": Stage.FETCHING.value, "why": ""}
    connection.execute(insert(buckets), row | {"url": job.spec.bos_url or job.spec.inputs[0].source})


def forget(connection: Connection, names: list[str]) -> None:
    """Delete the transfers of jobs, in the transaction that deletes the jobs, and keys that no other job names."""
    keys = list(connection.execute(select(buckets.c.storage_key).where(buckets.c.job.in_(names))).scalars())
    connection.execute(delete(buckets).where(buckets.c.job.in_(names)))
    named = select(buckets.c.storage_key)
    connection.execute(delete(storage_keys).where(storage_keys.c.id.in_(keys), storage_keys.c.id.not_in(named)))


def missing(key_id: str) -> NotFoundError:
    return NotFoundError(
        f"you have no storage key {key_id[:80]!r}: send it again (POST /v1/storage_keys) and name it in the job",
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
