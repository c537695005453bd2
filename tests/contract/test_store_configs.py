"""The contract of what jobs were written as: recorded with the job, secrets encrypted, and gone at its end."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import select, update

from paddlecloud.model.errors import ConfigError, ConflictError, NotFoundError
from paddlecloud.model.job import Job
from paddlecloud.model.state import JobState
from paddlecloud.store.configs import Configs
from paddlecloud.store.db import Database
from paddlecloud.store.jobs import Jobs
from paddlecloud.store.retention import Forgetting
from paddlecloud.store.schema import job_configs, job_secrets, job_tags
from paddlecloud.store.secrets import Cipher
from tests.contract.records import WAY_TO, a_job, a_move

SECRETS = {"password": "s3cret é", "more": {"a": [1, None]}}


@pytest.fixture
def configs(database: Database, tmp_path: Path) -> Configs:
    return Configs(database, Cipher(tmp_path / "key"))


def added(jobs: Jobs, configs: Configs, state: JobState = JobState.SUBMIT) -> Job:
    job = a_job()
    written = configs.written(job.id, protocol=2, config="secrets: x", secrets=SECRETS, warnings=("a", "b"))
    job = jobs.add(job, group="group", written=written)
    for minutes, step in enumerate(WAY_TO[state], 1):
        job = jobs.move(job, a_move(step, minutes))
    return job


def test_a_config_and_its_secrets_are_found_by_the_job(jobs: Jobs, configs: Configs, database: Database) -> None:
    job = added(jobs, configs)
    found = configs.get(job.id)
    assert (found.protocol, found.text, found.warnings) == (2, "secrets: x", ("a", "b"))
    assert configs.secrets(job.id) == SECRETS
    with database.read() as connection:
        rows = [repr(row) for table in (job_configs, job_secrets) for row in connection.execute(select(table))]
    assert "s3cret" not in "".join(rows)


def test_a_job_of_ours_has_none(jobs: Jobs, configs: Configs) -> None:
    job = jobs.add(a_job(), group="group")
    assert configs.secrets(job.id) == {}
    with pytest.raises(NotFoundError):
        configs.get(job.id)


def test_secrets_are_tied_to_their_job(jobs: Jobs, configs: Configs, database: Database) -> None:
    one, other = added(jobs, configs), added(jobs, configs)
    with database.write() as connection:
        sealed = connection.execute(select(job_secrets.c.secrets_encrypted).where(job_secrets.c.job == one.id)).scalar()
        connection.execute(update(job_secrets).where(job_secrets.c.job == other.id).values(secrets_encrypted=sealed))
    assert configs.secrets(one.id) == SECRETS
    with pytest.raises(ConfigError):
        configs.secrets(other.id)


def test_secrets_are_deleted_with_the_last_attempt_and_not_before(jobs: Jobs, configs: Configs) -> None:
    live, ended = added(jobs, configs, JobState.RUNNING), added(jobs, configs, JobState.RUNNING)
    jobs.cleaned([])
    ended = jobs.move(ended, a_move(JobState.SUCCESS, 9))
    jobs.cleaned([])
    assert configs.secrets(ended.id) == SECRETS, "its backend may still need it"
    jobs.cleaned([ended.handle])
    assert configs.secrets(ended.id) == {}
    assert configs.secrets(live.id) == SECRETS
    assert configs.get(ended.id).text == "secrets: x"


def test_secrets_of_a_job_that_was_nowhere_are_deleted_by_the_next_round_of_the_house(
    jobs: Jobs, configs: Configs, database: Database
) -> None:
    killed, waiting = added(jobs, configs, JobState.KILLED), added(jobs, configs)
    Forgetting(database).forget_secrets()
    assert configs.secrets(killed.id) == {}
    assert configs.secrets(waiting.id) == SECRETS


def test_a_forgotten_job_leaves_nothing(jobs: Jobs, configs: Configs, database: Database) -> None:
    job = added(jobs, configs, JobState.KILLED)
    configs.tag(job.id, "a tag")
    assert Forgetting(database).forget([job.id]) == 1
    with database.read() as connection:
        for table in (job_configs, job_secrets, job_tags):
            assert connection.execute(select(table)).all() == []


def test_tags_are_given_found_and_taken(jobs: Jobs, configs: Configs) -> None:
    one, other = jobs.add(a_job(), group="g"), jobs.add(a_job(), group="g")
    for tag in ("b", "a", "a"):
        configs.tag(one.id, tag)
    configs.tag(other.id, "b")
    assert configs.tags([one.id, other.id, "job-none"]) == {one.id: ("a", "b"), other.id: ("b",)}
    assert configs.tagged(["b"]) == {one.id, other.id}
    assert configs.tagged(["a", "none"]) == {one.id}
    configs.untag(one.id, "b")
    assert configs.tags([one.id]) == {one.id: ("a",)}
    with pytest.raises(NotFoundError):
        configs.untag(one.id, "b")
    with pytest.raises(NotFoundError):
        configs.tag("job-none", "a")


def test_a_job_has_no_more_tags_than_a_list_can_show(jobs: Jobs, configs: Configs) -> None:
    job = jobs.add(a_job(), group="g")
    for number in range(100):
        configs.tag(job.id, str(number))
    with pytest.raises(ConflictError, match="100 tags"):
        configs.tag(job.id, "one more")
    configs.tag(job.id, "7")
