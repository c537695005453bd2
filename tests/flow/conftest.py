"""One lab per story, taken down with every process it left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flow.lab import Lab


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    made = Lab(tmp_path)
    yield made
    made.close()
