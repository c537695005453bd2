"""The contract of keys to buckets of users' own: encrypted, nobody else's, and gone when nothing needs them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace
from sqlalchemy import select, update

from paddlecloud.model.bos import StorageKey, StorageKeyRequest, StorageLogin
from paddlecloud.model.errors import ConfigError, ConflictError, InvalidError, NotFoundError
from paddlecloud.model.job import Job
from paddlecloud.model.state import JobState
from paddlecloud.model.user import Role
from paddlecloud.store.buckets import LEASE, Buckets, Errand, Stage, new_key_id
from paddlecloud.store.db import Database
from paddlecloud.store.jobs import Jobs
from paddlecloud.store.retention import Forgetting
from paddlecloud.store.schema import storage_keys as table
from paddlecloud.store.secrets import Cipher
from paddlecloud.store.users import Users
from tests.contract.records import NOW, a_job, a_move

URL = "lab.bj.bcebos.com/d"
ASKED = StorageKeyRequest(url=f"https://{URL}/", key_id="an-ak", secret="s3cret")
LONG_AGO, LATER = NOW + LEASE, NOW + LEASE + timedelta(seconds=1)


@pytest.fixture
def buckets(database: Database, users: Users, tmp_path: Path) -> Buckets:
    for name in ("ann", "bob"):
        users.add(name, Role.USER, None, NOW)
    return Buckets(database, Cipher(tmp_path / "key"))


def added(buckets: Buckets, user: str = "ann") -> str:
    return buckets.add_key(user, new_key_id(), ASKED, NOW).id


def submitted(jobs: Jobs, key: str, user: str = "ann") -> Job:
    job = a_job(user)
    spec = replace(job.spec, public_bos=False, bos_url=URL, storage_key=key)
    return jobs.add(replace(job, spec=spec), group="g")


def ended(jobs: Jobs, job: Job, *, cleaned: bool = True) -> Job:
    for state in (JobState.SCHEDULE, JobState.RUNNING, JobState.SUCCESS):
        job = jobs.move(job, a_move(state))
    if cleaned:
        jobs.cleaned([job.handle])
    return job


def there(buckets: Buckets, key: str, user: str = "ann") -> bool:
    try:
        return bool(buckets.key(user, key))
    except NotFoundError:
        return False


def test_a_key_is_kept_for_its_user_alone(buckets: Buckets) -> None:
    key = added(buckets)
    login = StorageLogin(key_id="an-ak", secret="s3cret")
    assert buckets.key("ann", key) == (StorageKey(id=key, url=URL, created_at=NOW), login)
    for user, named in (("bob", key), ("ann", "key-of-nobody"), ("ann", "")):
        with pytest.raises(NotFoundError, match="no storage key"):
            buckets.key(user, named)


def test_both_halves_of_a_key_are_encrypted_and_tied_to_their_row(buckets: Buckets, database: Database) -> None:
    one, other = added(buckets), added(buckets)
    with database.write() as connection:
        rows = {row.id: row for row in connection.execute(select(table))}
        assert not any(word in str(tuple(row)) for row in rows.values() for word in ("s3cret", "an-ak"))
        sealed = rows[one].key_encrypted
        connection.execute(update(table).where(table.c.id == other).values(key_encrypted=sealed))
    with pytest.raises(ConfigError, match="does not match this database's storage keys"):
        buckets.key("ann", other)


def test_what_makes_no_sense_is_refused_and_nobody_keeps_more_than_a_thousand(buckets: Buckets) -> None:
    with pytest.raises(InvalidError):
        buckets.add_key("ann", new_key_id(), replace(ASKED, url="elsewhere"), NOW)
    with pytest.raises(NotFoundError, match="no user 'eve'"):
        buckets.add_key("eve", new_key_id(), ASKED, NOW)
    for _ in range(1000):
        added(buckets)
    with pytest.raises(ConflictError, match="1000 storage keys"):
        added(buckets)
    added(buckets, "bob")


def test_a_job_is_added_with_its_errand_and_only_while_its_key_is_there(buckets: Buckets, jobs: Jobs) -> None:
    key = added(buckets)
    with pytest.raises(NotFoundError):
        submitted(jobs, key, user="bob")
    with pytest.raises(NotFoundError):
        submitted(jobs, "key-of-nobody")
    assert jobs.live() == []
    job = submitted(jobs, key)
    jobs.add(a_job(), group="g")
    errand = Errand(
        job=job.id, user="ann", url=URL, storage_key=key, stage=Stage.FETCHING, why="", over=False, waiting=True
    )
    assert buckets.outstanding() == [errand]


def test_an_errand_is_over_when_its_job_is_final_and_cleaned_and_done_when_sent(buckets: Buckets, jobs: Jobs) -> None:
    job = ended(jobs, submitted(jobs, added(buckets)), cleaned=False)
    buckets.reach(job.id, Stage.HERE)
    assert [(one.over, one.waiting) for one in buckets.outstanding()] == [(False, False)]
    jobs.cleaned([job.handle])
    assert [(one.over, one.waiting) for one in buckets.outstanding()] == [(True, False)]
    buckets.reach(job.id, Stage.SENT, "but for one")
    assert buckets.outstanding() == []
    assert buckets.stage(job.id) == (Stage.SENT, "but for one")
    assert buckets.stage(a_job().id) == (Stage.SENT, "")


def test_a_key_goes_when_its_last_job_is_done_or_after_a_day_if_none_named_it(buckets: Buckets, jobs: Jobs) -> None:
    named, unnamed, shared = added(buckets), added(buckets), added(buckets)
    job = submitted(jobs, named)
    pair = [submitted(jobs, shared) for _ in range(2)]
    for now in (NOW, LONG_AGO):
        assert buckets.sweep(now) == 0
    for done in (job, pair[0]):
        buckets.reach(ended(jobs, done).id, Stage.SENT)
    assert buckets.sweep(NOW) == 1
    assert [there(buckets, key) for key in (named, unnamed, shared)] == [False, True, True]
    assert buckets.sweep(LATER) == 1
    assert [there(buckets, key) for key in (unnamed, shared)] == [False, True]
    buckets.reach(ended(jobs, pair[1]).id, Stage.SENT)
    assert buckets.sweep(NOW) == 1


def test_a_key_goes_with_its_forgotten_job_unless_another_one_named_it(
    buckets: Buckets, jobs: Jobs, database: Database
) -> None:
    own, shared = added(buckets), added(buckets)
    gone = [ended(jobs, submitted(jobs, key)) for key in (own, shared)]
    stays = submitted(jobs, shared)
    assert Forgetting(database).forget([job.id for job in [*gone, stays]]) == 2
    assert [there(buckets, key) for key in (own, shared)] == [False, True]
    assert [one.job for one in buckets.outstanding()] == [stays.id]
