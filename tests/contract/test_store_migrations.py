"""Records of an older program: migrated with every row, after whoever wants to keep them as they were was asked."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from paddlecloud.model.user import ALL_CLUSTERS, Quota
from paddlecloud.store import migrations
from paddlecloud.store.db import Database, reading
from paddlecloud.store.jobs import Idempotency, Jobs
from paddlecloud.store.listing import JobListing, Page, Wanted
from paddlecloud.store.secrets import Cipher
from paddlecloud.store.users import Users
from tests.contract.older import AK, JOB, SK, older

QUOTA_OF_ANN = {"ann": {ALL_CLUSTERS: Quota(running_jobs=2)}}


@pytest.mark.parametrize("revision", migrations.known_revisions()[1:])
def test_records_of_an_older_program_are_kept_and_saved_before_they_are_migrated(
    new_database_url: str, revision: str, tmp_path: Path
) -> None:
    older(new_database_url, revision, tmp_path / "key")
    saved: list[str | None] = []

    def save(found: str) -> None:
        with reading(new_database_url) as (connection, _):
            saved.extend([found, migrations.revision(connection)])

    for _ in range(2):
        with closing(Database.open(new_database_url, before_migration=save)) as opened:
            jobs, users = Jobs(opened), Users(opened, Cipher(tmp_path / "key"))
            assert jobs.live() == [JOB]
            assert list(jobs.list().items) == [JOB]
            assert [line.why for line in jobs.history(JOB.id)] == ["submitted"]
            assert jobs.submitted("ann", Idempotency(key="k", body_hash="h")) == JOB
            assert [user.name for user in users.list()] == ["ann", "bob"]
            assert users.key_secret(AK) == (users.get("ann"), SK)
            assert users.quotas(["ann", "bob"]) == (QUOTA_OF_ANN if revision < "0003" else {})
            with opened.read() as connection:
                assert migrations.revision(connection) == migrations.HEAD
    assert saved == [revision, revision]


def test_jobs_of_an_older_program_are_listed_by_what_they_asked_for(new_database_url: str, tmp_path: Path) -> None:
    older(new_database_url, "0011", tmp_path / "key")
    with closing(Database.open(new_database_url)) as database:
        (found,) = JobListing(database).list(Wanted(), Page())
        asked = JOB.spec
        gpus = sum(role.count * role.resources.gpus for role in asked.roles if role.resources is not None)
        assert (found.pool, found.roles, found.tasks, found.gpus) == (
            asked.cluster,
            len(asked.roles),
            asked.tasks,
            gpus,
        )


def test_a_new_database_has_nothing_to_be_saved(new_database_url: str) -> None:
    def save(_: str) -> None:
        raise AssertionError("there is nothing in it")

    Database.open(new_database_url, before_migration=save).close()


def test_a_migration_that_cannot_be_saved_first_does_not_happen(new_database_url: str, tmp_path: Path) -> None:
    older(new_database_url, "0001", tmp_path / "key")

    def save(_: str) -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        Database.open(new_database_url, before_migration=save)
    with reading(new_database_url) as (connection, _):
        assert migrations.revision(connection) == "0001"
