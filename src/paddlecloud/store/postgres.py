"""PostgreSQL databases: a single writing session, sessions that reconnect, and error translation.

Invariant: only one process writes. The writing session holds an advisory lock; losing the session loses the lock, so no
separate check can come too late. Its transactions are READ COMMITTED, since nobody else writes, and a commit is on disk
when it returns. Reads are REPEATABLE READ: each sees the records at one moment.
"""

from __future__ import annotations

import os
import re
import secrets
import select
import socket
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import psycopg
from psycopg import conninfo, errors
from sqlalchemy import Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.exc import DBAPIError, DisconnectionError
from sqlalchemy.exc import TimeoutError as NoSessionError

from paddlecloud.model.errors import ConfigError, FullError, PaddleCloudError, UnreachableError
from paddlecloud.store import migrations

READERS = 24  # by default PostgreSQL allows 100 sessions for all programs together
CLAIM_SECONDS = 5  # the session of a server killed a moment ago may still be ending

_LOCK = (0x70616464, 0x6C65636C)  # "paddlecl"
# Both sides notice a lost machine within half a minute.
_KEEPALIVES: Mapping[str, int] = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}
_ABOUT_LIBPQ = re.compile(r"^connection (failed|is bad): ")
_SET_UP = """
SELECT set_config('TimeZone', 'UTC', false),
       set_config('tcp_keepalives_idle', '10', false),
       set_config('tcp_keepalives_interval', '5', false),
       set_config('tcp_keepalives_count', '3', false),
       set_config('synchronous_commit', replace(current_setting('synchronous_commit'), 'off', 'on'), false)
"""
_HOLDER = """
SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE locktype = 'advisory' AND granted AND classid = %s AND objid = %s AND objsubid = 2
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


class PostgreSQL:
    """A database on a PostgreSQL server, given by a libpq URL."""

    name = "PostgreSQL"
    oldest_version = 13

    def __init__(self, url: str, on_lost: Callable[[str], None]) -> None:
        self._parameters = _parameters(url)
        self._on_lost = on_lost
        self._name = _own_name()
        self._claimed = False
        self._lost = ""

    @property
    def label(self) -> str:
        return _label(self._parameters)

    def alone(self) -> AbstractContextManager[None]:
        """Nothing to lock: the writing session has exclusive access from the start."""
        return nullcontext()

    def check(self) -> None:
        readers = self.readers()
        try:
            with readers.connect() as connection:
                self._check_usable(connection)
        except (DBAPIError, psycopg.Error) as error:
            raise self.meaning(error) or error from None
        finally:
            readers.dispose()

    def create(self) -> None:
        """Do nothing: PostgreSQL's operator creates the database and decides where it is stored and who may use it."""

    def exists(self) -> bool:
        return True

    def readers(self) -> Engine:
        return self._engine(_read_only, READERS)

    def writer(self, _readers: Engine) -> Engine:
        return self._engine(self._claim, 1)

    def confirm(self, writer: Engine) -> None:
        """Ping the writing session: if it ended, the ping fails, or uses a new session that holds the lock."""
        with writer.connect() as connection:
            session = connection.connection.dbapi_connection
            assert session is not None
            writer.dialect.do_ping(session)

    def size_bytes(self, connection: Connection) -> int:
        found: int = connection.execute(text("SELECT pg_database_size(current_database())")).scalar_one()
        return found

    def meaning(self, error: Exception) -> PaddleCloudError | None:
        """Translate a driver's error; None if it is a bug in our own code."""
        if isinstance(error, NoSessionError):
            return UnreachableError(
                f"the database {self.label} is too slow: all {READERS} sessions are busy; try again"
            )
        found = error.orig if isinstance(error, DBAPIError) else error
        why = _ABOUT_LIBPQ.sub("", str(found).strip().partition("\n")[0])
        if isinstance(found, errors.DiskFull):
            return FullError(f"no space left for the database {self.label}: nothing was changed; free some space there")
        if isinstance(found, errors.InsufficientPrivilege):
            return ConfigError(f"the database {self.label} denies this to its user ({why}): make that user its owner")
        if isinstance(found, errors.ReadOnlySqlTransaction):
            return UnreachableError(f"the database {self.label} is read-only at the moment: {why}")
        if isinstance(found, psycopg.OperationalError | psycopg.InterfaceError):
            return UnreachableError(f"the database {self.label} does not answer: {why}")
        return None

    def _engine(self, set_up: Callable[[psycopg.Connection[Any]], None], sessions: int) -> Engine:
        made = create_engine(
            "postgresql+psycopg://",
            connect_args={**self._parameters, "application_name": self._name},
            pool_size=sessions,
            max_overflow=0,
            pool_use_lifo=True,
            hide_parameters=True,  # logged errors must not reveal record contents
        )
        event.listen(made, "connect", lambda session, _: _set_up(session, set_up))
        event.listen(made, "checkout", lambda session, *_: _replace_ended(session))
        return made

    def _check_usable(self, connection: Connection) -> None:
        version, encoding = connection.execute(
            text("SELECT current_setting('server_version_num')::int / 10000, current_setting('server_encoding')")
        ).one()
        if version < self.oldest_version:
            raise ConfigError(
                f"the database {self.label} is on PostgreSQL {version}: {self.oldest_version} or newer is needed"
            )
        if encoding != "UTF8":
            raise ConfigError(
                f"the database {self.label} has the encoding {encoding}, which cannot store every text: "
                "create one with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"
            )
        if not migrations.are_ours(set(inspect(connection).get_table_names())):
            raise ConfigError(f"the database {self.label} belongs to another program: create one for PaddleCloud alone")

    def _claim(self, session: psycopg.Connection[Any]) -> None:
        """Make this the writing session, or raise with the name of the process that has one."""
        if self._lost:
            raise UnreachableError(self._lost)
        session.execute(f"SET lock_timeout = '{CLAIM_SECONDS}s'")
        try:
            session.execute("SELECT pg_advisory_lock(%s, %s)", _LOCK)
        except errors.LockNotAvailable:
            raise self._claim_error(session) from None
        session.execute("RESET lock_timeout")
        self._claimed = True

    def _claim_error(self, session: psycopg.Connection[Any]) -> PaddleCloudError:
        row = session.execute(_HOLDER, _LOCK).fetchone()
        holder = row[0] if row else self._name
        if holder == self._name:
            return UnreachableError(f"the database {self.label} still holds an ended session of this server: try again")
        if not self._claimed:
            return ConfigError(
                f"the database {self.label} is already in use by a server ({holder}): "
                "stop that server, or set server.database to another database"
            )
        self._lost = f"another server ({holder}) has taken over the database {self.label}: this server must stop"
        self._on_lost(self._lost)
        return UnreachableError(self._lost)


