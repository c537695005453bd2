"""What tests of every kind may ask for."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests import postgres as engine
from tests import s3
from tests.postgres import Postgres
from tests.s3 import S3Server

# What a shell starts in the background ignores Ctrl-C, and so would every command that a test starts and interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Tests that share what is made once for their file share a worker too, which else each of the workers makes."""
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker("xdist_group") is None and _shares(item):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
    return (yield)


def _shares(item: pytest.Function) -> bool:
    made = item._fixtureinfo.name2fixturedefs.values()
    return any(one.scope == "module" for found in made for one in found)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """One PostgreSQL for all tests of this process, each of which makes databases of its own."""
    with engine.running() as made:
        yield made


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """One S3 server for all tests of this process, each of which has stores of its own there; see `s3.S3_GROUP`."""
    with s3.running() as made:
        yield made
