"""What tests of every kind may ask for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import postgres as engine
from tests.postgres import Postgres


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """One PostgreSQL for all tests of this process, each of which makes databases of its own."""
    with engine.running() as made:
        yield made
