"""Backups, restores and moves between databases: whole, checked, refused where something would be lost."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from itertools import pairwise
from pathlib import Path

import pytest
from sqlalchemy import text

from paddlecloud.model.audit import Action
from paddlecloud.model.errors import ConfigError, ConflictError, InvalidError, PaddleCloudError
from paddlecloud.model.state import JobState
from paddlecloud.server import upkeep
from paddlecloud.server.datadir import hold
from paddlecloud.server.settings import Settings
from paddlecloud.store.copying import Progress
from paddlecloud.store.db import Database
from paddlecloud.store.jobs import Jobs
from paddlecloud.store.registry import Registries
from paddlecloud.store.secrets import Cipher
from paddlecloud.store.users import Users
from tests.contract.conftest import KINDS
from tests.contract.filled import Contents, contents, fill, settings_of, url_of
from tests.contract.older import AK, JOB, SK, older
from tests.contract.records import NOW, a_move, added
from tests.postgres import Postgres

Make = Callable[..., Settings]


def quiet(_done: int, _total: int) -> None:
    """Progress that nobody looks at."""


def interrupt(_done: int, _total: int) -> None:
    raise KeyboardInterrupt


@pytest.fixture
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Settings of a new server whose records are in a database of this kind."""
    with ExitStack() as stack:

        def made(kind: str, name: str = "data") -> Settings:
            if kind == "sqlite":
                return settings_of(tmp_path / name)
            postgres: Postgres = request.getfixturevalue("postgres")
            return settings_of(tmp_path / name, stack.enter_context(postgres.database()))

        yield made


@pytest.fixture(params=KINDS)
def settings(request: pytest.FixtureRequest, make: Make) -> Settings:
    return make(request.param)


def backup(settings: Settings, target: Path | None = None, progress: Progress = quiet) -> Path:
    return Path(upkeep.backup(settings, target, now=NOW, progress=progress).file)


def restore(settings: Settings, file: Path, *, force: bool = False, progress: Progress = quiet) -> upkeep.Restored:
    return upkeep.restore(settings, file, force=force, now=NOW, progress=progress)


def move(settings: Settings, to: str, *, force: bool = False) -> upkeep.Copied:
    return upkeep.copy_to(settings, to, force=force, now=NOW, progress=quiet)


def restores(settings: Settings) -> list[tuple[object, ...]]:
    """What the audit record says of restores."""
    return [row for row in contents(url_of(settings))["audit"] if Action.DB_RESTORE in row]


def but_restores(settings: Settings) -> Contents:
    """Everything recorded but for that, and for the number it has."""
    found = contents(url_of(settings))
    del found["last of audit"]
    return {**found, "audit": [row for row in found["audit"] if Action.DB_RESTORE not in row]}


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("source", KINDS)
@pytest.mark.parametrize("target", KINDS)
def test_a_backup_of_either_kind_restores_every_record_and_the_key_to_either_kind(
    make: Make, source: str, target: str, tmp_path: Path
) -> None:
    ours, theirs = make(source), make(target, "other")
    ak, sk = fill(ours)
    before = contents(url_of(ours))
    file = backup(ours, tmp_path / "it.backup")
    assert file.stat().st_mode & 0o777 == 0o600
    assert (file.parent, left_in(tmp_path)) == (tmp_path, ["data", "it.backup"])
    restored = restore(theirs, file)
    assert contents(url_of(ours)) == before
    assert but_restores(theirs) == but_restores(ours)
    assert [row[5:] for row in restores(theirs)] == [(str(file), "", f"of {NOW:%F %T} UTC")]
    assert restored.rows == {name: len(rows) for name, rows in sorted(before.items()) if not name.startswith("last")}
    assert restored.saved is None
    with closing(upkeep.open_records(theirs, lambda: NOW)) as database:
        users = Users(database, Cipher(theirs.server.data / "key"))
        assert users.key_secret(ak) == (users.get("ann"), sk)
        registries = Registries(database, Cipher(theirs.server.data / "key"))
        assert registries.get("ann", "lab").password == "a password"
    assert [name for name in left_in(theirs.server.data) if name.startswith(".")] == []


