"""SQLite files that have our tables and nothing in them, copied, since migrating each anew is most of many a test.

What a new database becomes by migrations is the subject of tests/contract/test_store_migrations.py.
"""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from paddlecloud.store.db import Database


def migrated(file: Path) -> str:
    """The URL of such a file, made in this place; of the one that is there already, as it is."""
    if not file.exists():
        file.touch(mode=0o600)
        file.write_bytes(_content())
    return f"sqlite:///{file}"


@cache
def _content() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "paddlecloud.db"
        Database.open(f"sqlite:///{file}").close()
        return file.read_bytes()
