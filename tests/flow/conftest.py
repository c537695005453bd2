"""One lab per story, taken down with every process it left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flow.lab import Lab
from tests.postgres import Postgres


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    made = Lab(tmp_path)
    yield made
    made.close()


@pytest.fixture(params=["sqlite", "postgres"])
def database_line(request: pytest.FixtureRequest) -> Iterator[str]:
    """The line of a config's [server] section that says where the records are; ask for it before the lab."""
    if request.param == "sqlite":
        yield ""
    else:
        postgres: Postgres = request.getfixturevalue("postgres")
        with postgres.database() as url:
            yield f'database = "{url}"'
