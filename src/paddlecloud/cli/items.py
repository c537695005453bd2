"""What a dataset is made from: lines of text, JSON lines, CSV, other files of records, or a function of the user."""

from __future__ import annotations

import csv
import importlib
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddlecloud.model.errors import InvalidError

if TYPE_CHECKING:
    from paddlecloud.sdk.transfer import Progress

FORMATS = ("text", "jsonl", "csv", "recordio", "uci_housing.train", "uci_housing.test")
_BY_SUFFIX = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".recordio": "recordio"}

Items = Iterator[Any]


def guessed(files: Sequence[str]) -> str:
    """The format that all names tell; text where they tell none."""
    return next(iter({_BY_SUFFIX.get(Path(file).suffix, "text") for file in files} - {"text"}), "text")


def of_files(files: Sequence[str], form: str, progress: Progress) -> Items:
    """The items of the files, one file after the other; `progress` is told of every byte that is read."""
    if form == "recordio":
        return _of_records(files, progress)
    if form.startswith("uci_housing."):
        return _of_housing(files, form.endswith(".train"))
    progress.total(sum(os.path.getsize(file) for file in files))
    made = {"text": _of_text, "jsonl": _of_json, "csv": _of_csv}[form]
    return (item for file in files for item in made(file, progress))


def of_function(words: str) -> Callable[[], Iterable[Any]]:
    """The reader that `file.py:function` or `module:function` names; it gives items, or a function that does."""
    where, _, name = words.rpartition(":")
    if not where or not name:
        raise InvalidError(f"--reader {words!r} is not understood: write file.py:function", field="reader")
    found = getattr(_module(where), name, None)
    if not callable(found):
        raise InvalidError(f"--reader {words!r}: {where} has no function {name}", field="reader")
    made = found()
    # PaddlePaddle's datasets have functions that make a reader: uci_housing.train() is to be called once more.
    return made if callable(made) else lambda: made


def _module(where: str) -> object:
    if not where.endswith(".py"):
        sys.path.insert(0, os.getcwd())
        try:
            return importlib.import_module(where)
        except ModuleNotFoundError as error:
            raise InvalidError(f"--reader: {error}; write file.py:function", field="reader") from None
    path = Path(where)
    if not path.is_file():
        raise InvalidError(f"--reader: there is no file {where}", field="reader")
    sys.path.insert(0, str(path.parent.absolute()))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise InvalidError(f"--reader: {where} is no Python file", field="reader")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _lines(file: str, progress: Progress) -> Iterator[bytes]:
    with open(file, "rb") as opened:
        for line in opened:
            progress.advance(len(line))
            yield line.removesuffix(b"\n").removesuffix(b"\r")


def _of_text(file: str, progress: Progress) -> Items:
    for line in _lines(file, progress):
        yield line.decode("utf-8", "surrogateescape")


def _of_json(file: str, progress: Progress) -> Items:
    for number, line in enumerate(_lines(file, progress), 1):
        if line.strip():
            try:
                yield json.loads(line)
            except ValueError as error:
                raise InvalidError(f"{file}: line {number} is no JSON: {error}") from None


def _of_csv(file: str, progress: Progress) -> Items:
    lines = (line.decode("utf-8-sig", "surrogateescape") for line in _lines(file, progress))
    rows = csv.reader(lines)
    try:
        for row in rows:
            yield [_number_or_text(field) for field in row]
    except csv.Error as error:
        raise InvalidError(f"{file}: line {rows.line_num} is no CSV: {error}") from None


def _number_or_text(field: str) -> float | int | str:
    for kind in (int, float):
        try:
            return kind(field)
        except ValueError:
            continue
    return field


def _of_records(files: Sequence[str], progress: Progress) -> Items:
    from paddlecloud.recordio import Reader

    for file in files:
        progress.total(os.path.getsize(file))
        yield from Reader([file])
        progress.advance(os.path.getsize(file))


def _of_housing(files: Sequence[str], is_train: bool) -> Items:
    from paddlecloud.recordio import uci_housing

    for file in files:
        yield from (uci_housing.train if is_train else uci_housing.test)(file)()
