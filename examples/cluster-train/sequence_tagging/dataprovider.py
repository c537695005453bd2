"""Reads what a trainer was dealt: the files that a list names, as sentences of numbers."""

from __future__ import annotations

import gzip
from collections.abc import Iterator

TAGS = ("B-NP", "I-NP", "B-VP", "O")


def dictionary(file: str = "words.txt") -> dict[str, int]:
    """Each word with its number; 0 is any other."""
    with open(file) as words:
        return {word.strip(): number for number, word in enumerate(words, 1)}


def process(words: dict[str, int], list_file: str) -> Iterator[tuple[list[int], list[int]]]:
    """Sentence by sentence, the numbers of its words and of their tags."""
    with open(list_file) as names:
        for name in names:
            yield from _sentences(words, name.strip())


def _sentences(words: dict[str, int], file: str) -> Iterator[tuple[list[int], list[int]]]:
    features: list[int] = []
    labels: list[int] = []
    with gzip.open(file, "rt") as lines:
        for line in lines:
            if line.strip():
                word, tag = line.split()
                features.append(words.get(word, 0))
                labels.append(TAGS.index(tag))
            elif features:
                yield features, labels
                features, labels = [], []
