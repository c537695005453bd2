"""Learns to answer the first line of a couplet by the second, character by character, with Python alone.

A character of the second line depends on the one that it faces and on the one before that: a softmax over both, trained
by gradient descent. It stands in for tensor2tensor's transformer, which takes days and a GPU.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random

RATE = 0.5
_START = "^"


class Model:
    """Scores of each character of an answer, by the character that it faces and by the one before that."""

    def __init__(self, vocabulary: list[str]) -> None:
        self.vocabulary = vocabulary
        size = len(vocabulary)
        self.number = {character: at for at, character in enumerate(vocabulary)}
        self.facing = {character: [0.0] * size for character in vocabulary}
        self.before = {character: [0.0] * size for character in [*vocabulary, _START]}

    def step(self, line: str, answer: str) -> float:
        """One step down the gradient for a couplet; the mean loss before it."""
        loss = 0.0
        for at, (facing, right) in enumerate(zip(line, answer)):
            before = line[at - 1] if at else _START
            chances = self._chances(facing, before)
            target = self.number[right]
            loss -= math.log(max(chances[target], 1e-12))
            for column, chance in enumerate(chances):
                slope = RATE * (chance - (1.0 if column == target else 0.0))
                self.facing[facing][column] -= slope
                self.before[before][column] -= 0.2 * slope
        return loss / len(line)

    def answer(self, line: str) -> str:
        found = ""
        for at, facing in enumerate(line):
            chances = self._chances(facing, line[at - 1] if at else _START)
            found += self.vocabulary[chances.index(max(chances))]
        return found

    def save(self, file: str) -> None:
        with open(file + ".part", "w", encoding="utf-8") as opened:
            json.dump({"vocabulary": self.vocabulary, "facing": self.facing, "before": self.before}, opened)
        os.replace(file + ".part", file)

    def _chances(self, facing: str, before: str) -> list[float]:
        scores = [one + other for one, other in zip(self.facing[facing], self.before[before])]
        most = max(scores)
        powers = [math.exp(score - most) for score in scores]
        total = sum(powers)
        return [power / total for power in powers]


def read(folder: str) -> tuple[list[tuple[str, str]], list[str]]:
    def lines(name: str) -> list[str]:
        with open(os.path.join(folder, name), encoding="utf-8") as opened:
            return [line.strip().replace(" ", "") for line in opened if line.strip()]

    couplets = list(zip(lines("train.txt.up.clean"), lines("train.txt.down.clean")))
    return couplets, lines("merge.txt.vocab.clean")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--output_dir", required=True)
    parser.add_argument("--train_steps", type=int, required=True)
    parser.add_argument("--save_checkpoints_steps", type=int, required=True)
    args = parser.parse_args()
    couplets, vocabulary = read(args.data_dir)
    held_back, couplets = couplets[:100], couplets[100:]
    print(f"{len(couplets)} couplets, {len(vocabulary)} characters", flush=True)
    chosen, model = random.Random(20191), Model(vocabulary)
    losses = []
    for step in range(1, args.train_steps + 1):
        losses.append(model.step(*chosen.choice(couplets)))
        if step % 1000 == 0:
            print(f"step {step}  loss {sum(losses) / len(losses):.4f}", flush=True)
            losses = []
        if step % args.save_checkpoints_steps == 0:
            model.save(os.path.join(args.output_dir, f"model.ckpt-{step}.json"))
    right = [one == other for line, answer in held_back for one, other in zip(model.answer(line), answer)]
    print(f"accuracy {sum(right) / len(right):.3f} on {len(held_back)} couplets that it has not seen", flush=True)
    for line, _ in held_back[:3]:
        print(f"{line}  {model.answer(line)}", flush=True)


if __name__ == "__main__":
    main()
