"""Splits long lists into batches that fit one IN (...) of every database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")

_BATCH_LENGTH = 500


def batches(values: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(values), _BATCH_LENGTH):
        yield values[start : start + _BATCH_LENGTH]
