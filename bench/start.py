"""Measures the command's CPU time with its children, for `--help` and for a job query, against other job launchers.

The other launchers run only the `--help` of their query, which needs no server: that favours them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

sys.path[:0] = [str(Path(__file__).parents[1])]

from bench import server  # noqa: E402
from bench.peers import DSTACK, RAY, SKYPILOT, TORCHX, LeftOut, installed  # noqa: E402
from bench.table import Row, arguments, tell  # noqa: E402
from paddlecloud.sdk.profile import Profile  # noqa: E402

FLOOR = "`python -c pass` (the floor)"
HELP, QUERY = "`paddlecloud --help`", "`paddlecloud query_job`, answered by a server"
GOAL_MILLISECONDS = 150
GOAL_RATIO = 5
MUCH_SLOWER = {DSTACK, SKYPILOT, RAY}  # the goal says that these are much slower than ours
QUESTIONS = {
    TORCHX: ["torchx", "status"],
    DSTACK: ["dstack", "ps"],
    RAY: ["ray", "job", "status"],
    SKYPILOT: ["sky", "jobs", "queue"],
}


def main() -> None:
    given = arguments(__doc__ or "", repeats=10)
    ours = _ours(given.repeats)
    theirs: dict[str, list[Row]] = {}
    for package, words in QUESTIONS.items():
        try:
            theirs[package] = _theirs(installed(words[0], package), words, given.repeats)
        except LeftOut as why:
            print(f"{words[0]} is left out: {why}", file=sys.stderr)
    rows = [*ours.values(), *(row for peer in theirs.values() for row in peer)]
    tell("start", rows, _verdict(ours, theirs), write=given.write)


def _ours(repeats: int) -> dict[str, Row]:
    command = str(Path(sys.executable).with_name("paddlecloud"))
    with server.running() as client, _home() as home:
        _write_client_conf(home, client.profile)
        job = client.wait(client.submit(command="true").id)
        asked = {
            FLOOR: [sys.executable, "-c", "pass"],
            HELP: [command, "--help"],
            "`paddlecloud submit --help`": [command, "submit", "--help"],
            QUERY: [command, "query_job", f"--job_id={job.id}"],
        }
        return {what: _row(what, words, home, repeats) for what, words in asked.items()}


def _write_client_conf(home: Path, profile: Profile) -> None:
    at = urlsplit(profile.server)
    file = home / "bin" / "paddlecloud" / "conf" / "client.conf"
    file.parent.mkdir(parents=True)
    file.touch(0o600)
    file.write_text(
        f"[main]\nuser_id = {profile.user}\nak = {profile.ak}\nsk = {profile.sk}\n"
        f"[openapi]\nhost = {at.hostname}\nport = {at.port}\n"
    )


def _theirs(program: Path, words: list[str], repeats: int) -> list[Row]:
    """Measure `--help` of the whole command and of its query."""
    with _home() as home:
        return [
            _row(f"`{' '.join(asked)} --help`", [str(program), *asked[1:], "--help"], home, repeats)
            for asked in (words[:1], words)
        ]


@contextmanager
def _home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="paddlecloud-bench-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def _row(what: str, command: list[str], home: Path, repeats: int) -> Row:
    env = {"HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    _cpu_milliseconds(command, env)  # the first run writes bytecode
    return Row(what, [_cpu_milliseconds(command, env) for _ in range(repeats)], "ms")


def _cpu_milliseconds(command: list[str], env: dict[str, str]) -> float:
    """User and system time of one run, with its children."""
    process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{command} failed with {process.returncode}")
    return 1000 * (used.ru_utime + used.ru_stime)


def _verdict(ours: dict[str, Row], theirs: dict[str, list[Row]]) -> str:
    slowest = max(ours.values(), key=lambda row: row.median)
    quick = "met" if slowest.median <= GOAL_MILLISECONDS else "missed"
    said = [f"Goal of at most {GOAL_MILLISECONDS} ms: {quick}, {slowest.what} takes {slowest.median:.0f} ms."]
    ratios = {
        package: (help_.median / ours[HELP].median, question.median / ours[QUERY].median)
        for package, (help_, question) in theirs.items()
    }
    if slow := [ratio for package in ratios.keys() & MUCH_SLOWER for ratio in ratios[package]]:
        below = "met" if min(slow) >= GOAL_RATIO else "missed"
        said.append(f"Goal of {GOAL_RATIO} times less than dstack, Ray and SkyPilot: {below}.")
    if ratios:
        told = [f"{package} {help_:.1f} and {question:.1f}" for package, (help_, question) in ratios.items()]
        said.append(f"Times as much as ours, for `--help` and for the question: {'; '.join(told)}.")
    return " ".join(said)


if __name__ == "__main__":
    main()
