"""Compares the job rate of this code with that of another checkout, alternating in one run.

It shows whether a change made jobs slower. `python bench/turns.py --other ../before` compares with that checkout, whose
`.venv` is created by its `make check`.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1])]

from bench import server  # noqa: E402
from bench.jobs import CONFIG, JOBS, many  # noqa: E402
from bench.table import Row, arguments, seconds, tell  # noqa: E402
from paddlecloud.sdk.client import Client  # noqa: E402

GOAL = 0.95
_CONFIG = f'{CONFIG}policy = "open"\n[rates]\nsubmits_a_minute = 0\n'
_KINDS = {"embedded": False, "shared, as root or a plain account": True}


def main() -> None:
    given = arguments(__doc__ or "", repeats=7, other=True)
    rows: list[Row] = []
    ratios = []
    for kind, shared in _KINDS.items():
        this, other = _by_turns(Path(given.other), given.repeats, shared=shared)
        rows += [
            Row(f"{kind}: {JOBS} jobs, this code", this, "jobs/s"),
            Row(f"{kind}: {JOBS} jobs, the code before", other, "jobs/s"),
        ]
        ratios.append(f"{rows[-2].median / rows[-1].median:.2f} {kind}")
    tell(
        "turns", rows, f"This code's rate is {', '.join(ratios)} of the code before (goal: {GOAL}).", write=given.write
    )


def _by_turns(other: Path, repeats: int, *, shared: bool) -> tuple[list[float], list[float]]:
    commands = [server.COMMAND, [str(other.absolute() / ".venv/bin/python"), "-m", "paddlecloud"]]
    with ExitStack() as stack:
        clients = [stack.enter_context(server.running(_CONFIG, command=command, shared=shared)) for command in commands]
        for client in clients:
            _rate(client)
        found: list[list[float]] = [[], []]
        for turn in range(repeats):
            for number in (0, 1) if turn % 2 else (1, 0):
                found[number].append(_rate(clients[number]))
    return found[0], found[1]


def _rate(client: Client) -> float:
    last = max([moved.seq for moved in client.events()], default=0)
    return JOBS / seconds(partial(many, client, last))


if __name__ == "__main__":
    main()
