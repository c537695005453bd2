"""Runs jobs of every kind for an hour on one server, whose memory, threads and open files must not grow.

Random faults follow (bench/faults.py).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1])]

from bench import faults, server  # noqa: E402
from bench.table import grid, keep  # noqa: E402
from paddlecloud.model.errors import ConflictError  # noqa: E402
from paddlecloud.model.job import JobSpec, Resources, RoleSpec  # noqa: E402
from paddlecloud.model.state import JobState  # noqa: E402
from paddlecloud.sdk.client import Client  # noqa: E402

# `tight` has room for one job, which always occupies it: any other job there waits until it times out.
CONFIG = """
[jobs]
schedule_limit = "60s"
grace = "1s"
[clusters.local]
backend = "local"
cpus = 16
memory = "16Gi"
[clusters.tight]
backend = "local"
cpus = 1
memory = "1Gi"
"""
WORKERS = 6
LOG_BYTES = 2_000_000
FILES = 40
SAMPLE_SECONDS = 15.0
ROWS = 8
GROWTH = 1.15  # the second half over the first, after the warm-up, that still counts as flat


@dataclass(frozen=True, slots=True)
class Sample:
    at: float
    jobs: int
    resident: int
    files: int
    threads: int
    helper_resident: int
    records: int


class Kinds:
    """The kinds of jobs; each method runs one job and returns its final state."""

    def __init__(self, client: Client, work: Path) -> None:
        self.client = client
        self.work = work

    def success(self) -> JobState:
        return self._end(_spec("echo hello"))

    def failed(self) -> JobState:
        return self._end(_spec("echo wrong >&2; exit 3"))

    def signalled(self) -> JobState:
        return self._end(_spec("kill -SEGV $$"))

    def timeout(self) -> JobState:
        return self._end(_spec("sleep 60", wall_time_seconds=1))

    def out_of_memory(self) -> JobState:
        command = "python3 -c 'x = bytearray(300 << 20)'"
        return self._end(_spec(command, resources=Resources(cpus=0.5, memory_bytes=64 << 20)))

    def gang(self) -> JobState:
        return self._end(_spec("echo $PADDLE_TRAINER_ID of $PADDLE_TRAINERS_NUM; sleep 0.2", count=3))

    def gang_failed(self) -> JobState:
        return self._end(_spec("test $PADDLE_TRAINER_ID = 1 && exit 5; sleep 60", count=2))

    def killed(self) -> JobState:
        job = self._submit(_spec("sleep 60"))
        self._reaches(job, JobState.RUNNING)
        self._kill(job)
        return self._wait(job)

    def killed_in_the_queue(self) -> JobState:
        job = self._submit(_spec("true", cluster="tight"))
        self._kill(job)
        return self._wait(job)

    def schedule_timeout(self) -> JobState:
        return self._end(_spec("true", cluster="tight"))

    def lost(self) -> JobState:
        """Kill its supervisor once; the next attempt succeeds."""
        job = self._submit(_spec("sleep 1"))
        self._reaches(job, JobState.RUNNING)
        for pid in _supervisors(job):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return self._wait(job)

    def long_log(self) -> JobState:
        job = self._submit(_spec(f"yes a line of a long log | head -c {LOG_BYTES}; sleep 0.5"))
        read = sum(len(piece.text) for piece in self.client.logs(job, follow=True))
        if read < LOG_BYTES:
            raise AssertionError(f"{job}: only {read} of {LOG_BYTES} bytes of its log were read")
        return self._wait(job)

    def files(self) -> JobState:
        with tempfile.TemporaryDirectory(dir=self.work) as place:
            folder = Path(place, "job")
            folder.mkdir()
            for number in range(FILES):
                (folder / f"{number}.bin").write_bytes(os.urandom(4096))
            job = self.client.submit(folder, spec=_spec("cp -r . $OUTPUT_PATH/")).id
            end = self._wait(job)
            self.client.download(job, Path(place, "back"))
            back = Path(place, "back", job, "rank-0")
            if _digests(back) != _digests(folder):
                raise AssertionError(f"{job}: its results differ from the uploaded files")
            return end

    def _end(self, spec: JobSpec) -> JobState:
        return self._wait(self._submit(spec))

    def _submit(self, spec: JobSpec) -> str:
        return self.client.submit(spec=spec).id

    def _wait(self, job: str) -> JobState:
        return self.client.wait(job, timeout=300).state

    def _reaches(self, job: str, state: JobState) -> None:
        for moved in self.client.events(job, follow=True):
            if moved.to_state is state or moved.to_state.final:
                return

    def _kill(self, job: str) -> None:
        with suppress(ConflictError):
            self.client.kill(job)


EXPECTED: dict[str, tuple[JobState, int]] = {  # by kind: its final state and its relative frequency
    "success": (JobState.SUCCESS, 20),
    "failed": (JobState.FAILED, 10),
    "signalled": (JobState.FAILED, 5),
    "timeout": (JobState.TIMEOUT, 5),
    "out_of_memory": (JobState.FAILED, 3),
    "gang": (JobState.SUCCESS, 5),
    "gang_failed": (JobState.FAILED, 3),
    "killed": (JobState.KILLED, 5),
    "killed_in_the_queue": (JobState.KILLED, 5),
    "schedule_timeout": (JobState.SCHEDULE_TIMEOUT, 1),
    "lost": (JobState.SUCCESS, 3),
    "long_log": (JobState.SUCCESS, 3),
    "files": (JobState.SUCCESS, 5),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="how long (default 60)")
    parser.add_argument("--write", action="store_true", help="put the table into docs/benchmarks.md")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="paddlecloud-soak-") as work:
        with server.running(CONFIG, below=Path(work)) as client:
            ends, wrong, samples = _soak(client, Path(work), 60 * given.minutes)
    told, went_wrong = faults.run(random.SystemRandom().randrange(2**32))
    text = f"{_told(ends, wrong, samples)}\n\n{told}"
    print(text)
    if given.write:
        keep("soak", text)
    if wrong or went_wrong:
        raise SystemExit("\n".join([f"{len(wrong)} jobs did not end as expected", *went_wrong]))


def _soak(client: Client, work: Path, duration: float) -> tuple[Counter[str], list[str], list[Sample]]:
    data = next(work.glob("*/data"))
    pid: int = json.loads((data / "server.json").read_text())["pid"]
    begun, ends, wrong = time.monotonic(), Counter[str](), list[str]()
    over = threading.Event()
    filler = client.submit(spec=_spec("sleep 1000000", cluster="tight", wall_time_seconds=10**7)).id

    def work_on(number: int) -> None:
        chance = random.Random(number)
        kinds = Kinds(client, work)
        names = [name for name, (_, weight) in EXPECTED.items() for _ in range(weight)]
        while not over.is_set():
            name = chance.choice(names)
            run: Callable[[], JobState] = getattr(kinds, name)
            try:
                state = run()
            except Exception as error:
                wrong.append(f"{name}: {error!r}")
                continue
            ends[name] += 1
            if state is not EXPECTED[name][0]:
                wrong.append(f"{name} ended as {state.label}")

    samples: list[Sample] = []
    with ThreadPoolExecutor(WORKERS) as pool:
        workers = [pool.submit(work_on, number) for number in range(WORKERS)]
        while (past := time.monotonic() - begun) < duration:
            samples.append(_sample(past, sum(ends.values()), pid, data))
            print(f"{past / 60:5.1f} min {samples[-1]} wrong: {wrong[-1:]}", file=sys.stderr, flush=True)
            time.sleep(min(SAMPLE_SECONDS, max(0.0, duration - past)))
        over.set()
    for worker in workers:
        worker.result()
    samples.append(_sample(time.monotonic() - begun, sum(ends.values()), pid, data))
    client.kill(filler)
    client.wait(filler)
    return ends, wrong, samples


def _sample(at: float, jobs: int, pid: int, data: Path) -> Sample:
    helpers = [child for child in _processes() if _parent(child) == pid]
    return Sample(
        at=at,
        jobs=jobs,
        resident=_resident(pid),
        files=len(list(Path(f"/proc/{pid}/fd").iterdir())),
        threads=len(list(Path(f"/proc/{pid}/task").iterdir())),
        helper_resident=sum(map(_resident, helpers)),
        records=sum(file.stat().st_size for file in data.glob("paddlecloud.db*")),
    )


def _told(ends: Counter[str], wrong: list[str], samples: list[Sample]) -> str:
    chosen = samples[:: max(1, len(samples) // ROWS)]
    head = ("minute", "jobs ended", "server's memory", "open files", "threads", "helper's memory", "records")
    rows = [
        (
            f"{one.at / 60:.0f}",
            str(one.jobs),
            f"{one.resident / 2**20:.0f} MiB",
            str(one.files),
            str(one.threads),
            f"{one.helper_resident / 2**20:.0f} MiB",
            f"{one.records / 2**20:.1f} MiB",
        )
        for one in [*chosen[:-1], samples[-1]]
    ]
    kinds = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in ends.most_common())
    warm = samples[len(samples) // 6 :]
    first, second = warm[: len(warm) // 2], warm[len(warm) // 2 :]
    memory = statistics.median(one.resident for one in second) / statistics.median(one.resident for one in first)
    files = statistics.median(one.files for one in second) / statistics.median(one.files for one in first)
    flat = "flat" if memory <= GROWTH and files <= GROWTH else "NOT FLAT"
    verdict = (
        f"{sum(ends.values())} jobs ended ({kinds}); {len(wrong)} not as they should. After the warm-up the second "
        f"half has {memory:.2f} times the memory and {files:.2f} times the open files of the first (medians): {flat}."
    )
    return grid(head, rows) + "\n\n" + verdict


def _spec(
    command: str,
    *,
    count: int = 1,
    resources: Resources | None = None,
    cluster: str = "local",
    wall_time_seconds: int = 120,
) -> JobSpec:
    small = resources or Resources(cpus=0.5, memory_bytes=256 << 20)
    asked = Resources(cpus=1, memory_bytes=256 << 20) if cluster == "tight" else small
    role = RoleSpec(name="trainer", count=count, command=command, resources=asked)
    return JobSpec(name="soak", roles=(role,), cluster=cluster, wall_time_seconds=wall_time_seconds)


def _supervisors(job: str) -> Iterator[int]:
    """A task's processes have the job's id in their environment; their supervisor is an ancestor."""
    for pid in _processes():
        with suppress(OSError):
            if job.encode() in Path(f"/proc/{pid}/environ").read_bytes():
                above = _parent(pid)
                while above > 1 and Path(f"/proc/{above}/comm").read_text() != "paddlecloud-run\n":
                    above = _parent(above)
                if above > 1:
                    yield above


def _processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _parent(pid: int) -> int:
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def _resident(pid: int) -> int:
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _digests(folder: Path) -> dict[str, str]:
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in folder.rglob("*")
        if file.is_file()
    }


if __name__ == "__main__":
    main()
