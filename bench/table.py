"""Prints measurements as a table with median and spread, which docs/benchmarks.md can include."""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"


@dataclass(frozen=True, slots=True)
class Row:
    """One measured quantity with all its repeats, in `unit`."""

    what: str
    values: Sequence[float]
    unit: str

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def cells(self) -> tuple[str, ...]:
        spread = f"{_figure(min(self.values))} – {_figure(max(self.values))}"
        return self.what, f"{_figure(self.median)} {self.unit}", spread, str(len(self.values))


def arguments(
    description: str, *, repeats: int, megabytes: int | None = None, other: bool = False
) -> argparse.Namespace:
    """Parse a benchmark's arguments. `megabytes` is the default amount of data, if it can be changed; `other` says that
    it compares with another checkout."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--repeats", type=int, default=repeats, help=f"how often to measure (default {repeats})")
    if megabytes is not None:
        parser.add_argument(
            "--megabytes", type=int, default=megabytes, help=f"how much each time (default {megabytes})"
        )
    if other:
        parser.add_argument("--other", required=True, help="the checkout to compare with, with its .venv")
    parser.add_argument("--write", action="store_true", help="put the table into docs/benchmarks.md")
    return parser.parse_args()


def seconds(action: Callable[[], object]) -> float:
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def tell(name: str, rows: Sequence[Row], verdict: str, *, write: bool) -> None:
    """Print the table and the verdict; with `write`, also put them into docs/benchmarks.md."""
    head = ("what", "median", "spread", "repeats")
    text = "\n".join([grid(head, [row.cells() for row in rows]), "", verdict])
    print(text)
    if write:
        keep(name, text)


def met(is_met: bool) -> str:
    """The outcome of a goal."""
    return "met" if is_met else "missed"


def grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---" for _ in head], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def keep(name: str, text: str) -> None:
    """Put a text, with the machine and date it was measured on, into the page between its markers."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    page = PAGE.read_text(encoding="utf-8")
    before, found, rest = page.partition(begin)
    _, found_end, after = rest.partition(end)
    if not found or not found_end:
        raise SystemExit(f"{PAGE} has no place for {name}: add the lines {begin} and {end}")
    kept = f"{begin}\n{text}\n\n{_circumstances(name)}\n{end}"
    PAGE.write_text(f"{before}{kept}{after}", encoding="utf-8")


def _figure(value: float) -> str:
    """Three significant figures, without exponents."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _circumstances(name: str) -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    machine = f"{os.cpu_count()} CPUs ({_cpu_model()}), {memory:.0f} GiB, {platform.system()} {platform.release()}"
    given = shlex.join(["python", f"bench/{name}.py", *sys.argv[1:]])
    return f"`{given}`, Python {platform.python_version()}, {machine}, {datetime.now(UTC):%Y-%m-%d}"


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()
