"""Measures submit to final state for a job without packages and for one with a cached environment."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1])]

from bench import server  # noqa: E402
from bench.table import Row, arguments, met, seconds, tell  # noqa: E402
from paddlecloud.model.state import JobState  # noqa: E402
from paddlecloud.sdk.client import Client  # noqa: E402
from tests.wheels import wheel  # noqa: E402

GOAL_MILLISECONDS = 300
COMMAND = "python -c pass"
PACKAGE = "a_package_of_the_bench"


def main() -> None:
    given = arguments(__doc__ or "", repeats=20)
    with tempfile.TemporaryDirectory(prefix="paddlecloud-bench-") as folder, server.running() as client:
        without, having = Path(folder, "without"), Path(folder, "with")
        _fill(without, having)
        _run(client, without, COMMAND)
        first = Row("its environment is built", [_milliseconds(lambda: _run(client, having, COMMAND))], "ms")
        pairs = [
            (
                _milliseconds(lambda: _run(client, without, COMMAND)),
                _milliseconds(lambda: _run(client, having, f"python -c 'import {PACKAGE}'")),
            )
            for _ in range(given.repeats)
        ]
    plain = Row("no environment", [one for one, _ in pairs], "ms")
    cached = Row("its environment is there", [other for _, other in pairs], "ms")
    more = cached.median - plain.median
    verdict = (
        f"Goal of less than {GOAL_MILLISECONDS} ms more for an environment that is there: "
        f"{met(more < GOAL_MILLISECONDS)}, {more:.0f} ms."
    )
    tell("environments", [plain, first, cached], verdict, write=given.write)


def _fill(without: Path, having: Path) -> None:
    """Create two folders, one of which requires a package that no machine has installed."""
    without.mkdir()
    having.mkdir()
    made = wheel(having, PACKAGE, "")
    (having / "requirements.txt").write_text(f"./{made.name}\n")


def _run(client: Client, folder: Path, command: str) -> None:
    job = client.wait(client.submit(folder, command=command).id)
    if job.state is not JobState.SUCCESS:
        raise SystemExit(f"{job.id} ended as {job.state.label}: {job.error}")


def _milliseconds(action: Callable[[], None]) -> float:
    return 1000 * seconds(action)


if __name__ == "__main__":
    main()
