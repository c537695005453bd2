"""Measures PLSC's example with 10,000 classes and two trainers: images per second, minutes to a goal, and overhead.

It needs the Python with PaddlePaddle that `make frameworks` installs, and takes about twenty minutes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

sys.path[:0] = [str(Path(__file__).parents[1])]

from bench import server  # noqa: E402
from bench.table import Row, arguments, met, tell  # noqa: E402
from paddlecloud.model.state import JobState  # noqa: E402
from paddlecloud.sdk.client import Client  # noqa: E402

JOB = Path(__file__).parents[1] / "examples" / "plsc" / "job"
PYTHON = Path(sys.prefix) / "frameworks/bin/python"
CLASSES = 10_000
GOAL = 0.9
GOAL_MINUTES = {"full softmax": 12, "partial FC": 8}
GOAL_PERCENT = 2.0
LOOK_SECONDS = 0.5
OURS, TASKS = "platform", "job"


@dataclass(frozen=True, slots=True)
class Trained:
    """A finished job: the figures of each pass, the seconds since its submit, and the CPU seconds."""

    passes: list[dict[str, float]]
    seconds: float
    platform_seconds: float
    job_seconds: float

    @property
    def speeds(self) -> list[float]:
        return [one["images_per_second"] for one in self.passes]

    @property
    def percent(self) -> float:
        return 100 * self.platform_seconds / self.job_seconds

    @property
    def best(self) -> float:
        return max(one["test"] for one in self.passes)

    def minutes_to(self, goal: float) -> float | None:
        """From the submit to the end of the first pass that reaches the goal; None if no pass did."""
        for one in self.passes:
            if one["test"] > goal:
                return (self.seconds - (self.passes[-1]["seconds"] - one["seconds"])) / 60
        return None


def main() -> None:
    given = arguments(__doc__ or "", repeats=1)
    if not PYTHON.exists():
        raise SystemExit(f"PaddlePaddle is not at {PYTHON}: run `make frameworks`")
    with tempfile.TemporaryDirectory(prefix="paddlecloud-bench-") as name:
        folder = Path(name)
        _prepare(folder / "job")
        config = f'[jobs]\npython = "{PYTHON}"\n[clusters.local]\nbackend = "local"\ncpus = 2\nmemory = "8Gi"\n'
        with server.running(config, below=folder) as client:
            alone = [_train(client, folder, 1, "--passes 1") for _ in range(given.repeats)]
            by = {
                "full softmax": [_train(client, folder, 2, "") for _ in range(given.repeats)],
                "partial FC": [_train(client, folder, 2, "--partial-fc 0.1") for _ in range(given.repeats)],
            }
    tell("plsc", list(_rows(alone, by)), _verdict(by), write=given.write)


def _prepare(job: Path) -> None:
    shutil.copytree(JOB, job, ignore=shutil.ignore_patterns("__pycache__", "data", "output", "resume"))
    make = [str(PYTHON), str(job / "make_data.py"), str(job / "data"), "--classes", str(CLASSES)]
    subprocess.run(make, check=True)


def _train(client: Client, folder: Path, trainers: int, words: str) -> Trained:
    print(f"{trainers} trainers, {words or 'as it is'} …", file=sys.stderr, flush=True)
    [told] = folder.glob("paddlecloud-bench-*/data/server.json")
    with Meter(json.loads(told.read_text())["pid"]) as meter:
        job = client.submit(folder / "job", command=f"sh run.sh {words}".strip(), nodes=trainers, wall_time="1h")
        meter.job = job.id
        ended = client.wait(job.id)
    if ended.state is not JobState.SUCCESS or ended.finished_at is None:
        raise SystemExit(f"{job.id} ended as {ended.state.label}: {ended.error}")
    with tempfile.TemporaryDirectory(dir=folder) as place:
        client.download(job.id, Path(place, "results"))
        passes = json.loads(Path(place, "results", job.id, "rank-0", "figures.json").read_text())
    return Trained(passes, (ended.finished_at - job.created_at).total_seconds(), meter.spent(OURS), meter.spent(TASKS))


class Meter:
    """Counts CPU seconds of the platform (the server, its helper and the job's supervisors) and of the job."""

    def __init__(self, pid: int) -> None:
        self.job = ""
        self._pid = pid
        self._before = {number: _cpu_seconds(number) for number in _platform(pid)}
        self._last: dict[int, tuple[str, float]] = {}
        self._over = threading.Event()
        self._looking = threading.Thread(target=self._look)

    def __enter__(self) -> Self:
        self._looking.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._looking.join()

    def spent(self, by: str) -> float:
        return sum(seconds for whose, seconds in self._last.values() if whose == by)

    def _look(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            for number, whose in _whose(self._pid, self.job).items():
                with suppress(OSError):
                    self._last[number] = whose, _cpu_seconds(number) - self._before.get(number, 0.0)


def _whose(pid: int, job: str) -> dict[int, str]:
    """A job's processes have its id in their environment; their supervisor is an ancestor named paddlecloud-run."""
    found = dict.fromkeys(_platform(pid), OURS)
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            if job and job.encode() in (entry / "environ").read_bytes():
                found.setdefault(int(entry.name), TASKS)
                above = _parent(int(entry.name))
                while above > 1 and Path(f"/proc/{above}/comm").read_text() != "paddlecloud-run\n":
                    above = _parent(above)
                if above > 1:
                    found[above] = OURS
    return found


def _platform(pid: int) -> list[int]:
    """The server and its child processes. Tasks are not among them, since they outlive the server."""
    found = [pid]
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            if _parent(int(entry.name)) == pid:
                found.append(int(entry.name))
    return found


def _parent(number: int) -> int:
    return int(Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[1])


def _cpu_seconds(number: int) -> float:
    """Only its own, since children are counted separately."""
    fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _rows(alone: list[Trained], by: dict[str, list[Trained]]) -> Iterator[Row]:
    yield Row("1 trainer, full softmax", [speed for one in alone for speed in one.speeds], "images/s")
    for kind, runs in by.items():
        yield Row(f"2 trainers, {kind}", [speed for one in runs for speed in one.speeds], "images/s")
    for kind, runs in by.items():
        yield Row(f"2 trainers, {kind}: test top-1 at the end", [one.passes[-1]["test"] for one in runs], "")
        if reached := [minutes for one in runs if (minutes := one.minutes_to(GOAL)) is not None]:
            yield Row(f"2 trainers, {kind}: from submit to test top-1 above {GOAL}", reached, "min")
    yield Row("CPU time of the platform, of the job's", [one.percent for runs in by.values() for one in runs], "%")


def _verdict(by: dict[str, list[Trained]]) -> str:
    said = []
    for kind, runs in by.items():
        times = [one.minutes_to(GOAL) for one in runs]
        within = GOAL_MINUTES[kind]
        is_met = all(minutes is not None and minutes <= within for minutes in times)
        best = min(one.best for one in runs)
        said.append(
            f"Goal of test top-1 above {GOAL} within {within} minutes with {kind}: {met(is_met)}, best {best:.3f}."
        )
    most = max(one.percent for runs in by.values() for one in runs)
    said.append(f"Goal of a platform that takes less than {GOAL_PERCENT:g} % of the job's CPU time: ")
    said[-1] += f"{met(most < GOAL_PERCENT)}, {most:.2f} %."
    return " ".join(said)


if __name__ == "__main__":
    main()
