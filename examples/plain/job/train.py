"""Fits a line through house prices, on one trainer or several, with nothing but the standard library.

Every trainer reads its share of the houses; their gradients are averaged after each pass, so all of them hold the same
weights, and the model is the same whatever their number. Without PaddleCloud's variables it trains alone, right here.
"""

from __future__ import annotations

import csv
import json
import os
import random
import threading
from pathlib import Path

import average

PASSES = int(os.environ.get("PASSES", "3000"))
LEARNING_RATE = 0.0015
REPORTS = 20


def main() -> None:
    trainers = int(os.environ.get("PADDLE_TRAINERS_NUM", "1"))
    pservers = _addresses("PADDLE_PSERVERS_IP_PORT_LIST")
    if os.environ.get("TRAINING_ROLE") == "PSERVER":
        serve(trainers)
    else:
        train(int(os.environ.get("PADDLE_TRAINER_ID", "0")), trainers, pservers)


def serve(trainers: int) -> None:
    """A pserver's part: average its share of the numbers for as long as there are trainers."""
    address = f"{os.environ['POD_IP']}:{os.environ['PADDLE_PORT']}"
    server = average.listen(address)
    print(f"pserver at {address}, waiting for {trainers} trainers")
    print(f"averaged {average.serve(server, trainers)} times; the trainers have left")


def train(rank: int, trainers: int, pservers: list[str]) -> None:
    houses, prices = read_houses(rank, trainers)
    print(f"trainer {rank} of {trainers}: {len(houses)} houses")
    group, averaging = meet(rank, trainers, pservers)
    weights = first_weights(len(houses[0]))
    for number in range(1, PASSES + 1):
        gradient, loss, count = look(houses, prices, weights)
        mean = group.mean([*gradient, loss, count]) if group else [*gradient, loss, count]
        *gradient, loss, count = mean
        weights = [weight - LEARNING_RATE * slope / count for weight, slope in zip(weights, gradient)]
        if number % max(1, PASSES // REPORTS) == 0 or number == 1:
            print(f"pass {number}  loss {loss / count:.4f}")
    if group:
        group.close()
    save(weights, loss / count)
    if averaging:
        averaging.join()  # it may not have sent the last mean to the others yet


def read_houses(rank: int, trainers: int) -> tuple[list[list[float]], list[float]]:
    """This trainer's houses: a 1 for the base price, then columns with mean 0 and deviation 1 over all houses."""
    folder = Path(os.environ.get("LOCAL_MOUNT_PATH") or Path(__file__).parent)
    with (folder / "data/housing.csv").open(newline="") as file:
        rows = [[float(cell) for cell in row] for row in list(csv.reader(file))[1:]]
    *columns, prices = zip(*rows)
    scaled = [_scaled(column) for column in columns]
    houses = [[1.0, *house] for house in zip(*scaled)]
    return houses[rank::trainers], list(prices[rank::trainers])


def meet(rank: int, trainers: int, pservers: list[str]) -> tuple[average.Group | None, threading.Thread | None]:
    """The way to the other trainers: by the pservers where there are some, else by trainer 0 at its own endpoint.

    Trainer 0 then averages for all, in a thread of its own.
    """
    if trainers == 1 and not pservers:
        return None, None
    addresses = pservers or _addresses("PADDLE_TRAINER_ENDPOINTS")[:1]
    averaging = None
    if not pservers and rank == 0:
        server = average.listen(addresses[0])
        averaging = threading.Thread(target=average.serve, args=(server, trainers), daemon=True)
        averaging.start()
    group = average.Group(addresses)
    print(f"averaging at {', '.join(addresses)}")
    return group, averaging


def first_weights(count: int) -> list[float]:
    dice = random.Random(0)
    return [dice.uniform(-1, 1) for _ in range(count)]


def look(houses: list[list[float]], prices: list[float], weights: list[float]) -> tuple[list[float], float, float]:
    """Sums over these houses: of the gradients, of the squared errors, and how many they are."""
    gradient = [0.0] * len(weights)
    loss = 0.0
    for house, price in zip(houses, prices):
        error = sum(map(float.__mul__, house, weights)) - price
        loss += error * error
        gradient = [slope + 2 * error * value for slope, value in zip(gradient, house)]
    return gradient, loss, float(len(houses))


def save(weights: list[float], loss: float) -> None:
    folder = Path(os.environ.get("OUTPUT_PATH", "output"))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.json").write_text(json.dumps({"weights": weights, "loss": loss}, indent=1) + "\n")
    print(f"saved {folder / 'model.json'}  loss {loss:.4f}")


def _scaled(column: tuple[float, ...]) -> list[float]:
    mean = sum(column) / len(column)
    deviation = (sum((value - mean) ** 2 for value in column) / len(column)) ** 0.5
    return [(value - mean) / deviation for value in column]


def _addresses(variable: str) -> list[str]:
    return [address for address in os.environ.get(variable, "").split(",") if address]


if __name__ == "__main__":
    main()
