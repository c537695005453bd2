"""Random faults: 60 submits are typed while the server, its helper and supervisors of tasks are killed.

Every job that a command was told of ends once, in its right state; no command blames its user, and nothing is left.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1])]

from bench import server  # noqa: E402
from paddlecloud.model.state import JobState  # noqa: E402
from paddlecloud.sdk.client import Client  # noqa: E402

CONFIG = '[jobs]\nattempts = 20\ngrace = "1s"\n[clusters.local]\nbackend = "local"\ncpus = 16\n'
SUBMITS = 60
SERVERS, OTHERS = 25, 10  # how many are killed
TYPISTS = 3
TRIES = 20
UNREACHABLE = 4
END_SECONDS = 120.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    seed = parser.parse_args().seed
    told, wrong = run(seed)
    print(told)
    if wrong:
        raise SystemExit("\n".join(wrong))


def run(seed: int) -> tuple[str, list[str]]:
    """What happened, in words, and all that went wrong."""
    with tempfile.TemporaryDirectory(prefix="paddlecloud-faults-", dir="/srv" if os.geteuid() == 0 else None) as below:
        with server.running(CONFIG, below=Path(below)):
            data = next(Path(below).glob("*/data"))
            return _Faults(data, random.Random(seed)).run(seed)


class _Faults:
    def __init__(self, data: Path, chance: random.Random) -> None:
        self.data = data
        self.chance = chance
        self.env = {
            "HOME": str(data.parent / "home"),
            "PATH": os.environ["PATH"],
            "PADDLECLOUD_DATA": str(data),
            "LANG": "C.UTF-8",
        }
        self.jobs: dict[int, str] = {}
        self.wrong: list[str] = []
        self.codes: Counter[int] = Counter()
        self.killed: Counter[str] = Counter()

    def run(self, seed: int) -> tuple[str, list[str]]:
        began = time.monotonic()
        with ThreadPoolExecutor(TYPISTS) as typists:
            typing = [typists.submit(self._submit, number) for number in range(SUBMITS)]
            faults = ["server"] * SERVERS + ["other"] * OTHERS
            self.chance.shuffle(faults)
            for fault in faults:
                time.sleep(self.chance.uniform(0.2, 1.5))
                while not self._kill(fault):
                    self._type("ls")  # which starts the server again, if nobody else does
            for one in typing:
                one.result()
        self._type("up")
        with Client(server.profile_of(self.data)) as client:
            ends = Counter(self._end(client, number, job) for number, job in sorted(self.jobs.items()))
        self._look_for_leftovers()
        told = (
            f"Random faults (seed {seed}): {SUBMITS} submits typed while the server was killed {self.killed['server']} "
            f"times and helper and supervisors {self.killed['helper'] + self.killed['supervisor']} times, in "
            f"{time.monotonic() - began:.0f} s; {ends[JobState.SUCCESS]} succeeded, {ends[JobState.FAILED]} failed as "
            f"asked; {len(self.wrong)} went wrong."
        )
        return told, [f"seed {seed}: {one}" for one in self.wrong]

    def _submit(self, number: int) -> None:
        """As a person would: again, for as long as the server is said to be away."""
        command = f"echo begin; sleep {0.2 + number % 5 / 4}; echo end; exit {0 if number % 4 else 7}"
        for _ in range(TRIES):
            done = self._type("submit", "--no-files", "--name", f"fault-{number}", "--", command)
            self.codes[done.returncode] += 1
            if done.returncode == 0:
                self.jobs[number] = done.stdout.split()[-1]
                return
            if done.returncode != UNREACHABLE:
                self.wrong.append(f"submit {number} ended with {done.returncode}: {done.stderr[-300:]}")
                return
        self.wrong.append(f"submit {number} never reached the server")

    def _type(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*server.COMMAND, *words], env=self.env, cwd="/", capture_output=True, text=True, timeout=300, check=False
        )

    def _kill(self, fault: str) -> bool:
        """Whether there was one to kill."""
        living = self._living()
        victims = {"server": ["server"], "other": self.chance.sample(["helper", "supervisor"], 2)}[fault]
        for victim in victims:
            if living[victim]:
                with suppress(ProcessLookupError):
                    os.kill(self.chance.choice(living[victim]), signal.SIGKILL)
                    self.killed[victim] += 1
                    return True
        return False

    def _living(self) -> Mapping[str, list[int]]:
        """The processes of this data folder by what they are."""
        found: dict[str, list[int]] = {"server": [], "helper": [], "supervisor": []}
        with suppress(OSError, ValueError, KeyError):
            pid = json.loads((self.data / "server.json").read_text())["pid"]
            if "serve" in Path(f"/proc/{pid}/cmdline").read_text():
                found["server"].append(pid)
        for place in Path("/proc").glob("[0-9]*"):
            with suppress(OSError, UnicodeDecodeError):
                if f"{self.data}/tasks" in (place / "cmdline").read_text():
                    name = (place / "comm").read_text().strip()
                    found["supervisor" if name == "paddlecloud-run" else "helper"].append(int(place.name))
        return found

    def _end(self, client: Client, number: int, job: str) -> JobState | None:
        expected = JobState.SUCCESS if number % 4 else JobState.FAILED
        try:
            state = client.wait(job, timeout=END_SECONDS).state
            finals = [row for row in client.get(job).history if row.to_state.final]
        except Exception as error:
            self.wrong.append(f"{job}: {error!r}")
            return None
        if state is not expected or len(finals) != 1:
            self.wrong.append(f"{job} ended as {state.label}, {len(finals)} times, and not as {expected.label}")
        return state

    def _look_for_leftovers(self) -> None:
        over = threading.Event()
        deadline = time.monotonic() + END_SECONDS
        while (left := self._living()["supervisor"]) and time.monotonic() < deadline:
            over.wait(0.2)
        if left:
            self.wrong.append(f"supervisors are left: {left}")


if __name__ == "__main__":
    main()
