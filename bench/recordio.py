"""Records of 200 B, 10 KB and 1 MB into a file and out of it: ours, a plain implementation, TFRecord and webdataset.

Each library is in a process of its own. Files stay in the system's cache; nobody waits for the disk. What is read is
handed out as bytes. Ours and the plain one check every checksum; TFRecord's package reads past its checksums, and a tar
has none of its content.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

sys.path[:0] = [str(Path(__file__).parents[1])]

from bench.peers import TFRECORD, WEBDATASET, LeftOut, library  # noqa: E402
from bench.table import Row, arguments, met, seconds, tell  # noqa: E402

SIZES = {"200 B": 200, "10 KB": 10_000, "1 MB": 1_000_000}
OURS, FLOOR = "PaddleCloud", "plain implementation (the floor)"
SPEC_FLOOR = {"write": 84.0, "read": 136.0}  # MB/s at 200 B, as measured when the format was described
GOAL_RATIO = 3
PACKAGES = {"TFRecord": ("tfrecord", TFRECORD), "webdataset": ("webdataset", WEBDATASET)}
MOST_RECORDS = {"TFRecord": 200_000, "webdataset": 20_000}  # they are slow with small ones; the rate is the same

Rates = dict[tuple[str, str, str], dict[str, list[float]]]


class Asked(NamedTuple):
    verb: str
    file: str
    size: int
    records: int


def main() -> None:
    given = arguments(__doc__ or "", repeats=5, megabytes=200)
    rates: Rates = defaultdict(lambda: defaultdict(list))
    with tempfile.TemporaryDirectory(prefix="paddlecloud-bench-") as folder, ExitStack() as stack:
        for compressor in ("none", "snappy"):
            libraries = dict(_libraries(stack, compressor))
            for name, size in SIZES.items():
                for number in range(given.repeats):
                    _measure(libraries, (compressor, name), size, given.megabytes, Path(folder), number, rates)
        several = {
            count: _together(stack, count, given.megabytes, given.repeats, Path(folder))
            for count in (1, os.cpu_count() or 1)
        }
    rows = [
        Row(f"{verb}, {name}, {_with(compressor)}: {who}", values, "MB/s")
        for (compressor, name, verb), of in rates.items()
        for who, values in of.items()
    ]
    rows += [Row(f"read, 10 KB, snappy, by {count} processes: {OURS}", of, "MB/s") for count, of in several.items()]
    tell("recordio", rows, _verdict(rates, several), write=given.write)


class Library:
    """A process that writes and reads as it is asked."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin
        assert process.stdout
        self._asked, self._answers = process.stdin, process.stdout
        if self._answers.readline().strip() != "ready":
            raise LeftOut("it does not start")

    def ask(self, asked: Asked) -> None:
        print(json.dumps(asked._asdict()), file=self._asked, flush=True)

    def answer(self) -> float:
        if not (line := self._answers.readline()):
            raise SystemExit("a library ended without an answer; its error is above")
        return float(line)

    def seconds(self, asked: Asked) -> float:
        self.ask(asked)
        return self.answer()


def _libraries(stack: ExitStack, compressor: str) -> Iterator[tuple[str, Library]]:
    own = Path(sys.executable)
    yield OURS, stack.enter_context(_running(own, "ours", compressor))
    yield FLOOR, stack.enter_context(_running(own, "floor", compressor))
    if compressor != "none":
        return
    for name, (word, package) in PACKAGES.items():
        try:
            yield name, stack.enter_context(_running(library(package), word, compressor))
        except LeftOut as why:
            print(f"{name} is left out: {why}", file=sys.stderr)


@contextmanager
def _running(python: Path, word: str, compressor: str) -> Iterator[Library]:
    command = [str(python), str(Path(__file__).with_name("within_records.py")), word, compressor]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Library(process)


def _measure(
    libraries: dict[str, Library],
    of: tuple[str, str],
    size: int,
    megabytes: int,
    folder: Path,
    number: int,
    rates: Rates,
) -> None:
    """Each library in turn; who begins changes from repeat to repeat."""
    names = list(libraries) if number % 2 else list(reversed(libraries))
    for who in names:
        count = min(max(1, megabytes * 1_000_000 // size), MOST_RECORDS.get(who, sys.maxsize))
        file = folder / "records"
        for verb in ("write", "read"):
            taken = libraries[who].seconds(Asked(verb, str(file), size, count))
            rates[(*of, verb)][who].append(count * size / 1e6 / taken)
        file.unlink()


def _together(stack: ExitStack, count: int, megabytes: int, repeats: int, folder: Path) -> list[float]:
    """So many processes, each of which reads its chunks of one file, at the same time."""
    own = Path(sys.executable)
    readers = [stack.enter_context(_running(own, "ours", f"snappy:{number}/{count}")) for number in range(count)]
    size, records = SIZES["10 KB"], max(1, megabytes * 2_000_000 // SIZES["10 KB"])
    file = folder / f"together-{count}"
    readers[0].seconds(Asked("write", str(file), size, records))

    def all_read() -> None:
        for reader in readers:
            reader.ask(Asked("read", str(file), size, 0))
        for reader in readers:
            reader.answer()

    all_read()
    return [records * size / 1e6 / seconds(all_read) for _ in range(repeats)]


def _with(compressor: str) -> str:
    return "uncompressed" if compressor == "none" else compressor


def _verdict(rates: Rates, several: dict[int, list[float]]) -> str:
    medians = {of: {who: Row("", values, "").median for who, values in by.items()} for of, by in rates.items()}
    fastest = all(max(by, key=lambda who: by[who]) == OURS for by in medians.values())
    small = {verb: medians["none", "200 B", verb] for verb in ("write", "read")}
    floors = {verb: by[OURS] / by[FLOOR] for verb, by in small.items()}
    spec = {verb: by[OURS] / SPEC_FLOOR[verb] for verb, by in small.items()}
    others = [
        f"{verb}, {name}, {_with(compressor)}: "
        + ", ".join(f"{who} {by[OURS] / rate:.1f}" for who, rate in by.items() if who != OURS)
        for (compressor, name, verb), by in medians.items()
    ]
    said = [
        f"Goal of being the fastest in each: {met(fastest)}.",
        f"Goal of {GOAL_RATIO} times the floor at 200 B uncompressed:",
        f"{met(min(floors.values()) >= GOAL_RATIO)} against the plain implementation here",
        f"(write {floors['write']:.1f}, read {floors['read']:.1f}),",
        f"{met(min(spec.values()) >= GOAL_RATIO)} against the figures of the format's description",
        f"(write {spec['write']:.1f}, read {spec['read']:.1f}).",
    ]
    one, *more = (Row("", values, "").median for values in several.values())
    if more:
        said.append(f"{max(several)} processes read {more[0] / one:.1f} times as fast as one.")
    return f"{' '.join(said)} Times as fast as others: {'; '.join(others)}."


if __name__ == "__main__":
    main()
