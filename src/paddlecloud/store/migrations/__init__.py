"""Migrates the database's tables; versions/ has one file per change, oldest first, and `HEAD` is the newest.

Invariant: the operations of a released file are never changed, since databases in use have applied them. `HEAD` is a
constant so that a start with nothing to migrate need not load Alembic; a test checks it.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect, text

if TYPE_CHECKING:
    from alembic.config import Config

HEAD = "0013"
VERSION_TABLE = "alembic_version"

# PostgreSQL sorts by the operator's locale, and does not rebuild indexes when a system upgrade changes the order.
_SORT_BY_CODE_POINT = """
DO $$ DECLARE found record; BEGIN
  FOR found IN SELECT table_name, column_name FROM information_schema.columns
    WHERE table_schema = current_schema() AND data_type = 'text' AND collation_name IS DISTINCT FROM 'C' LOOP
    EXECUTE format('ALTER TABLE %I ALTER %I TYPE text COLLATE "C"', found.table_name, found.column_name);
  END LOOP;
END $$
"""
_FIRST_TABLES = frozenset({VERSION_TABLE, "users", "jobs", "history"})


def are_ours(tables: AbstractSet[str]) -> bool:
    """Whether a database with these tables is new or belongs to this program."""
    return not tables or tables >= _FIRST_TABLES


def revision(connection: Connection) -> str | None:
    """The current revision of the tables; None if there are no tables yet."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()


def known_revisions() -> list[str]:
    """Every revision that this program can migrate from, newest first."""
    from alembic.script import ScriptDirectory

    return [script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()]


def upgrade(connection: Connection, to: str = HEAD) -> None:
    """Migrate the database to a revision inside the caller's transaction."""
    from alembic import command

    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, to)
    if connection.dialect.name == "postgresql":
        connection.execute(text(_SORT_BY_CODE_POINT))


def _config() -> Config:
    from alembic.config import Config

    config = Config()
    # ConfigParser treats % as special.
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
