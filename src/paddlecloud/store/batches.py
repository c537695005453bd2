"""Long lists in pieces that fit one IN (...) of every database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")

_LENGTH = 500


def batches(values: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(values), _LENGTH):
        yield values[start : start + _LENGTH]
