"""Writes the houses of this example and of ../plain: 506, made up from a fixed seed, so that all have the same."""

from __future__ import annotations

import csv
import random
from pathlib import Path

HOUSES = 506
COLUMNS = {
    "crime": (0.0, 12.0, -0.31),
    "large_plots": (0.0, 100.0, 0.04),
    "industry": (0.5, 27.0, -0.12),
    "riverside": (0.0, 1.0, 2.7),
    "nitric_oxides": (0.38, 0.87, -14.0),
    "rooms": (4.0, 8.5, 4.1),
    "built_before_1940": (3.0, 100.0, -0.02),
    "distance_to_work": (1.1, 12.0, -0.9),
    "highways": (1.0, 24.0, 0.11),
    "tax": (190.0, 710.0, -0.009),
    "pupils_per_teacher": (12.6, 22.0, -0.8),
    "shops": (0.3, 1.0, 5.0),
    "low_income": (1.7, 37.0, -0.45),
}
BASE_PRICE = 32.0
NOISE = 1.5


def main() -> None:
    examples = Path(__file__).parents[1]
    for example in ("fit-a-line", "plain"):
        write(examples / example / "job/data/housing.csv")


def write(path: Path) -> None:
    dice = random.Random(20200517)
    with path.open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow([*COLUMNS, "price"])
        for _ in range(HOUSES):
            house = [round(dice.uniform(low, high), 2) for low, high, _ in COLUMNS.values()]
            worth = sum(value * slope for value, (_, _, slope) in zip(house, COLUMNS.values()))
            table.writerow([*house, round(BASE_PRICE + worth + dice.gauss(0, NOISE), 1)])


if __name__ == "__main__":
    main()
