"""Runs in Ray's environment: submits as many jobs of `true` as each input line says, by Ray's own client."""

from __future__ import annotations

import sys
import time

from ray.job_submission import JobStatus, JobSubmissionClient  # type: ignore[import-not-found]

POLL_SECONDS = 0.01
START_SECONDS = 90.0


def main() -> None:
    client = _connect(sys.argv[1])
    print("ready", flush=True)
    for line in sys.stdin:
        jobs = [client.submit_job(entrypoint="true") for _ in range(int(line))]
        states = {_wait(client, job).name for job in jobs}
        print(*states, flush=True)


def _connect(server: str) -> JobSubmissionClient:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            return JobSubmissionClient(server)
        except (ConnectionError, RuntimeError):
            if time.monotonic() > deadline:
                raise
        time.sleep(0.1)


def _wait(client: JobSubmissionClient, job: str) -> JobStatus:
    while not (status := client.get_job_status(job)).is_terminal():
        time.sleep(POLL_SECONDS)
    return status


if __name__ == "__main__":
    main()
