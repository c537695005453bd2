"""A real server with tasks that end when a test says so, and the command typed by its users."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.cli.command import Command
from tests.unit.server.running import Running, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("server") / "data") as made:
        yield made


@pytest.fixture
def command(server: Running, tmp_path: Path) -> Command:
    """Typed by Ann, who has configured the server by variables."""
    (tmp_path / "home").mkdir()
    return Command(tmp_path, {"PADDLECLOUD_SERVER": server.url, "PADDLECLOUD_TOKEN": server.ann})


@pytest.fixture
def alone(tmp_path: Path) -> Command:
    return Command(tmp_path)