def test_records_moved_to_postgresql_and_back_are_the_same_to_the_last_number(make: Make) -> None:
    home = make("sqlite")
    away = settings_of(home.server.data, make("postgres").server.database)
    fill(home)
    before, file = contents(url_of(home)), home.server.data / "paddlecloud.db"
    copied = move(home, url_of(away))
    assert (copied.setting, copied.saved) == (url_of(away), None)
    assert contents(url_of(away)) == before
    dumped = _dump(file)
    file.unlink()
    copied = move(away, "sqlite")
    assert (copied.setting, copied.saved) == ("", None)
    assert _dump(file) == dumped


def test_numbers_go_on_where_they_were_although_the_last_rows_are_gone(make: Make) -> None:
    home = make("sqlite")
    away = settings_of(home.server.data, make("postgres").server.database)
    fill(home)
    move(home, url_of(away))
    with closing(upkeep.open_records(away, lambda: NOW)) as database:
        jobs = Jobs(database)
        last = jobs.last_event()
        added(jobs)
        assert jobs.last_event() == last + 1
        with database.write() as connection:
            insert = """INSERT INTO audit (at, "user", address, action, target, request_id, detail)
                        VALUES (now(), '', '', '', '', '', '') RETURNING seq"""
            assert connection.execute(text(insert)).scalar() == 4


def test_backups_that_are_made_while_jobs_move_are_each_whole(settings: Settings, make: Make, tmp_path: Path) -> None:
    fill(settings)
    done = threading.Event()
    files: list[Path] = []
    with closing(upkeep.open_records(settings, lambda: NOW)) as database:

        def work() -> None:
            jobs = Jobs(database)
            while not done.is_set():
                job = added(jobs)
                for state in (JobState.SCHEDULE, JobState.RUNNING, JobState.SUCCESS):
                    job = jobs.move(job, a_move(state))

        worker = threading.Thread(target=work)
        worker.start()
        files.extend(backup(settings, tmp_path / f"{number}.backup") for number in range(5))
        done.set()
        worker.join()
    counts = []
    for number, file in enumerate(files):
        again = make("sqlite", f"again-{number}")
        restore(again, file)
        with closing(upkeep.open_records(again, lambda: NOW)) as database:
            counts.append(_check_histories(Jobs(database)))
    assert counts == sorted(counts)
    assert counts[-1] > counts[0]


def test_a_backup_without_a_name_is_named_by_time_and_revision_and_takes_the_place_of_none(settings: Settings) -> None:
    fill(settings)
    made = [backup(settings), backup(settings), backup(settings, settings.server.data)]
    folder = settings.server.data / "backups"
    revision = upkeep.look(settings).revision
    assert made == [
        folder / f"paddlecloud-20261115T120000Z-{revision}.backup",
        folder / f"paddlecloud-20261115T120000Z-{revision}-2.backup",
        settings.server.data / f"paddlecloud-20261115T120000Z-{revision}.backup",
    ]
    assert folder.stat().st_mode & 0o777 == 0o700
    with pytest.raises(ConflictError, match="exists already"):
        backup(settings, made[0])


def test_a_backup_into_a_folder_that_is_not_there_is_refused(settings: Settings, tmp_path: Path) -> None:
    fill(settings)
    with pytest.raises(ConfigError, match=r"missing/it.backup cannot be written \(No such file or directory\)"):
        backup(settings, tmp_path / "missing" / "it.backup")


def test_there_is_no_backup_of_nothing(settings: Settings) -> None:
    with pytest.raises(ConfigError, match="there are no records in"):
        backup(settings)
    assert not (settings.server.data / "backups").exists()


def test_a_backup_that_is_broken_off_leaves_nothing(settings: Settings, tmp_path: Path) -> None:
    fill(settings)
    with pytest.raises(KeyboardInterrupt):
        backup(settings, tmp_path / "it.backup", progress=interrupt)
    assert left_in(tmp_path) == ["data"]


def test_a_restore_that_is_broken_off_changes_nothing(settings: Settings, make: Make, tmp_path: Path) -> None:
    fill(settings)
    file = backup(settings, tmp_path / "it.backup")
    other = make("sqlite", "other")
    fill(other)
    before, key = contents(url_of(other)), (other.server.data / "key").read_text()
    with pytest.raises(KeyboardInterrupt):
        restore(other, file, force=True, progress=interrupt)
    assert contents(url_of(other)) == before
    assert (other.server.data / "key").read_text() == key
    assert [name for name in left_in(other.server.data) if name.startswith(".")] == []


