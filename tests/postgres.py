"""A real PostgreSQL for tests: Debian's programs, a folder of its own, loopback and a socket file only.

It never syncs to the disk, since what is tested is our use of it; whatever kills the tests also ends it.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg

from paddlecloud.store.db import Database
from paddlecloud.store.migrations import HEAD, VERSION_TABLE
from tests.absent import absent
from tests.ports import free_port
from tests.waiting import wait_until

PROGRAMS = Path("/usr/lib/postgresql")
ACCOUNTS = ("postgres", "nobody")
MIGRATED = "migrated"
EMPTIED = "emptied"
QUICK = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "shared_buffers": "32MB"}

_CUT_SESSIONS = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{EMPTIED}'"
_EMPTY = f"""
SET session_replication_role = replica;
DO $$ DECLARE found record; BEGIN
  FOR found IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> '{VERSION_TABLE}' LOOP
    EXECUTE format('DELETE FROM %I', found.tablename);
  END LOOP;
  FOR found IN SELECT sequencename FROM pg_sequences WHERE schemaname = 'public' LOOP
    EXECUTE format('ALTER SEQUENCE %I RESTART', found.sequencename);
  END LOOP;
  UPDATE {VERSION_TABLE} SET version_num = '{HEAD}';
END $$
"""


class Postgres:
    """One PostgreSQL, with any number of databases."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self._programs = programs
        self._process: subprocess.Popen[bytes] | None = None
        self._command(f"{programs}/initdb -D {folder}/data -U pc -A trust -N --no-locale -E UTF8".split())

    def start(self) -> None:
        settings = {
            "port": str(self.port),
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": str(self.folder),
            **QUICK,
        }
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                _unprivileged([f"{self._programs}/postgres", "-D", f"{self.folder}/data", *options]),
                stdout=log,
                stderr=log,
                cwd=self.folder,
            )
        wait_until(self._answers, f"PostgreSQL answers; {self.folder}/log says why not", seconds=60)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT ends it in good order with every session cut, SIGQUIT at once, as a crash would."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(timeout=60)
            self._process = None

    def restart(self, how: signal.Signals = signal.SIGINT) -> None:
        self.stop(how)
        self.start()

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            answer = connection.execute(statement.encode())
            return answer.fetchall() if answer.description else []

    def url(self, database: str, user: str = "pc") -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    @contextmanager
    def database(self, template: str = "template0", *, options: str = "") -> Iterator[str]:
        """The URL of a new database, which is gone afterwards; of MIGRATED it has our tables already."""
        name = f"test_{secrets.token_hex(6)}"
        if template == MIGRATED and not self.execute(f"SELECT 1 FROM pg_database WHERE datname = '{MIGRATED}'"):
            self.execute(f"CREATE DATABASE {MIGRATED} TEMPLATE template0")
            Database.open(self.url(MIGRATED)).close()
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template} {options}")
        try:
            yield self.url(name)
        finally:
            if self._process is None:
                self.start()
            self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    @contextmanager
    def emptied(self) -> Iterator[str]:
        """The URL of a database that has our tables and nothing in them, one for all who ask in turn: emptying it
        takes a tenth of what making another does."""
        if not self.execute(f"SELECT 1 FROM pg_database WHERE datname = '{EMPTIED}'"):
            self.execute(f"CREATE DATABASE {EMPTIED} TEMPLATE template0")
            Database.open(self.url(EMPTIED)).close()
        try:
            yield self.url(EMPTIED)
        finally:
            if self._process is None:
                self.start()
            self.execute(_CUT_SESSIONS)
            self.execute(_EMPTY, EMPTIED)

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.folder / "log").read_text()
        try:
            return bool(self.execute("SELECT 1"))
        except psycopg.OperationalError:
            return False

    def _command(self, words: Sequence[str]) -> None:
        ran = subprocess.run(_unprivileged(words), capture_output=True, text=True, cwd=self.folder, timeout=100)
        assert ran.returncode == 0, ran.stdout + ran.stderr


@contextmanager
def running() -> Iterator[Postgres]:
    """A PostgreSQL that runs, or what tests/absent.py makes of there being none."""
    programs = next((found.parent for found in sorted(PROGRAMS.glob("*/bin/postgres"), reverse=True)), None)
    if programs is None:
        absent(f"PostgreSQL is not installed below {PROGRAMS}: make engines")
    folder = Path(tempfile.mkdtemp(prefix="pc-pg-", dir="/tmp"))  # a socket's path may have about 100 characters
    try:
        if os.geteuid() == 0:
            os.chown(folder, _account().pw_uid, _account().pw_gid)
        folder.chmod(0o755)
        made = Postgres(folder, programs)
        try:
            made.start()
            yield made
        finally:
            made.stop()
    finally:
        shutil.rmtree(folder)


def _unprivileged(words: Sequence[str]) -> list[str]:
    """The command as an account that PostgreSQL takes, which root is not, and ended when the tests are."""
    account = []
    if os.geteuid() == 0:
        account = [f"--reuid={_account().pw_uid}", f"--regid={_account().pw_gid}", "--clear-groups"]
    return ["setpriv", *account, "--pdeathsig=INT", *words]


def _account() -> pwd.struct_passwd:
    known = {account.pw_name: account for account in pwd.getpwall()}
    return next(known[name] for name in ACCOUNTS if name in known)
