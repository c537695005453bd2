"""One server of each kind for all attacks of a process of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hostile.isolation.boxes import KINDS, Account, Box, Person, account, box


@pytest.fixture(scope="session", params=KINDS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    """A shared server as shipped, on which alice is attacked by mallory."""
    with box(request.param, tmp_path_factory.mktemp("box")) as made:
        made.person("alice")
        made.person("mallory")
        yield made


@pytest.fixture
def alice(server: Box) -> Person:
    return server.person("alice")


@pytest.fixture
def mallory(server: Box) -> Person:
    return server.person("mallory")


@pytest.fixture(scope="session")
def local_attacker() -> Iterator[Account]:
    """Another account of this machine with a shell."""
    if len(KINDS) == 1:
        pytest.skip("another account of this machine can be made only by root")
    with account(ids=False) as made:
        yield made
