"""Runs in torchx's environment: runs as many jobs of `true` as each input line says, by its local scheduler."""

from __future__ import annotations

import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from torchx.runner import Runner, get_runner  # type: ignore[import-not-found]
from torchx.specs import AppDef, Role  # type: ignore[import-not-found]

POLL_SECONDS = 0.002
# torchx checks every 0.1 s whether the log of an ended job is complete; waiting one by one would add these up.
WAITING = 32


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="torchx-") as folder:
        print("ready", flush=True)
        for line in sys.stdin:
            count = int(line)
            with get_runner(cache_size=count + 1) as runner:  # it remembers this many jobs
                print(*_states(runner, count, folder), flush=True)


def _states(runner: Runner, count: int, folder: str) -> set[str]:
    true = AppDef("true", [Role("true", image="", entrypoint="true")])
    jobs = [runner.run(true, "local_cwd", {"log_dir": folder}) for _ in range(count)]
    with ThreadPoolExecutor(WAITING) as pool:
        return {status.state.name for status in pool.map(lambda job: runner.wait(job, POLL_SECONDS), jobs)}


if __name__ == "__main__":
    main()
