"""What is SQLite's own: files that are refused with nothing changed, full and broken disks, and durable commits."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from paddlecloud.model.errors import ConfigError, FullError, InternalError
from paddlecloud.store.db import Database
from paddlecloud.store.jobs import Jobs
from tests.contract.records import a_job, added
from tests.migrated import migrated
from tests.waiting import wait_until


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database.open(migrated(tmp_path / "paddlecloud.db"))
    yield opened
    opened.close()


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


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("to whom it may concern\n" * 400)
    assert "is corrupt" in refusal(tmp_path / "x.db")


def test_a_database_that_was_cut_short_is_refused(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)
    said = refusal(file)
    assert "is corrupt" in said
    assert "restore a backup with paddlecloud db restore --force FILE" in said


def test_a_database_with_a_page_of_garbage_is_refused(file: Path) -> None:
    content = bytearray(file.read_bytes())
    middle = len(content) // 2 // 4096 * 4096
    content[middle : middle + 4096] = b"\xa5" * 4096
    file.write_bytes(content)
    assert "is corrupt" in refusal(file)


def test_a_folder_is_refused(tmp_path: Path) -> None:
    assert "is a folder" in refusal(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_database_in_a_folder_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    assert "No such file or directory; create it" in refusal(tmp_path / "missing" / "x.db")
    assert not (tmp_path / "missing").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_database_that_may_not_be_written_is_refused(file: Path) -> None:
    file.chmod(0o400)
    assert "give this process's user read and write permission" in refusal(file)


@pytest.mark.parametrize("url", ["sqlite:///", "sqlite:///:memory:", "sqlite:///file:x"])
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


def test_a_commit_is_on_the_disk_when_it_returns(database: Database) -> None:
    """A power cut cannot be made here; that every commit syncs the log is what SQLite promises to survive one by."""
    with database.write() as connection:
        settings = [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous")]
    assert settings == ["wal", 2]


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
