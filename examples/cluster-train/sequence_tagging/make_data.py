"""Writes sentences of a made-up language with their tags, always the same: `python make_data.py FOLDER`.

A word's tag depends on the words before it, as in chunking: a noun begins a phrase (B-NP) or goes on with one (I-NP).
words.txt, the dictionary, is made in advance, since no trainer sees all words.
"""

from __future__ import annotations

import gzip
import os
import random
import sys

KINDS = {"the": 2, "adj": 30, "noun": 120, "verb": 60, "of": 3}
TRAIN_FILES, TEST_FILES, SENTENCES = 6, 2, 120
WORDS = "words.txt"


def sentence(chance: random.Random) -> list[tuple[str, str]]:
    """Noun phrases around a verb, of a few words each."""
    found: list[tuple[str, str]] = []

    def say(kind: str, tag: str) -> None:
        found.append((f"{kind}{chance.randrange(KINDS[kind])}", tag))

    for number in range(chance.randrange(2, 4)):
        if number:
            say("verb", "B-VP")
        begun = False
        for kind in (["the"] if chance.random() < 0.6 else []) + ["adj"] * chance.randrange(3) + ["noun"]:
            say(kind, "I-NP" if begun else "B-NP")
            begun = True
        if chance.random() < 0.4:
            say("of", "O")
            say("noun", "B-NP")
            say("noun", "I-NP")
    return found


def write(file: str, chance: random.Random) -> None:
    lines = []
    for _ in range(SENTENCES):
        lines += [f"{word} {tag}\n" for word, tag in sentence(chance)] + ["\n"]
    with gzip.GzipFile(file, "wb", mtime=0) as made:
        made.write("".join(lines).encode())


def main(folder: str) -> None:
    chance = random.Random(3)
    for name, count in (("train", TRAIN_FILES), ("test", TEST_FILES)):
        os.makedirs(os.path.join(folder, name), exist_ok=True)
        for number in range(count):
            write(os.path.join(folder, name, f"{name}-{number}.txt.gz"), chance)


if __name__ == "__main__":
    main(sys.argv[1])
