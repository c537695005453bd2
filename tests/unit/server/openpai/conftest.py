"""One server for the tests of a file, with a user who has a password."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.server.openpai.asking import Pai
from tests.unit.server.running import running


@pytest.fixture(scope="module")
def pai(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pai]:
    with running(tmp_path_factory.mktemp("pai") / "data") as server:
        yield Pai(server)
