"""Opening a database: made, migrated, or refused with nothing changed; and what was committed stays, whatever dies."""

from __future__ import annotations

import fcntl
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import text

from paddlecloud.model.errors import ConfigError, FullError, InternalError
from paddlecloud.model.state import JobState
from paddlecloud.store import migrations, schema
from paddlecloud.store.db import Database
from paddlecloud.store.jobs import Jobs
from tests.contract.records import a_job, a_move, added, brought_to
from tests.waiting import wait_until

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


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A closed database with some records."""
    made = tmp_path / "paddlecloud.db"
    database = Database.open(f"sqlite:///{made}")
    for _ in range(200):
        added(Jobs(database))
    database.close()
    return made


def refusal(file: Path) -> str:
    """The sentence that opening this file is refused with, when nothing of it was changed."""
    before = file.read_bytes() if file.is_file() else None
    with pytest.raises(ConfigError) as refused:
        Database.open(f"sqlite:///{file}")
    assert (file.read_bytes() if file.is_file() else None) == before
    assert str(file) in refused.value.message
    return refused.value.message


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


def test_a_database_of_a_newer_program_is_refused(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()
    said = refusal(file)
    assert "was written by a newer PaddleCloud (revision 9999)" in said
    assert "upgrade this program, or restore a backup" in said


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("to whom it may concern\n" * 400)
    assert "is corrupt" in refusal(tmp_path / "x.db")


def test_a_database_that_was_cut_short_is_refused(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)
    said = refusal(file)
    assert "is corrupt" in said
    assert "restore a backup" in said


def test_a_database_with_a_page_of_garbage_is_refused(file: Path) -> None:
    content = bytearray(file.read_bytes())
    middle = len(content) // 2 // 4096 * 4096
    content[middle : middle + 4096] = b"\xa5" * 4096
    file.write_bytes(content)
    assert "is corrupt" in refusal(file)


def test_the_database_of_another_program_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        connection.execute("CREATE TABLE songs (title TEXT)")
    assert "belongs to another program" in refusal(tmp_path / "other.db")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    assert "is a folder" in refusal(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_database_in_a_folder_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    assert "No such file or directory; create it" in refusal(tmp_path / "missing" / "x.db")
    assert not (tmp_path / "missing").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_database_that_may_not_be_written_is_refused(file: Path) -> None:
    file.chmod(0o400)
    assert "let the user of this process read and write it" in refusal(file)


@pytest.mark.parametrize("url", ["", "x.db", "mysql://host/x", "sqlite://", "sqlite:///", "sqlite:///:memory:"])
def test_a_url_that_names_no_file_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="sqlite:////path"):
        Database.open(url)


@pytest.mark.parametrize("name", ["a b.db", "50%20.db", "what?mode=memory.db", "a#b.db", "数据.db"])
def test_a_path_may_have_any_character(tmp_path: Path, name: str) -> None:
    for _ in range(2):
        opened = Database.open(f"sqlite:///{tmp_path / name}")
        added(Jobs(opened))
        opened.close()
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_nobody_else_may_read_the_database(database: Database, tmp_path: Path) -> None:
    added(Jobs(database))
    modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    assert modes == dict.fromkeys(["paddlecloud.db", "paddlecloud.db-shm", "paddlecloud.db-wal"], 0o600)


def test_processes_that_open_a_new_database_at_once_migrate_it_once(database_url: str) -> None:
    openers = [process(OPENER, database_url) for _ in range(4)]
    for opener in openers:
        assert opener.stdout is not None
        assert opener.stdout.readline() == "ready\n"
    for opener in openers:
        opener.communicate("go\n", timeout=60)
    assert [opener.returncode for opener in openers] == [0, 0, 0, 0]
    opened = Database.open(database_url)
    with opened.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM alembic_version")).scalar() == 1
    opened.close()


def test_who_opens_a_database_waits_for_whoever_migrates_one_there(tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)

    def somebody_waits() -> bool:
        waiting = [line.split() for line in Path("/proc/locks").read_text().splitlines() if "->" in line]
        return any(f":{tmp_path.stat().st_ino}" in field for line in waiting for field in line)

    with ThreadPoolExecutor(1) as pool:
        opening = pool.submit(Database.open, f"sqlite:///{tmp_path / 'x.db'}")
        wait_until(lambda: somebody_waits() or opening.done(), "the lock is asked for")
        assert not (tmp_path / "x.db").exists()
        os.close(folder)
        opening.result(timeout=30).close()


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
        rest, _ = writer.communicate(timeout=60)
        for line in rest.splitlines():
            note(line)
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


def test_a_commit_is_on_the_disk_when_it_returns(database: Database) -> None:
    """A power cut cannot be made here; that every commit syncs the log is what SQLite promises to survive one by."""
    with database.write() as connection:
        settings = [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous")]
    assert settings == ["wal", 2]


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


def test_a_full_disk_is_said_to_be_full_and_changes_nothing(database: Database) -> None:
    jobs = Jobs(database)
    job = added(jobs)
    with database.read() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(FullError, match="no space left for the database .*nothing was changed"):
        jobs.add(a_job(env={"BIG": "x" * 100_000}), group="group")
    assert jobs.live() == [job]
    assert jobs.last_event() == 1


@pytest.mark.parametrize("intact", [0, 4096], ids=["wholly", "but for its head"])
def test_a_database_that_breaks_while_it_is_used_is_said_to_be_broken(
    database: Database, tmp_path: Path, intact: int
) -> None:
    jobs = Jobs(database)
    for _ in range(50):
        added(jobs)
    database.close()
    content = bytearray((tmp_path / "paddlecloud.db").read_bytes())
    content[intact:] = b"\xa5" * (len(content) - intact)
    (tmp_path / "paddlecloud.db").write_bytes(content)
    with pytest.raises(InternalError, match=r"paddlecloud\.db"):
        jobs.live()