def _parameters(url: str) -> dict[str, Any]:
    try:
        given = conninfo.conninfo_to_dict(url)
    except psycopg.Error:
        raise ConfigError(
            "invalid database URL: write postgresql://user@host:port/name, with special characters in a part as %XX"
        ) from None
    if not given.get("dbname") and not given.get("service"):
        raise ConfigError("the database URL names no database: write postgresql://user@host:port/name")
    return {"connect_timeout": 5, **_KEEPALIVES, **given, "client_encoding": "UTF8"}


def _label(parameters: Mapping[str, Any]) -> str:
    host, port, name = (str(parameters.get(part) or "") for part in ("host", "port", "dbname"))
    user = f"{parameters['user']}@" if parameters.get("user") else ""
    if host.startswith("/"):
        return f"postgresql://{user}/{name}?host={host}" + (f"&port={port}" if port else "")
    return f"postgresql://{user}{host}{f':{port}' if port else ''}/{name}"


def _own_name() -> str:
    """Our sessions' name in PostgreSQL, at most 63 bytes. The random part tells apart equal host names and pids."""
    host = socket.gethostname().encode("ascii", "replace").decode()[:28]
    return f"paddlecloud on {host}, pid {os.getpid()}, {secrets.token_hex(3)}"


def _set_up(session: psycopg.Connection[Any], more: Callable[[psycopg.Connection[Any]], None]) -> None:
    try:
        session.autocommit = True
        session.execute(_SET_UP)
        more(session)
        session.autocommit = False
    except BaseException:
        session.close()
        raise


def _replace_ended(session: psycopg.Connection[Any]) -> None:
    """Make the pool replace a session that PostgreSQL has ended, so that a restart of PostgreSQL fails no request.

    An idle session receives nothing else, so readable data means it ended. A ping would cost a round trip.
    """
    waiting = select.poll()
    waiting.register(session.fileno(), select.POLLIN)
    if waiting.poll(0):
        raise DisconnectionError


def _read_only(session: psycopg.Connection[Any]) -> None:
    session.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    session.read_only = True
