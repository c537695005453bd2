"""The changes of the database's tables, one file each in versions/, oldest first; `HEAD` is the newest.

A file that has been released is never edited: databases in use have it behind them. `HEAD` is written out so that
a start with nothing to migrate need not load Alembic; a test compares the two.
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

# PostgreSQL sorts as its operator's language does, and rebuilds no index when a new system sorts otherwise.
_SORT_BY_CODE_POINT = """
DO $$ DECLARE found record; BEGIN
  FOR found IN SELECT table_name, column_name FROM information_schema.columns
    WHERE table_schema = current_schema() AND data_type = 'text' AND collation_name IS DISTINCT FROM 'C' LOOP
    EXECUTE format('ALTER TABLE %I ALTER %I TYPE text COLLATE "C"', found.table_name, found.column_name);
  END LOOP;
END $$
"""
_SINCE_THE_FIRST = frozenset({VERSION_TABLE, "users", "jobs", "history"})


def are_ours(tables: AbstractSet[str]) -> bool:
    """Whether a database with these tables is one of this program's, or a new one."""
    return not tables or tables >= _SINCE_THE_FIRST


def revision(connection: Connection) -> str | None:
    """What the tables were last migrated to; None: there are none yet."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()


def known_revisions() -> list[str]:
    """Every revision this program can start from, newest first."""
    from alembic.script import ScriptDirectory

    return [script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()]


def upgrade(connection: Connection, to: str = HEAD) -> None:
    """Bring the database to a revision inside the caller's transaction."""
    from alembic import command

    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, to)
    if connection.dialect.name == "postgresql":
        connection.execute(text(_SORT_BY_CODE_POINT))


def _config() -> Config:
    from alembic.config import Config

    config = Config()
    # The option goes through ConfigParser, which reads % as its own.
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
