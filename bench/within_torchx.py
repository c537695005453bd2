"""Runs in torchx's environment: jobs of `true` by its own runner and its local scheduler, as many as each line says."""

from __future__ import annotations

import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from torchx.runner import Runner, get_runner  # type: ignore[import-not-found]
from torchx.specs import AppDef, Role  # type: ignore[import-not-found]

POLL_SECONDS = 0.002
# It looks every 0.1 s whether the log of a job that ended is whole: one after the other would add these up.
WAITING = 32


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="torchx-") as folder:
        print("ready", flush=True)
        for line in sys.stdin:
            count = int(line)
            with get_runner(cache_size=count + 1) as runner:  # so many it remembers
                print(*_states(runner, count, folder), flush=True)


def _states(runner: Runner, count: int, folder: str) -> set[str]:
    true = AppDef("true", [Role("true", image="", entrypoint="true")])
    jobs = [runner.run(true, "local_cwd", {"log_dir": folder}) for _ in range(count)]
    with ThreadPoolExecutor(WAITING) as pool:
        return {status.state.name for status in pool.map(lambda job: runner.wait(job, POLL_SECONDS), jobs)}


if __name__ == "__main__":
    main()
