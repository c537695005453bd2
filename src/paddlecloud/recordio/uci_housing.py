"""Reads the Boston house prices, the first example of every tutorial, from a local file; nothing is downloaded.

The file is `housing.data` of the UCI repository: 506 rows of 13 features and a price, separated by blanks. As in the
original, a feature is scaled to (x - mean) / (max - min), the first 80 % are for training, and an item is
(features, [price]); both are lists here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

HOUSING = "/pfs/public/dataset/uci_housing/housing.data"
COLUMNS = 14
TRAIN_SHARE = 0.8

Item = tuple[list[float], list[float]]
ItemReader = Callable[[], Iterator[Item]]


def train(path: str | os.PathLike[str] = HOUSING) -> ItemReader:
    return partial(_items, path, is_train=True)


def test(path: str | os.PathLike[str] = HOUSING) -> ItemReader:  # noqa: PT028 - the original's name
    return partial(_items, path, is_train=False)


def _items(path: str | os.PathLike[str], *, is_train: bool) -> Iterator[Item]:
    rows = _scaled(_rows(path))
    cut = int(len(rows) * TRAIN_SHARE)
    for row in rows[:cut] if is_train else rows[cut:]:
        yield row[:-1], row[-1:]


def _rows(path: str | os.PathLike[str]) -> list[list[float]]:
    try:
        numbers = [float(word) for word in Path(path).read_text("utf-8").split()]
    except ValueError as error:
        raise ValueError(
            f"{os.fspath(path)} is not housing.data, which has numbers separated by blanks: {error}"
        ) from None
    if not numbers or len(numbers) % COLUMNS:
        raise ValueError(
            f"{os.fspath(path)} is not housing.data: its {len(numbers)} numbers do not form rows of {COLUMNS}"
        )
    return [numbers[at : at + COLUMNS] for at in range(0, len(numbers), COLUMNS)]


def _scaled(rows: list[list[float]]) -> list[list[float]]:
    columns = [_scale(column) for column in list(zip(*rows, strict=True))[:-1]]
    return [[*features, row[-1]] for row, features in zip(rows, zip(*columns, strict=True), strict=True)]


def _scale(column: tuple[float, ...]) -> list[float]:
    mean = sum(column) / len(column)
    span = max(column) - min(column) or 1.0  # a constant column becomes all zeros
    return [(value - mean) / span for value in column]
