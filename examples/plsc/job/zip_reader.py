"""Pictures out of zip files, as label.txt names them: a trainer's share, decoded once, and batches of it in any order.

A line of label.txt is `name label`, the name being that within the zip. Zips in a folder test_data are to test with;
where there is none, the last picture of each class is, of classes that have another.
"""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from PIL import Image

SIDE = 32
TESTED = 1024
_TEST_FOLDER = "test_data"


class Named(NamedTuple):
    zip: str
    name: str
    label: int


class Pictures(NamedTuple):
    pixels: np.ndarray  # bytes: number, channel, row, column
    labels: np.ndarray

    def batches(self, size: int, dice: np.random.Generator, shift: int = 2) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """All of them once, in a new order, but those too few for a batch; each moved by up to `shift` points."""
        order = dice.permutation(len(self.labels))
        for first in range(0, len(order) - size + 1, size):
            chosen = order[first : first + size]
            yield scaled(_moved(self.pixels[chosen], shift, dice)), self.labels[chosen]


class Listed(NamedTuple):
    """What label.txt names, and the zips have."""

    train: list[Named]
    test: list[Named]

    @property
    def classes(self) -> int:
        return 1 + max(one.label for one in self.train)


def listed(folder: str) -> Listed:
    labels = _labels(os.path.join(folder, "label.txt"))
    found: dict[bool, list[Named]] = {False: [], True: []}
    for path in _zips(folder):
        is_test = os.path.basename(os.path.dirname(path)) == _TEST_FOLDER
        with zipfile.ZipFile(path) as opened:
            found[is_test] += [Named(path, name, labels[name]) for name in opened.namelist() if name in labels]
    train, test = found[False], found[True]
    if not train:
        raise SystemExit(f"{folder}: none of the pictures that label.txt names is in a zip file there")
    return Listed(train, test) if test else _last_apart(train)


def evenly(named: list[Named], count: int) -> list[Named]:
    """So many of them, from the first to the last."""
    if len(named) <= count:
        return named
    return [named[number * len(named) // count] for number in range(count)]


def read(named: list[Named], rank: int = 0, trainers: int = 1) -> Pictures:
    """This trainer's share; all shares have as many, so that none waits for another."""
    share = named[rank::trainers][: len(named) // trainers]
    pixels = np.empty((len(share), 3, SIDE, SIDE), dtype=np.uint8)
    opened: dict[str, zipfile.ZipFile] = {}
    for number, one in enumerate(share):
        if one.zip not in opened:
            opened[one.zip] = zipfile.ZipFile(one.zip)
        pixels[number] = _decoded(opened[one.zip].read(one.name), one)
    for file in opened.values():
        file.close()
    return Pictures(pixels, np.array([one.label for one in share], dtype=np.int64))


def scaled(pixels: np.ndarray) -> np.ndarray:
    """From -1 to 1, as the network takes them."""
    return (pixels.astype(np.float32) - 127.5) / 127.5


def _decoded(content: bytes, one: Named) -> np.ndarray:
    try:
        picture = Image.open(io.BytesIO(content)).convert("RGB")
    except OSError as error:
        raise SystemExit(f"{one.zip}: {one.name} is not a picture: {error}") from None
    if picture.size != (SIDE, SIDE):
        picture = picture.resize((SIDE, SIDE), Image.BILINEAR)
    return np.asarray(picture).transpose(2, 0, 1)


def _moved(pixels: np.ndarray, shift: int, dice: np.random.Generator) -> np.ndarray:
    if not shift:
        return pixels
    padded = np.pad(pixels, ((0, 0), (0, 0), (shift, shift), (shift, shift)), mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (SIDE, SIDE), axis=(2, 3))
    down, right = dice.integers(0, 2 * shift + 1, (2, len(pixels)))
    return windows[np.arange(len(pixels)), :, down, right]


def _labels(path: str) -> dict[str, int]:
    labels = {}
    with open(path) as file:
        for number, line in enumerate(file, 1):
            name, _, label = line.strip().rpartition(" ")
            if name and label.isdigit():
                labels[name] = int(label)
            elif line.strip():
                raise SystemExit(
                    f"{path}, line {number}: {line.strip()!r} is not a name and, after a space, a class from 0 on"
                )
    return labels


def _zips(folder: str) -> list[str]:
    return sorted(
        os.path.join(where, name)
        for where, _, names in os.walk(folder, followlinks=True)
        for name in names
        if name.endswith(".zip")
    )


def _last_apart(named: list[Named]) -> Listed:
    last = {one.label: one for one in named}
    first = {one.label: one for one in reversed(named)}
    test = [one for label, one in last.items() if one != first[label]]
    apart = set(test)
    return Listed([one for one in named if one not in apart], test)