@pytest.mark.parametrize("key", ["nonsense", "", "0" * 63, "0" * 66, "é" * 64])
def test_a_backup_whose_key_is_none_is_refused_and_changes_nothing(make: Make, tmp_path: Path, key: str) -> None:
    settings = make("sqlite")
    fill(settings)
    file = backup(settings, tmp_path / "it.backup")
    with closing(sqlite3.connect(file)) as opened:
        opened.execute("UPDATE paddlecloud_backup SET facts = json_set(facts, '$.key', ?)", [key])
        opened.commit()
    before, held = contents(url_of(settings)), (settings.server.data / "key").read_text()
    with pytest.raises(ConfigError, match=r"it\.backup is damaged \(it contains an invalid key\): use another one"):
        restore(settings, file, force=True)
    assert contents(url_of(settings)) == before
    assert (settings.server.data / "key").read_text() == held


def test_records_that_are_there_are_replaced_only_by_force_and_after_a_backup(
    settings: Settings, make: Make, tmp_path: Path
) -> None:
    fill(settings)
    file = backup(settings, tmp_path / "it.backup")
    ak, sk = _one_more_key(settings)
    before, without = contents(url_of(settings)), but_restores(settings)
    with pytest.raises(ConflictError, match=r"has records already \(jobs: 10, users: 2\): --force"):
        restore(settings, file)
    assert contents(url_of(settings)) == before
    saved = restore(settings, file, force=True).saved
    assert but_restores(settings) != without
    assert saved is not None
    restore(settings, Path(saved), force=True)
    assert but_restores(settings) == without
    with closing(upkeep.open_records(settings, lambda: NOW)) as database:
        assert Users(database, Cipher(settings.server.data / "key")).key_secret(ak)[1] == sk


def test_nothing_is_restored_or_migrated_under_a_running_server(settings: Settings, tmp_path: Path) -> None:
    fill(settings)
    file = backup(settings, tmp_path / "it.backup")
    with hold(settings.server.data):
        for act in (
            lambda: restore(settings, file, force=True),
            lambda: upkeep.migrate(settings, now=NOW),
            lambda: move(settings, "sqlite", force=True),
        ):
            with pytest.raises(ConfigError, match=r"a server \(pid \d+\) uses the data folder"):
                act()
        backup(settings)


