"""The changes of the database's tables, one file each in versions/, oldest first; `HEAD` is the newest.

A file that has been released is never edited: databases in use have it behind them. `HEAD` is written out so that
a start with nothing to migrate need not load Alembic; a test compares the two.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from alembic.config import Config
    from sqlalchemy import Connection

HEAD = "0003"


def known_revisions() -> list[str]:
    """Every revision this program can start from, newest first."""
    from alembic.script import ScriptDirectory

    return [script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()]


def upgrade(connection: Connection) -> None:
    """Bring the database to `HEAD` inside the caller's transaction."""
    from alembic import command

    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, HEAD)


def _config() -> Config:
    from alembic.config import Config

    config = Config()
    # The option goes through ConfigParser, which reads % as its own.
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
