"""CPU time until `paddlecloud --help` has answered, beside the bare interpreter and beside other job launchers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1])]

from bench.table import Row, arguments, tell  # noqa: E402

PEERS = {"torchx": "torchx==0.7.0", "dstack": "dstack==0.22.5"}
PEER_FOLDER = Path.home() / ".cache" / "paddlecloud-bench"


def main() -> None:
    given = arguments(__doc__ or "", repeats=10)
    ours = Path(sys.executable).with_name("paddlecloud")
    commands = {
        "`python -c pass` (the floor)": [sys.executable, "-c", "pass"],
        "`paddlecloud --help`": [str(ours), "--help"],
        "`paddlecloud submit --help`": [str(ours), "submit", "--help"],
    }
    for peer, package in PEERS.items():
        if program := _installed(peer, package):
            commands[f"`{peer} --help`"] = [str(program), "--help"]
    for command in commands.values():
        _cpu_milliseconds(command)  # the first run writes byte code
    rows = [
        Row(what, [_cpu_milliseconds(command) for _ in range(given.repeats)], "ms")
        for what, command in commands.items()
    ]
    floor, help_ = rows[0].median, rows[1].median
    verdict = f"`paddlecloud --help` takes {help_ / floor:.1f} times the CPU time of an interpreter that does nothing"
    verdict += "".join(f"; {row.what} takes {row.median / help_:.1f} times ours" for row in rows[3:]) + "."
    tell("start", rows, verdict, write=given.write)


def _cpu_milliseconds(command: list[str]) -> float:
    """User and system time of one run, with its children."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{command} failed with {process.returncode}")
    return 1000 * (used.ru_utime + used.ru_stime)


def _installed(peer: str, package: str) -> Path | None:
    """A peer's program in an environment of its own, which is made once and kept."""
    environment = PEER_FOLDER / package
    program = environment / "bin" / peer
    if not program.exists():
        make = [sys.executable, "-m", "venv", str(environment)]
        install = [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet", package]
        for command in (make, install):
            if subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode:
                print(f"{package} cannot be installed here and is left out", file=sys.stderr)
                return None
    return program


if __name__ == "__main__":
    main()
