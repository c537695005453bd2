"""Makes the pictures that the example trains on: faces of made-up people, always the same ones.

    python make_data.py FOLDER [--classes 10000] [--pictures 4]

Of every person all pictures but the last are in FOLDER/train_data/images.zip, the last in FOLDER/test_data/images.zip,
and FOLDER/label.txt has a line `name label` for each. A smaller set is the beginning of a larger one.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import time
import zipfile
from collections.abc import Callable, Iterator

import numpy as np
from PIL import Image

SIDE = 32
PICTURES = 4
_SEED = 20200517
_TOGETHER = 250  # people who are drawn at once
_QUALITY = 90
_EPOCH = (1980, 1, 1, 0, 0, 0)
_TOLD_SECONDS = 5.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="where they go, such as data")
    parser.add_argument("--classes", type=int, default=10000, help="how many people (10000)")
    parser.add_argument(
        "--pictures", type=int, default=PICTURES, help=f"of each (one of them to test with; {PICTURES})"
    )
    given = parser.parse_args()
    make(given.folder, given.classes, given.pictures, _Lines(given.classes * given.pictures).advance)


def make(folder: str, classes: int, pictures: int = PICTURES, advance: Callable[[int], object] = bool) -> None:
    """Make them; `advance` is told how many more are done. label.txt comes last: with it all is there."""
    if classes < 1 or pictures < 2:
        raise SystemExit(f"{classes} people with {pictures} pictures each: there must be 1 with 2 at least")
    for name in ("train_data", "test_data"):
        os.makedirs(os.path.join(folder, name), exist_ok=True)
    lines = []
    with _zip(folder, "train_data") as train, _zip(folder, "test_data") as test:
        for first, faces in _people(classes, pictures):
            for number, face in enumerate(faces, first * pictures):
                label, picture = divmod(number, pictures)
                name = f"{label:05}/{picture}.jpg"
                target = test if picture == pictures - 1 else train
                target.writestr(zipfile.ZipInfo(name, _EPOCH), _jpeg(face))
                lines.append(f"{name} {label}\n")
            advance(len(faces))
    with open(os.path.join(folder, "label.txt.part"), "w") as file:
        file.writelines(lines)
    os.replace(os.path.join(folder, "label.txt.part"), os.path.join(folder, "label.txt"))


class _Lines:
    """A line now and then on how far it is."""

    def __init__(self, total: int) -> None:
        self._total, self._done, self._told = total, 0, time.monotonic()

    def advance(self, pictures: int) -> None:
        self._done += pictures
        if self._done == self._total or time.monotonic() - self._told > _TOLD_SECONDS:
            self._told = time.monotonic()
            print(f"{self._done} of {self._total} pictures made", file=sys.stderr, flush=True)


def _zip(folder: str, name: str) -> zipfile.ZipFile:
    return zipfile.ZipFile(os.path.join(folder, name, "images.zip"), "w", zipfile.ZIP_STORED)


def _jpeg(pixels: np.ndarray) -> bytes:
    held = io.BytesIO()
    Image.fromarray(pixels).save(held, "JPEG", quality=_QUALITY)
    return held.getvalue()


def _people(classes: int, pictures: int) -> Iterator[tuple[int, np.ndarray]]:
    """The number of the first person of a group, and all pictures of the group, person by person."""
    for first in range(0, classes, _TOGETHER):
        count = min(_TOGETHER, classes - first)
        looks = np.random.default_rng([_SEED, first]).random((_TOGETHER, len(_LOOKS)), dtype=np.float32)
        chances = np.random.default_rng([_SEED, first, 1]).random((_TOGETHER, pictures, 16), dtype=np.float32)
        noise = np.random.default_rng([_SEED, first, 2])
        shown = np.repeat(looks[:count], pictures, axis=0)
        yield first, _draw(shown, chances[:count].reshape(-1, 16), noise)


# What a person looks like: each of these is drawn once, evenly between its two ends. Lengths are in half pictures.
_LOOKS: dict[str, tuple[float, float]] = {
    "skin_red": (0.45, 0.98), "skin_green": (0.32, 0.8), "skin_blue": (0.2, 0.7),
    "hair_red": (0.02, 0.8), "hair_green": (0.02, 0.65), "hair_blue": (0.02, 0.55),
    "lips_red": (0.45, 0.9), "lips_green": (0.1, 0.45), "lips_blue": (0.1, 0.45),
    "iris_red": (0.0, 0.5), "iris_green": (0.0, 0.6), "iris_blue": (0.0, 0.75),
    "brow_shade": (0.0, 0.9), "cheeks": (-0.18, 0.22), "beard": (-0.3, 0.35),
    "width": (0.5, 0.82), "height": (0.7, 0.95), "hairline": (0.25, 0.8), "parting": (-0.35, 0.35),
    "eye_height": (-0.25, 0.1), "eye_distance": (0.2, 0.42), "eye_size": (0.08, 0.19), "eye_shape": (0.45, 1.0),
    "brow_height": (0.16, 0.34), "brow_thickness": (0.02, 0.09), "brow_slope": (-0.3, 0.3),
    "nose_length": (0.2, 0.5), "nose_width": (0.05, 0.18), "nose_shade": (-0.22, 0.14),
    "mouth_height": (0.38, 0.62), "mouth_width": (0.14, 0.4), "mouth_thickness": (0.03, 0.12),
    "spot_x": (-0.5, 0.5), "spot_y": (-0.4, 0.7), "spot_size": (0.03, 0.12), "spot_shade": (-0.4, 0.3),
}  # fmt: skip


def _draw(shares: np.ndarray, chances: np.ndarray, noise: np.random.Generator) -> np.ndarray:
    """Pictures of people, as bytes: each with its own place, size, tilt, light, background and noise."""
    low, high = (np.array(ends, dtype=np.float32) for ends in zip(*_LOOKS.values()))
    look = dict(zip(_LOOKS, (low + shares * (high - low)).T[:, :, None, None]))
    chance = (2 * chances - 1).T[:, :, None, None]
    x, y = _places(chance)
    wide, tall = look["width"], look["height"]
    shape = np.empty((len(shares), SIDE, SIDE, 3), dtype=np.float32)
    shape[:] = 0.5 + 0.45 * chance[5:8].transpose(1, 2, 3, 0)
    _paint(shape, _oval(x, y + 0.08, wide * 1.16, tall * 1.12), _colour(look, "hair"))
    face = _oval(x, y, wide, tall)
    hair = np.clip((-y - look["hairline"] * tall + 0.3 * (x - look["parting"]) ** 2) * 8 + 0.5, 0, 1)
    _paint(shape, face * (1 - hair), _colour(look, "skin"))
    _shade(shape, face * np.clip((y - 0.3) * 4, 0, 1), look["beard"])
    eye_x = np.abs(x) - look["eye_distance"]
    eye_y = y - look["eye_height"]
    _shade(shape, _oval(eye_x, eye_y - 0.3, 0.16, 0.14), look["cheeks"])
    _paint(shape, _oval(eye_x, eye_y, look["eye_size"] * 1.3, look["eye_size"] * look["eye_shape"]), 0.95)
    _paint(shape, _oval(eye_x, eye_y, look["eye_size"] * 0.6, look["eye_size"] * 0.6), _colour(look, "iris"))
    brow = _oval(eye_x, eye_y + look["brow_height"] + look["brow_slope"] * eye_x, 0.2, look["brow_thickness"])
    _paint(shape, brow, _colour(look, "hair") * look["brow_shade"])
    _shade(shape, _oval(x, y - 0.1, look["nose_width"], look["nose_length"] * 0.6), look["nose_shade"])
    mouth = _oval(x, y - look["mouth_height"], look["mouth_width"], look["mouth_thickness"] * (1 + 0.3 * chance[8]))
    _paint(shape, mouth, _colour(look, "lips"))
    _shade(
        shape, _oval(x - look["spot_x"], y - look["spot_y"], look["spot_size"], look["spot_size"]), look["spot_shade"]
    )
    light = 1 + 0.12 * chance[9] + 0.15 * (chance[10] * x + chance[11] * y)
    shape *= light[..., None]
    shape += 0.03 * noise.standard_normal(shape.shape, dtype=np.float32)
    return (np.clip(shape, 0, 1) * 255).astype(np.uint8)


def _places(chance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each point of a picture is on the face that it shows, seen from the middle of the face."""
    line = (np.arange(SIDE, dtype=np.float32) - (SIDE - 1) / 2) / (SIDE / 2)
    x, y = line[None, None, :] + 0.1 * chance[0], line[None, :, None] + 0.1 * chance[1]
    size, tilt = 1 + 0.07 * chance[2], 0.12 * chance[3]
    turned = (np.cos(tilt) * x - np.sin(tilt) * y) * size, (np.sin(tilt) * x + np.cos(tilt) * y) * size
    return turned[0] * (1 + 0.06 * chance[4]), turned[1]


def _oval(x: np.ndarray, y: np.ndarray, wide: np.ndarray | float, tall: np.ndarray | float) -> np.ndarray:
    """1 inside, 0 outside, and soft at the edge over about a point."""
    distance = np.sqrt((x / wide) ** 2 + (y / tall) ** 2)
    return np.clip((1 - distance) * np.minimum(wide, tall) * (SIDE / 2) + 0.5, 0, 1)


def _colour(look: dict[str, np.ndarray], of: str) -> np.ndarray:
    return np.concatenate([look[f"{of}_{part}"] for part in ("red", "green", "blue")], axis=1)


def _paint(shape: np.ndarray, where: np.ndarray, colour: np.ndarray | float) -> None:
    shape += where[..., None] * ((colour if isinstance(colour, float) else colour.reshape(-1, 1, 1, 3)) - shape)


def _shade(shape: np.ndarray, where: np.ndarray, amount: np.ndarray) -> None:
    """Lighter or darker than what is there."""
    shape *= 1 + (where * amount)[..., None]


if __name__ == "__main__":
    main()
