"""Opening a database: made, migrated, or refused with nothing changed; and what was committed stays, whatever dies."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import text

from paddlecloud.model.errors import ConfigError, NotFoundError
from paddlecloud.model.state import JobState
from paddlecloud.model.user import Role
from paddlecloud.store import migrations, schema
from paddlecloud.store.db import Database, kind_of
from paddlecloud.store.jobs import Jobs
from paddlecloud.store.users import Users
from tests.contract.records import NOW, a_move, added, brought_to

ROOT = Path(__file__).parents[2]

WRITER = """
import sys
from paddlecloud.store.db import Database
from paddlecloud.store.jobs import Jobs
from paddlecloud.model.state import JobState
from tests.contract.records import a_move, added
jobs = Jobs(Database.open(sys.argv[1]))
while True:
    job = added(jobs)
    for number in range(2):
        print(job.id, job.version, job.state.value, flush=True)
        job = jobs.move(job, a_move([JobState.SCHEDULE, JobState.RUNNING][number]))
"""

OPENER = """
import sys
from paddlecloud.store.db import Database
print("ready", flush=True)
sys.stdin.readline()
Database.open(sys.argv[1]).close()
"""


def process(program: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_records_are_there_after_closing_and_opening(database_url: str) -> None:
    first = Database.open(database_url)
    job = brought_to(Jobs(first), JobState.RUNNING)
    first.close()
    again = Database.open(database_url)
    assert Jobs(again).live() == [job]
    again.close()


def test_the_tables_that_queries_use_are_those_that_migrations_make(database: Database) -> None:
    with database.read() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        assert compare_metadata(context, schema.metadata) == []


def test_the_newest_revision_is_the_one_written_out() -> None:
    assert migrations.known_revisions()[0] == migrations.HEAD


def test_a_database_of_a_newer_program_is_refused_and_left_as_it_is(database_url: str) -> None:
    opened = Database.open(database_url)
    with opened.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    opened.close()
    for _ in range(2):
        with pytest.raises(ConfigError) as refused:
            Database.open(database_url)
        assert "was written by a newer PaddleCloud (revision 9999)" in refused.value.message
        assert "upgrade this program, or restore a backup" in refused.value.message
        assert kind_of(database_url).label in refused.value.message


@pytest.mark.parametrize("tables", [["songs"], ["alembic_version", "songs"], ["alembic_version"]])
def test_the_database_of_another_program_is_refused(new_database_url: str, tables: list[str]) -> None:
    theirs = Database(kind_of(new_database_url))
    with theirs.write() as connection:
        for table in tables:
            connection.execute(text(f"CREATE TABLE {table} (version_num TEXT)"))
    theirs.close()
    with pytest.raises(ConfigError, match="belongs to another program"):
        Database.open(new_database_url)


@pytest.mark.parametrize("url", ["", "x.db", "mysql://host/x", "postgres:x", "sqlite:x"])
def test_a_url_of_no_known_kind_is_refused_with_those_that_are(url: str) -> None:
    with pytest.raises(ConfigError, match=r"write postgresql://user@host/name, or sqlite:////path"):
        Database.open(url)


def test_names_are_sorted_alike_everywhere(users: Users) -> None:
    names = ["Bob", "a_b", "aa", "ab", "a-b", "bob", "z", "é", "张"]
    for name in reversed(names):
        users.add(name, Role.USER, None, NOW)
    assert [user.name for user in users.list()] == sorted(names)


@pytest.mark.parametrize("odd", ["\0", "job-\0", "\ud800", "x" * 10_000, "' OR 1=1", "%"])
def test_nothing_is_found_by_a_name_that_no_record_can_have(jobs: Jobs, users: Users, odd: str) -> None:
    added(jobs)
    with pytest.raises(NotFoundError):
        jobs.get(odd)
    with pytest.raises(NotFoundError):
        users.get(odd)
    assert jobs.list(user=odd).items == jobs.list(name=odd).items == ()


def test_processes_that_open_a_new_database_at_once_migrate_it_once(new_database_url: str) -> None:
    openers = [process(OPENER, new_database_url) for _ in range(4)]
    for opener in openers:
        assert opener.stdout is not None
        assert opener.stdout.readline() == "ready\n"
    for opener in openers:
        opener.communicate("go\n", timeout=60)
    assert [opener.returncode for opener in openers] == [0, 0, 0, 0]
    opened = Database.open(new_database_url)
    with opened.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM alembic_version")).scalar() == 1
    opened.close()


def test_what_was_committed_survives_kill_9(database_url: str) -> None:
    committed: dict[str, tuple[int, str]] = {}

    def note(line: str) -> None:
        job, version, state = line.split()
        committed[job] = (int(version), state)

    for lines in (1, 40, 90):
        writer = process(WRITER, database_url)
        assert writer.stdout is not None
        for _ in range(lines):
            note(writer.stdout.readline())
        writer.send_signal(signal.SIGKILL)
        for line in writer.stdout:  # communicate() would pass over what has been read ahead
            note(line)
        writer.communicate(timeout=60)
    opened = Database.open(database_url)
    jobs = Jobs(opened)
    assert len(committed) > 40
    for job, (version, state) in committed.items():
        found = jobs.get(job)
        assert found.version >= version
        assert found.version > version or found.state == state
        assert [line.to_state for line in jobs.history(job)][-1] is found.state
    assert len(jobs.live()) - len(committed) in range(4)
    opened.close()


def test_a_transaction_that_fails_leaves_no_trace(database: Database) -> None:
    jobs = Jobs(database)

    def fail_half_way() -> None:
        with database.write() as connection:
            connection.execute(schema.history.delete())
            raise KeyError

    added(jobs)
    with pytest.raises(KeyError):
        fail_half_way()
    assert jobs.last_event() == 1
    added(jobs)


def test_readers_wait_for_no_writer_and_see_the_last_commit(database: Database) -> None:
    jobs = Jobs(database)
    first = added(jobs)
    with database.write() as connection, ThreadPoolExecutor(1) as reader:
        connection.execute(schema.jobs.update().values(version=7))
        assert reader.submit(jobs.get, first.id).result(timeout=10) == first
    assert jobs.get(first.id).version == 7


def test_forty_threads_and_a_scheduler_use_it_at_once(database: Database) -> None:
    jobs = Jobs(database)
    done = threading.Event()

    def schedule() -> None:
        while not done.is_set() or any(job.state is not JobState.RUNNING for job in jobs.live()):
            steps = {JobState.SUBMIT: JobState.SCHEDULE, JobState.SCHEDULE: JobState.RUNNING}
            jobs.move_all([(job, a_move(steps[job.state])) for job in jobs.live() if job.state in steps])

    def submit(_: int) -> None:
        for _ in range(5):
            job = added(jobs)
            assert jobs.get(job.id).id == job.id
            assert jobs.list(limit=5).items

    with ThreadPoolExecutor(1) as scheduler, ThreadPoolExecutor(40) as server:
        rounds = scheduler.submit(schedule)
        list(server.map(submit, range(40)))
        done.set()
        rounds.result(timeout=60)
    assert len(jobs.live()) == 200
    assert jobs.last_event() == 600
