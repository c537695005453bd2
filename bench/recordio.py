"""Measures writing and reading records of 200 B, 10 KB and 1 MB with several record libraries.

The libraries are ours, a plain implementation, TFRecord and webdataset, each in its own process. Files stay in the
system's cache, so nobody waits for the disk. Records are returned as bytes. Ours and the plain one verify every
checksum; TFRecord's package ignores its checksums, and a tar has none for its content. Ratios are medians over the
repeats; within a repeat the libraries run one after the other.
"""

from __future__ import annotations

import json
import os
import statistics
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
from bench.table import Row, arguments, grid, met, seconds, tell  # noqa: E402

SIZES = {"200 B": 200, "10 KB": 10_000, "1 MB": 1_000_000}
OURS, FLOOR = "PaddleCloud", "plain implementation (the floor)"
SMALL_CHUNKS = "PaddleCloud, chunks of 4 MiB"
SPEC_FLOOR = {"write": 84.0, "read": 136.0}  # MB/s at 200 B, measured when the format was specified
GOAL_RATIO = 3
PACKAGES = {"TFRecord": ("tfrecord", TFRECORD), "webdataset": ("webdataset", WEBDATASET)}
MOST_RECORDS = {"TFRecord": 200_000, "webdataset": 20_000}  # slow with small records; the rate does not change

Of = tuple[str, str, str]  # compressor, size, verb
Rates = dict[Of, dict[str, list[float]]]  # by library


class Rate(NamedTuple):
    """MB/s by the clock and by the process's CPU time, which other load on the machine affects less."""

    clock: Rates
    cpu: Rates


class Asked(NamedTuple):
    verb: str
    file: str
    size: int
    records: int


def main() -> None:
    given = arguments(__doc__ or "", repeats=11, megabytes=200)
    rate = Rate(defaultdict(lambda: defaultdict(list)), defaultdict(lambda: defaultdict(list)))
    with tempfile.TemporaryDirectory(prefix="paddlecloud-bench-") as folder, ExitStack() as stack:
        for compressor in ("none", "snappy"):
            libraries = dict(_libraries(stack, compressor))
            for name, size in SIZES.items():
                for number in range(given.repeats):
                    _measure(libraries, (compressor, name), size, given.megabytes, Path(folder), number, rate)
        several = {
            count: _together(stack, count, given.megabytes, given.repeats, Path(folder))
            for count in (1, os.cpu_count() or 1)
        }
    rows = [Row(f"{_called(of)}: {who}", values, "MB/s") for of, by in rate.clock.items() for who, values in by.items()]
    rows += [Row(f"read, 10 KB, snappy, by {count} processes: {OURS}", of, "MB/s") for count, of in several.items()]
    tell("recordio", rows, _verdict(rate, several), write=given.write)


class Library:
    """A process that writes and reads on request."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin
        assert process.stdout
        self._asked, self._answers = process.stdin, process.stdout
        if self._answers.readline().strip() != "ready":
            raise LeftOut("it does not start")

    def ask(self, asked: Asked) -> None:
        print(json.dumps(asked._asdict()), file=self._asked, flush=True)

    def answer(self) -> tuple[float, float]:
        """Elapsed seconds and CPU seconds."""
        if not (line := self._answers.readline()):
            raise SystemExit("a library's process ended without an answer; see its error above")
        clock, cpu = line.split()
        return float(clock), float(cpu)

    def seconds(self, asked: Asked) -> tuple[float, float]:
        self.ask(asked)
        return self.answer()


def _libraries(stack: ExitStack, compressor: str) -> Iterator[tuple[str, Library]]:
    own = Path(sys.executable)
    yield OURS, stack.enter_context(_running(own, "ours", compressor))
    yield FLOOR, stack.enter_context(_running(own, "floor", compressor))
    if compressor != "none":
        return
    yield SMALL_CHUNKS, stack.enter_context(_running(own, "ours-small-chunks", compressor))
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
    rate: Rate,
) -> None:
    """Measure each library in turn; the order alternates from repeat to repeat."""
    names = list(libraries) if number % 2 else list(reversed(libraries))
    for who in names:
        count = min(max(1, megabytes * 1_000_000 // size), MOST_RECORDS.get(who, sys.maxsize))
        file = folder / "records"
        for verb in ("write", "read"):
            clock, cpu = libraries[who].seconds(Asked(verb, str(file), size, count))
            rate.clock[(*of, verb)][who].append(count * size / 1e6 / clock)
            rate.cpu[(*of, verb)][who].append(count * size / 1e6 / cpu)
        file.unlink()


def _together(stack: ExitStack, count: int, megabytes: int, repeats: int, folder: Path) -> list[float]:
    """Measure `count` processes that each read their chunks of one file at the same time."""
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


def _verdict(rate: Rate, several: dict[int, list[float]]) -> str:
    times, small_chunks = _times(rate.clock, OURS), _times(rate.clock, SMALL_CHUNKS)
    small = {verb: times["none", "200 B", verb][FLOOR] for verb in ("write", "read")}
    spec = {
        verb: statistics.median(rate.clock["none", "200 B", verb][OURS]) / floor for verb, floor in SPEC_FLOOR.items()
    }
    said = [
        f"Goal of being the fastest in each: {_fastest(times)} with chunks of 32 MiB, as the original has them,",
        f"{_fastest(small_chunks)} with chunks of 4 MiB (`chunk_bytes`; uncompressed).",
        f"Goal of {GOAL_RATIO} times the floor at 200 B uncompressed:",
        f"{met(min(small.values()) >= GOAL_RATIO)} against the plain implementation here",
        f"(write {small['write']:.1f}, read {small['read']:.1f}),",
        f"{met(min(spec.values()) >= GOAL_RATIO)} against the figures of the format's description",
        f"(write {spec['write']:.1f}, read {spec['read']:.1f}).",
    ]
    one, *more = (statistics.median(values) for values in several.values())
    if more:
        said.append(f"{max(several)} processes read {more[0] / one:.1f} times as fast as one.")
    said.append("How many times as fast as others, and by CPU time, which other work on the machine changes less:")
    return "\n\n".join([" ".join(said), _compared(rate)])


def _compared(rate: Rate) -> str:
    others = (FLOOR, *PACKAGES)
    rows = []
    for ours in (OURS, SMALL_CHUNKS):
        by_cpu = _times(rate.cpu, ours)
        for of, times in _times(rate.clock, ours).items():
            cells = [f"{times[who]:.2f}, CPU {by_cpu[of][who]:.2f}" if who in times else "" for who in others]
            rows.append([f"{_called(of)}: {ours}", *cells])
    return grid(["times as fast", *others], rows)


def _times(rates: Rates, ours: str) -> dict[Of, dict[str, float]]:
    """How many times as fast as each other library, by repeats measured one after the other."""
    return {
        of: {
            who: statistics.median(a / b for a, b in zip(by[ours], values, strict=True))
            for who, values in by.items()
            if who not in (OURS, SMALL_CHUNKS)
        }
        for of, by in rates.items()
        if ours in by
    }


def _fastest(times: dict[Of, dict[str, float]]) -> str:
    lost = [
        f"{_called(of)}: {ratio:.2f} times as fast as {who}"
        for of, by in times.items()
        for who, ratio in by.items()
        if ratio <= 1
    ]
    return f"missed ({'; '.join(lost)})" if lost else "met"


def _called(of: Of) -> str:
    compressor, name, verb = of
    return f"{verb}, {name}, {compressor if compressor != 'none' else 'uncompressed'}"


if __name__ == "__main__":
    main()
