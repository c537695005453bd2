"""Databases as older programs left them: two users, an access key and a job, just submitted or in a state."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import msgspec
from sqlalchemy import Connection, column, insert, table

from paddlecloud.model.state import JobState
from paddlecloud.store import migrations
from paddlecloud.store.db import Database, kind_of
from paddlecloud.store.secrets import Cipher
from tests.contract.records import NOW, a_job

JOB = a_job("ann", tree="t" * 64)
AK, SK = "ak-of-ann", "sk-of-ann"


def older(url: str, revision: str, key_file: Path, state: JobState = JOB.state) -> None:
    kind = kind_of(url)
    kind.create()
    quota = {"quota_running_jobs": 2} if revision < "0003" else {}
    row = {
        "id": JOB.id,
        "user": "ann",
        "name": JOB.spec.name,
        "state": state.value,
        "version": 0,
        "attempt": 0,
        "cluster": "default",
        "priority": JOB.spec.priority,
        "group_hash": "group",
        "created_at": NOW,
        "queue_reason": "",
        "error": "",
        "spec": msgspec.json.encode(JOB.spec).decode(),
    }
    sealed = Cipher(key_file).encrypt(SK, bound_to=AK)
    with closing(Database(kind)) as made, made.write() as connection:
        migrations.upgrade(connection, to=revision)
        _put(connection, "users", name="ann", role="admin", created_at=NOW, **quota)
        _put(connection, "users", name="bob", role="user", created_at=NOW)
        _put(connection, "access_keys", ak=AK, user="ann", created_at=NOW, sk_encrypted=sealed)
        _put(connection, "jobs", **row)
        _put(connection, "history", job=JOB.id, user="ann", attempt=0, at=NOW, to_state=state.value, why="submitted")
        _put(connection, "idempotency", user="ann", key="k", body_hash="h", job=JOB.id, created_at=NOW)


def _put(connection: Connection, into: str, /, **values: object) -> None:
    connection.execute(insert(table(into, *(column(one) for one in values))), values)
