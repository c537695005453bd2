"""One lab per story, or one server for those of a file that need nothing of their own, taken down afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flow.lab import Lab
from tests.frameworks import SETTINGS
from tests.postgres import Postgres


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    made = Lab(tmp_path)
    yield made
    made.close()


@pytest.fixture(scope="module")
def server_of_the_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    made = Lab(tmp_path_factory.mktemp("shared"))
    yield made
    made.close()


@pytest.fixture
def desk(server_of_the_file: Lab, tmp_path: Path) -> Lab:
    """An empty HOME and work folder at the server that the stories of this file share, which has no settings."""
    return server_of_the_file.beside(tmp_path)


@pytest.fixture(scope="module")
def frameworks_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A server for the stories of a file whose tasks find the frameworks installed."""
    made = Lab(tmp_path_factory.mktemp("frameworks"))
    made.configure(SETTINGS)
    made.type("up")
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
