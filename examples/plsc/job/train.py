"""Large-scale classification with PaddlePaddle: faces of thousands of people, their classes split over the trainers.

It needs nothing but PaddleCloud's variables, and without them trains alone, right here. Every pass is saved to
OUTPUT_PATH; an attempt after the first goes on from there, and `--resume` from another job, on any number of trainers.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
import warnings
from typing import NamedTuple

import checkpoint
import numpy as np
import zip_reader

CLASSES = 10000  # of pictures that are made
PASSES, PARTIAL_PASSES = 10, 14  # a class that takes part in fewer steps needs more of them
_TOLD_SECONDS = 10.0
_FIGURES = "figures.json"


class Told(NamedTuple):
    """What is told of a pass."""

    number: int
    loss: float
    train: float
    test: float
    images_per_second: float
    seconds: float  # since training began, also by attempts before this

    def line(self) -> str:
        return (
            f"pass {self.number}  loss {self.loss:.3f}  train top-1 {self.train:.3f}  test top-1 {self.test:.3f}  "
            f"{self.images_per_second:.0f} images/s  {self.seconds:.0f} s"
        )


def main() -> None:
    given = options()
    if os.environ.get("TRAINING_ROLE") == "PSERVER":
        raise SystemExit("these trainers need no pservers: submit it with --distribute NCCL2")
    rank, count = int(os.environ.get("PADDLE_TRAINER_ID", "0")), int(os.environ.get("PADDLE_TRAINERS_NUM", "1"))
    train, test, classes = read_pictures(given, rank, count)
    print(f"trainer {rank} of {count}: {len(train.labels)} pictures of {classes} classes", flush=True)

    warnings.filterwarnings("ignore", module="paddle")  # of compilers that nobody here needs
    import paddle
    from learner import Learner
    from trainers import Trainers

    paddle.seed(given.seed)
    trainers = Trainers()
    learner = Learner(
        trainers,
        classes=classes,
        embedding=given.embedding,
        share=given.partial_fc,
        margin=given.margin,
        scale=given.scale,
        decay=given.decay,
        hurry=given.hurry,
    )
    output = os.environ.get("OUTPUT_PATH", "output")
    origin = find_origin(given.resume, output, classes, trainers)
    learner.restore(origin)
    told = [] if origin is None else earlier(origin)
    first = 0 if origin is None else origin.number + 1
    if rank == 0:
        print(beginning(origin, learner.steps, given.passes), flush=True)
    begun = time.monotonic() - (told[-1].seconds if told else 0.0)
    for number in range(first, given.passes):
        told.append(one_pass(given, number, learner, trainers, train, test, begun))
        parts = {"classes": classes, "rank": rank, "trainers": count}
        checkpoint.save(output, number, learner.variables(rate(given, number + 1)), **parts)
        if rank == 0:
            print(told[-1].line(), flush=True)
            with open(os.path.join(output, _FIGURES), "w") as file:
                json.dump([one._asdict() for one in told], file, indent=1)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", metavar="FOLDER", help="of zip files and label.txt (data)")
    parser.add_argument("--classes", type=int, default=0, help="how many (as many as label.txt has)")
    parser.add_argument("--passes", type=int, help=f"over all pictures ({PASSES}; with partial FC {PARTIAL_PASSES})")
    parser.add_argument("--batch", type=int, default=128, help="pictures of a step, of all trainers together (128)")
    parser.add_argument("--rate", type=float, default=0.2, help="highest learning rate (0.2)")
    parser.add_argument(
        "--hurry", type=float, default=4.0, help="of centres, which few pictures move: so many times that rate (4)"
    )
    parser.add_argument("--warm", type=float, default=0.3, help="passes until the rate is there (0.3)")
    parser.add_argument("--decay", type=float, default=5e-4, help="weight decay (5e-4)")
    parser.add_argument("--margin", type=float, default=0.2, help="of ArcFace (0.2)")
    parser.add_argument("--scale", type=float, default=32.0, help="of ArcFace (32)")
    parser.add_argument("--embedding", type=int, default=128, help="numbers that a picture becomes (128)")
    parser.add_argument("--partial-fc", type=float, default=1.0, metavar="SHARE", help="of classes in a step (1: all)")
    parser.add_argument("--shift", type=int, default=2, help="points that a picture is moved by, at most (2)")
    parser.add_argument("--tested", type=int, default=zip_reader.TESTED, help="pictures to test with, at most (1024)")
    parser.add_argument("--seed", type=int, default=1, help="of all that is left to chance (1)")
    parser.add_argument("--resume", metavar="PATH", help="results of a job to go on from")
    given = parser.parse_args()
    given.passes = given.passes or (PASSES if given.partial_fc >= 1 else PARTIAL_PASSES)
    return given


def read_pictures(given: argparse.Namespace, rank: int, count: int):
    """This trainer's share of those to train and to test with, and the number of classes."""
    listed = zip_reader.listed(given.data or pictures(given.classes))
    tested = zip_reader.evenly(listed.test, max(count, given.tested // count * count))
    train, test = (zip_reader.read(named, rank, count) for named in (listed.train, tested))
    if not len(train.labels) or not len(test.labels):
        raise SystemExit(
            f"{len(listed.train)} pictures to train and {len(tested)} to test with are too few for {count} trainers"
        )
    if given.classes and listed.classes > given.classes:
        raise SystemExit(f"label.txt has the class {listed.classes - 1}, so --classes {given.classes} is too few")
    return train, test, given.classes or listed.classes


def beginning(origin: checkpoint.Origin | None, steps: int, passes: int) -> str:
    """Where training begins, in words."""
    if origin is None:
        return "a new start"
    if origin.number + 1 >= passes:
        return f"pass {origin.number} is done, and --passes {passes} asks for no more"
    return f"goes on after pass {origin.number}, step {steps}"


def pictures(classes: int) -> str:
    """The folder of pictures that was sent; where none was, each trainer makes the same ones."""
    sent = os.path.join(os.environ.get("LOCAL_MOUNT_PATH", "."), "data")
    if not os.path.exists(os.path.join(sent, "label.txt")):
        sent = "data"
    if not os.path.exists(os.path.join(sent, "label.txt")):
        import make_data

        print(f"making pictures of {classes or CLASSES} people", flush=True)
        make_data.make(sent, classes or CLASSES)
    return sent


def find_origin(resume: str | None, output: str, classes: int, trainers) -> checkpoint.Origin | None:
    """The newest pass that every trainer of an earlier attempt completed; else the one that was named."""
    own = {
        number
        for number, mark in checkpoint.complete(output).items()
        if (mark["rank"], mark["trainers"], mark["classes"]) == (trainers.rank, trainers.count, classes)
    }
    common = set.intersection(*trainers.told(own))
    if common:
        return checkpoint.Origin(max(common), classes, [output] * trainers.count)
    if resume is None:
        return None
    found = checkpoint.origin(resume)
    if found.classes != classes:
        raise SystemExit(f"{resume} was trained for {found.classes} classes, this is for {classes}")
    return found


def earlier(origin: checkpoint.Origin) -> list[Told]:
    """What was told of the passes up to the one that training goes on from."""
    try:
        with open(os.path.join(origin.folders[0], _FIGURES)) as file:
            return [one for one in (Told(**figures) for figures in json.load(file)) if one.number <= origin.number]
    except (OSError, ValueError, TypeError):
        return []


def one_pass(given, number: int, learner, trainers, train, test, begun: float) -> Told:
    dice = np.random.default_rng([given.seed, number, trainers.rank])
    size = min(max(1, given.batch // trainers.count), len(train.labels))
    steps = len(train.labels) // size
    sums, at_begin, told_at = np.zeros(2), time.monotonic(), time.monotonic()
    for step, (pixels, labels) in enumerate(train.batches(size, dice, given.shift)):
        sums += learner.step(pixels, labels, rate(given, number + step / steps), dice).numpy()
        if trainers.rank == 0 and time.monotonic() - told_at > _TOLD_SECONDS:
            told_at = time.monotonic()
            print(f"pass {number}  step {step + 1} of {steps}  loss {sums[0] / (step + 1):.3f}", flush=True)
    speed = steps * size * trainers.count / (time.monotonic() - at_begin)
    learner.average_counts()
    right = learner.recognized(test)
    return Told(number, sums[0] / steps, sums[1] / steps, right, speed, time.monotonic() - begun)


def rate(given: argparse.Namespace, done: float) -> float:
    """By how many passes are done, so that it does not depend on how many trainers make them: up, then down to none."""
    if done < given.warm:
        return given.rate * done / given.warm
    return given.rate * 0.5 * (1 + math.cos(math.pi * min(1.0, (done - given.warm) / (given.passes - given.warm))))


if __name__ == "__main__":
    main()
