"""Records jobs' original OpenPAI configs, their secrets and their tags.

Secrets are encrypted and bound to their job.
Invariant: secrets are deleted as soon as the job has ended and no backend holds traces of it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, false, func, insert, select
from sqlalchemy.exc import IntegrityError

from paddlecloud.model.errors import ConflictError, NotFoundError
from paddlecloud.model.state import FINAL
from paddlecloud.store.batches import batches
from paddlecloud.store.db import Database
from paddlecloud.store.schema import attempts, job_configs, job_secrets, job_tags, jobs
from paddlecloud.store.secrets import Cipher

_PURPOSE = "secrets of jobs"
_MAX_TAGS = 100  # per job

_ADD_CONFIG = insert(job_configs)
_ADD_SECRETS = insert(job_secrets)
_NOT_CLEANED = select(attempts.c.job).where(attempts.c.job == jobs.c.id, attempts.c.cleaned == false()).exists()
_OVER = select(jobs.c.id).where(jobs.c.state.in_([state.value for state in FINAL]), ~_NOT_CLEANED)
_FORGET_SECRETS = delete(job_secrets).where(_OVER.where(jobs.c.id == job_secrets.c.job).correlate(job_secrets).exists())


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A job's original config, ready to be recorded."""

    protocol: int
    config: str
    warnings: tuple[str, ...] = ()
    sealed: str = ""  # encrypted secrets; "" if there are none


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A job's original config, without its secrets."""

    protocol: int
    text: str
    warnings: tuple[str, ...]


class Configs:
    def __init__(self, db: Database, cipher: Cipher) -> None:
        self._db = db
        self._cipher = cipher

    def written(
        self, job: str, *, protocol: int, config: str, secrets: Mapping[str, Any], warnings: tuple[str, ...]
    ) -> Written:
        """Prepare what `Jobs.add` records with a job."""
        sealed = self._cipher.encrypt(json.dumps(secrets), job, _PURPOSE) if secrets else ""
        return Written(protocol=protocol, config=config, warnings=warnings, sealed=sealed)

    def get(self, job: str) -> Config:
        with self._db.read() as connection:
            row = connection.execute(select(job_configs).where(job_configs.c.job == job)).one_or_none()
        if row is None:
            raise NotFoundError(f"{job} has no OpenPAI config: it was not submitted through OpenPAI")
        return Config(protocol=row.protocol, text=row.config, warnings=tuple(json.loads(row.warnings)))

    def secrets(self, job: str) -> Mapping[str, Any]:
        """The secrets of a job that has not ended; empty for ended jobs."""
        query = select(job_secrets.c.secrets_encrypted).where(job_secrets.c.job == job)
        with self._db.read() as connection:
            sealed = connection.execute(query).scalar()
        found: Mapping[str, Any] = {} if sealed is None else json.loads(self._cipher.decrypt(sealed, job, _PURPOSE))
        return found

    def tags(self, names: Collection[str]) -> dict[str, tuple[str, ...]]:
        """Tags by job; jobs without tags are left out."""
        found: dict[str, list[str]] = {}
        with self._db.read() as connection:
            for some in batches(list(names)):
                query = select(job_tags).where(job_tags.c.job.in_(some)).order_by(job_tags.c.tag)
                for row in connection.execute(query):
                    found.setdefault(row.job, []).append(row.tag)
        return {job: tuple(tags) for job, tags in found.items()}

    def tagged(self, tags: Collection[str]) -> set[str]:
        """Jobs with at least one of these tags."""
        found: set[str] = set()
        with self._db.read() as connection:
            for some in batches(list(tags)):
                found |= set(connection.execute(select(job_tags.c.job).where(job_tags.c.tag.in_(some))).scalars())
        return found

    def tag(self, job: str, tag: str) -> None:
        """Add a tag to a job, unless it has the tag already."""
        count = select(func.count()).select_from(job_tags).where(job_tags.c.job == job)
        known = select(job_tags.c.tag).where(job_tags.c.job == job, job_tags.c.tag == tag)
        try:
            with self._db.write() as connection:
                if connection.execute(known).first() is not None:
                    return
                if connection.execute(count).scalar_one() >= _MAX_TAGS:
                    raise ConflictError(f"{job} has {_MAX_TAGS} tags, which is the limit: remove one first")
                connection.execute(insert(job_tags), {"job": job, "tag": tag})
        except IntegrityError:
            raise NotFoundError(f"there is no job {job!r}") from None

    def untag(self, job: str, tag: str) -> None:
        with self._db.write() as connection:
            statement = delete(job_tags).where(job_tags.c.job == job, job_tags.c.tag == tag)
            if not connection.execute(statement).rowcount:
                raise NotFoundError(f"{job} has no tag {tag[:80]!r}", field="tag")


def add(connection: Connection, job: str, written: Written) -> None:
    warnings = json.dumps(written.warnings)
    connection.execute(
        _ADD_CONFIG, {"job": job, "protocol": written.protocol, "warnings": warnings, "config": written.config}
    )
    if written.sealed:
        connection.execute(_ADD_SECRETS, {"job": job, "secrets_encrypted": written.sealed})


def forget_secrets(connection: Connection) -> None:
    """Delete the secrets of jobs that have ended and of which no backend holds traces."""
    connection.execute(_FORGET_SECRETS)
