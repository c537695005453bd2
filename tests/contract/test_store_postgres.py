"""What is PostgreSQL's own: one process writes, a PostgreSQL that goes away and comes back, and databases refused."""

from __future__ import annotations

import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pytest
from sqlalchemy import text

from paddlecloud.model.errors import ConfigError, PaddleCloudError, UnreachableError
from paddlecloud.model.user import Role
from paddlecloud.store.db import Database, kind_of
from paddlecloud.store.jobs import Jobs
from paddlecloud.store.postgres import PostgreSQL
from paddlecloud.store.secrets import Cipher
from paddlecloud.store.users import Users
from tests.contract.records import NOW, added
from tests.postgres import MIGRATED, Postgres
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]

HOLDER = """
import sys
from paddlecloud.store.db import Database
database = Database.open(sys.argv[1])
print("open", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def url(postgres: Postgres) -> Iterator[str]:
    with postgres.database(MIGRATED) as made:
        yield made


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    opened = Database.open(url)
    yield opened
    opened.close()


def cut_sessions(postgres: Postgres, url: str) -> None:
    """End every session of a database, as a restart or its operator would."""
    name = url.rpartition("/")[2]
    postgres.execute(f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{name}'")


def hold(url: str) -> subprocess.Popen[str]:
    """Another process that has opened the database."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, url],
        env={"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "open\n"
    return holder


def test_a_second_process_is_refused_with_the_name_of_the_first(url: str) -> None:
    first = hold(url)
    with pytest.raises(ConfigError) as refused:
        Database.open(url)
    assert f"pid {first.pid}" in refused.value.message
    assert "stop that server" in refused.value.message
    first.communicate("end\n", timeout=30)
    Database.open(url).close()


def test_a_process_that_is_killed_leaves_the_database_to_the_next(url: str) -> None:
    for _ in range(3):
        first = hold(url)
        first.send_signal(signal.SIGKILL)
        Database.open(url).close()
        first.communicate(timeout=30)


def test_who_opens_a_database_waits_for_whoever_is_just_leaving_it(postgres: Postgres, url: str) -> None:
    leaving = hold(url)
    with ThreadPoolExecutor(1) as pool:
        opening = pool.submit(Database.open, url)
        waits = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        wait_until(lambda: postgres.execute(waits) or opening.done(), "the lock is asked for")
        leaving.communicate("end\n", timeout=30)
        opening.result(timeout=30).close()


def test_a_session_that_was_cut_is_made_anew_and_no_request_fails(
    postgres: Postgres, url: str, database: Database
) -> None:
    jobs = Jobs(database)
    first = added(jobs)
    cut_sessions(postgres, url)
    assert jobs.live() == [first]
    second = added(jobs)
    assert jobs.live() == [first, second]
    cut_sessions(postgres, url)
    database.confirm()


def test_while_postgresql_is_away_it_is_said_not_to_answer_and_afterwards_all_is_there(
    postgres: Postgres, url: str, database: Database
) -> None:
    jobs = Jobs(database)
    first = added(jobs)
    for how in (signal.SIGINT, signal.SIGQUIT):
        postgres.stop(how)
        for act in (jobs.live, lambda: added(jobs), database.confirm):
            with pytest.raises(UnreachableError, match="does not answer: .*refused"):
                act()
        postgres.start()
        assert first in jobs.live()
        assert added(jobs) in jobs.live()
    assert len(jobs.live()) == 3


def test_a_session_that_is_cut_within_a_write_leaves_no_trace(postgres: Postgres, url: str, database: Database) -> None:
    jobs = Jobs(database)
    first = added(jobs)

    def write() -> None:
        with database.write() as connection:
            connection.execute(text("DELETE FROM history"))
            cut_sessions(postgres, url)
            connection.execute(text("DELETE FROM jobs"))

    with pytest.raises(UnreachableError, match="does not answer"):
        write()
    assert jobs.live() == [first]
    assert len(jobs.history(first.id)) == 1


def test_who_lost_the_database_to_another_never_writes_again_and_is_told_once(postgres: Postgres, url: str) -> None:
    told: list[str] = []
    mine = Database.open(url, on_lost=told.append)
    jobs = Jobs(mine)
    added(jobs)
    cut_sessions(postgres, url)
    other = hold(url)
    for act in (lambda: added(jobs), mine.confirm, jobs.confirm):
        with pytest.raises(UnreachableError, match=f"another server .*pid {other.pid}.* has taken over"):
            act()
    other.communicate("end\n", timeout=30)
    with pytest.raises(UnreachableError, match="has taken over"):
        added(jobs)
    assert len(jobs.live()) == 1
    assert len(told) == 1
    mine.close()


def test_the_read_door_cannot_write(database: Database) -> None:
    def write() -> None:
        with database.read() as connection:
            connection.execute(text("DELETE FROM jobs"))

    with pytest.raises(UnreachableError, match="is read-only at the moment"):
        write()


def test_a_read_sees_one_moment(database: Database) -> None:
    jobs = Jobs(database)
    with database.read() as connection:
        count = text("SELECT count(*) FROM jobs")
        assert connection.execute(count).scalar() == 0
        added(jobs)
        assert connection.execute(count).scalar() == 0
    assert len(jobs.live()) == 1


def test_a_commit_is_on_the_disk_when_it_returns_whatever_postgresql_was_told(
    postgres: Postgres, database: Database
) -> None:
    assert postgres.execute("SHOW synchronous_commit") == [("off",)]
    with database.write() as connection:
        assert connection.execute(text("SHOW synchronous_commit")).scalar() == "on"
        assert connection.execute(text("SHOW transaction_isolation")).scalar() == "read committed"


def test_names_are_sorted_alike_where_postgresql_sorts_as_a_language_does(postgres: Postgres, tmp_path: Path) -> None:
    names = ["Bob", "a_b", "aa", "ab", "bob", "é"]
    english = "LOCALE_PROVIDER icu ICU_LOCALE 'en-US'"
    with postgres.database(options=english) as url:
        opened = Database.open(url)
        users = Users(opened, Cipher(tmp_path / "key"))
        for name in names:
            users.add(name, Role.USER, None, NOW)
        assert [user.name for user in users.list()] == sorted(names)
        opened.close()


def test_a_database_that_cannot_hold_every_text_is_refused(postgres: Postgres) -> None:
    with postgres.database(options="ENCODING 'LATIN1'") as url:
        with pytest.raises(ConfigError, match="encoding LATIN1.*ENCODING 'UTF8'"):
            Database.open(url)


def test_a_postgresql_that_is_too_old_is_refused(url: str) -> None:
    class Demanding(PostgreSQL):
        oldest_version = 99

    with pytest.raises(ConfigError, match=r"is on PostgreSQL \d\d: 99 or newer is needed"):
        Demanding(url, on_lost=lambda _: None).check()


def test_a_user_who_may_make_no_tables_is_refused_with_the_remedy(postgres: Postgres) -> None:
    postgres.execute("DROP ROLE IF EXISTS guest")
    postgres.execute("CREATE ROLE guest LOGIN")
    with postgres.database() as url:
        with pytest.raises(ConfigError, match="permission denied for schema public.*make that user its owner"):
            Database.open(url.replace("pc@", "guest@"))


@pytest.mark.parametrize(
    ("made_of", "said"),
    [
        ("postgresql://pc@127.0.0.1:{port}/missing", 'database "missing" does not exist'),
        ("postgresql://nobody-here@127.0.0.1:{port}/postgres", 'role "nobody-here" does not exist'),
        ("postgresql://pc@127.0.0.1:1/postgres", "Connection refused"),
        ("postgresql://pc@/postgres?host=/nowhere", "No such file or directory"),
    ],
)
def test_a_database_that_is_not_there_is_said_not_to_answer_and_why(
    postgres: Postgres, made_of: str, said: str
) -> None:
    with pytest.raises(UnreachableError, match="does not answer") as refused:
        Database.open(made_of.format(port=postgres.port))
    assert said in refused.value.message


@pytest.mark.parametrize(
    "made_of",
    [
        "postgres://pc@127.0.0.1:{port}/{name}",
        "postgresql:///{name}?host={folder}&port={port}&user=pc",
        "postgresql://pc@{escaped}:{port}/{name}",
        "postgresql://pc@localhost:{port}/{name}?sslmode=prefer&passfile=/dev/null",
    ],
)
def test_a_url_is_read_as_postgresqls_own_programs_read_it(postgres: Postgres, url: str, made_of: str) -> None:
    folder, name = str(postgres.folder), url.rpartition("/")[2]
    opened = Database.open(made_of.format(port=postgres.port, name=name, folder=folder, escaped=quote(folder, safe="")))
    added(Jobs(opened))
    opened.close()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://pc:s3cret@127.0.0.1:1/x",
        "postgresql://pc:s3cret@127.0.0.1:1/x?sslmod=require",
        "postgresql://127.0.0.1:1/x?user=pc&password=s3cret",
        "postgresql://pc:s3cret%ZZ@127.0.0.1:1/x",
        "postgresql://pc:s3cret@127.0.0.1:1",
        "postgresql://pc:s3cret@[/x",
    ],
)
def test_a_password_is_never_told(url: str) -> None:
    with pytest.raises(PaddleCloudError) as refused:
        Database.open(url)
    assert "s3cret" not in "".join(traceback.format_exception(refused.value))
    assert "s3cret" not in refused.value.message


def test_the_label_tells_where_and_who_but_no_password(postgres: Postgres) -> None:
    labels = {
        "postgresql://pc:s3cret@db.lab:5433/cloud?sslmode=require": "postgresql://pc@db.lab:5433/cloud",
        "postgres:///cloud?host=/run/pg&port=5433": "postgresql:///cloud?host=/run/pg&port=5433",
        "postgresql:///cloud": "postgresql:///cloud",
    }
    assert {url: kind_of(url).label for url in labels} == labels


def test_without_the_driver_its_command_is_told() -> None:
    program = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from paddlecloud.store.db import Database\n"
        "Database.open('postgresql://pc@127.0.0.1/x')"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": str(ROOT / "src")}, capture_output=True, text=True
    )
    assert "ConfigError: PostgreSQL databases need a driver that is not installed: pip install" in ran.stderr
    assert "'paddlecloud[postgres]'" in ran.stderr