def test_a_file_that_is_no_whole_backup_is_refused(make: Make, tmp_path: Path) -> None:
    settings = make("sqlite")
    fill(settings)
    good = backup(settings, tmp_path / "it.backup")
    before = contents(url_of(settings))
    half, garbled, lines, newer = (tmp_path / name for name in ("half", "garbled", "lines", "newer"))
    half.write_bytes(good.read_bytes()[: good.stat().st_size // 2])
    garbled.write_bytes(good.read_bytes()[:8192] + b"\xa5" * (good.stat().st_size - 8192))
    lines.write_text("to whom it may concern\n" * 400)
    shutil.copy(good, newer)
    with closing(sqlite3.connect(newer)) as connection:
        statement = "UPDATE paddlecloud_backup SET facts = json_set(facts, '$.revision', '9999')"
        connection.execute(statement)
        connection.commit()
    for file, said in (
        (half, "is not a backup, or is damaged"),
        (garbled, "damaged"),
        (lines, "is not a backup, or is damaged"),
        (settings.server.data / "paddlecloud.db", "is not a backup"),
        (newer, r"was written by a newer PaddleCloud \(revision 9999\)"),
        (tmp_path / "missing", "there is no backup"),
        (tmp_path, "there is no backup"),
    ):
        with pytest.raises(PaddleCloudError, match=said):
            restore(settings, file, force=True)
    assert contents(url_of(settings)) == before


def test_a_file_that_is_corrupt_is_set_aside_by_force_with_its_key(make: Make, tmp_path: Path) -> None:
    settings = make("sqlite")
    fill(settings)
    before, file = but_restores(settings), backup(settings, tmp_path / "it.backup")
    database = settings.server.data / "paddlecloud.db"
    garbage = b"\xa5" * database.stat().st_size
    database.write_bytes(garbage)
    with pytest.raises(ConfigError, match="is corrupt.*restore a backup with paddlecloud db restore --force"):
        restore(settings, file)
    saved = restore(settings, file, force=True).saved
    assert but_restores(settings) == before
    assert saved is not None
    assert Path(saved).read_bytes() == garbage
    assert Path(saved).with_suffix(".key").read_text() == (settings.server.data / "key").read_text()


@pytest.mark.parametrize("revision", ["0001", "0003"])
def test_a_server_that_starts_on_older_records_backs_them_up_first(
    settings: Settings, make: Make, revision: str
) -> None:
    data = settings.server.data
    data.mkdir()
    older(url_of(settings), revision, data / "key")
    upkeep.open_records(settings, lambda: NOW).close()
    (saved,) = left_in(data / "backups")
    assert saved == f"paddlecloud-20261115T120000Z-{revision}.backup"
    upkeep.open_records(settings, lambda: NOW).close()
    assert left_in(data / "backups") == [saved]
    again = make("postgres", "again")
    restore(again, data / "backups" / saved)
    with closing(upkeep.open_records(again, lambda: NOW)) as database:
        assert Jobs(database).live() == [JOB]
        assert Users(database, Cipher(again.server.data / "key")).key_secret(AK)[1] == SK


def test_migrating_by_hand_does_what_a_start_would(settings: Settings) -> None:
    settings.server.data.mkdir(mode=0o700)
    older(url_of(settings), "0002", settings.server.data / "key")
    assert upkeep.look(settings).revision == "0002"
    done = upkeep.migrate(settings, now=NOW)
    assert (done.before, done.after) == ("0002", upkeep.look(settings).newest)
    assert done.saved is not None
    again = upkeep.migrate(settings, now=NOW)
    assert (again.before, again.after, again.saved) == (done.after, done.after, None)


def test_records_are_moved_only_to_a_database_that_is_another_and_empty(make: Make) -> None:
    home = make("sqlite")
    away = settings_of(home.server.data, make("postgres").server.database)
    fill(home)
    for to, kind, said in (
        ("sqlite", ConflictError, "are in .*paddlecloud.db already"),
        ("mysql://pc:s3cret@host/x", InvalidError, "write postgresql://"),
        ("postgresql://pc:s3cret@host/x", InvalidError, "everybody on this machine can read a password"),
    ):
        with pytest.raises(kind, match=said) as refused:
            move(home, to)
        assert "s3cret" not in refused.value.message
    move(home, url_of(away))
    before = contents(url_of(away))
    with pytest.raises(ConflictError, match="has records already"):
        move(home, url_of(away))
    saved = move(home, url_of(away), force=True).saved
    assert saved is not None
    assert contents(url_of(away)) == before


def test_attempts_that_the_restored_records_do_not_know_are_told(make: Make, tmp_path: Path) -> None:
    settings = make("sqlite")
    fill(settings)
    file = backup(settings, tmp_path / "it.backup")
    with closing(Database.open(url_of(settings))) as database:
        known = Jobs(database).held()[0].handle
    tasks = settings.server.data / "tasks" / "local"
    for handle in (known, f"job-{'0' * 32}-1"):
        (tasks / handle).mkdir(parents=True)
    assert restore(settings, file, force=True).unknown == (str(tasks / f"job-{'0' * 32}-1"),)


def _one_more_key(settings: Settings) -> tuple[str, str]:
    with closing(upkeep.open_records(settings, lambda: NOW)) as database:
        key, sk = Users(database, Cipher(settings.server.data / "key")).add_key("ann", NOW)
    return key.ak, sk


def _check_histories(jobs: Jobs) -> int:
    """How many jobs there are, each with its whole history."""
    found = jobs.list(limit=1000).items
    for job in found:
        told = jobs.history(job.id)
        assert (len(told) - 1, told[-1].to_state) == (job.version, job.state)
        assert all(later.from_state is earlier.to_state for earlier, later in pairwise(told))
    return len(found)


def _dump(file: Path) -> list[str]:
    """Every table to the byte, as SQLite itself writes it down, in an order of its own."""
    with closing(sqlite3.connect(file)) as connection:
        return sorted(connection.iterdump())
