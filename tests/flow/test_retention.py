"""Space is freed while jobs run: what is due goes, whatever moment the server dies at, and no job ever notices."""

from __future__ import annotations

import json
import os
import random
import re
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from paddlecloud.model.state import JobState
from paddlecloud.sdk.client import Client
from tests.flow.lab import Lab, a_free_port
from tests.waiting import wait_until

KILLS = 8
JOBS = 24

# What was read once stays readable in an overlay though it is removed below: at its end it reads another file.
RUN = """test "$(cat input.txt)" = here || exit 9
mkdir -p $OUTPUT_PATH/d
for i in $(seq 300); do echo $i > $OUTPUT_PATH/d/$i; done
sleep ${1:-0}
test -f $OUTPUT_PATH/d/300 && test "$(cat later.txt)" = here
"""


def test_an_operator_sees_what_uses_the_space_and_frees_it(lab: Lab) -> None:
    lab.configure('[retention]\nresults = "1s"\n')
    job = lab.submit('head -c 3000000 /dev/urandom > "$OUTPUT_PATH/model"; echo said')
    lab.ends(job, "success")

    shown = lab.type("df", "--now")
    lines = {line.split()[0]: line for line in shown.stdout.splitlines()}
    assert list(lines)[:6] == ["KIND", "records", "uploads", "results", "logs", "tasks"]
    assert re.search(r"results +2\.9 MiB +1 .* 1 s$", lines["results"])
    assert lines["uploads"].endswith("30 days")
    assert lines["logs"].endswith("for ever")
    assert re.search(r"free on the disk of ", shown.stderr)
    (user,) = json.loads(lab.out("df", "--users", "-o", "json"))["users"]
    assert user["results"]["size_bytes"] > 2_900_000

    def may_go() -> bool:
        return "retention.results = 1 s" in lab.out("df", "--dry-run")

    wait_until(may_go, "its results may go")
    assert "2.9 MiB" in lab.out("df", "--collect")
    assert "nothing has been kept long enough" in lab.type("df", "--collect").stderr

    gone = f"the results of {job} were removed on "
    assert gone.removeprefix(f"the results of {job} were ") in lab.out("show", job)
    listed = lab.type("get_files", f"--job_id={job}")
    assert listed.stdout.split("\n")[1].startswith(f"output/{job}/log/trainer-0.log")
    assert gone in listed.stderr
    assert lab.out("logs", job) == "said\n"
    refused = lab.type("get_files", f"--job_id={job}", "--prefix=rank-0", code=102)
    assert refused.stderr.startswith(f"paddlecloud: {gone}")
    assert "(retention.results = 1 s)" in refused.stderr
    brought = lab.type("cp", job, "results")
    assert gone in brought.stderr
    assert os.listdir(lab.work / "results" / job) == ["log"]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_jobs_run_whatever_is_collected_and_whenever_the_server_dies(lab: Lab) -> None:
    seed = random.SystemRandom().randrange(2**32)
    chance = random.Random(seed)
    lab.configure(
        f"[server]\nport = {a_free_port()}\n"
        '[retention]\nresults = "1s"\nlogs = "1s"\nuploads = "1s"\nevery = "1s"\n'
        '[clusters.local]\nbackend = "local"\ncpus = 20\n'
    )
    folder = lab.folder(run_sh=RUN)
    for name in ("input.txt", "later.txt"):
        (folder / name).write_text("here")
    lab.type("up")
    client = lab.client()
    long = client.submit(folder, command="sh run.sh 25", name="long").id
    jobs: list[str] = []
    submitter = threading.Thread(target=submit_all, args=(client, folder, jobs))
    submitter.start()
    for _ in range(KILLS):
        time.sleep(chance.uniform(0.3, 2.5))
        lab.kill_server()
        lab.type("up")
    submitter.join()
    # Nobody asks for its folder while it runs.
    last = client.submit(folder, command="sh run.sh 8", name="last").id
    for job in [*jobs, long, last]:
        ended = wait_until(partial(a_final, client, job), f"{job} ends (seed {seed})", seconds=60)
        assert ended is JobState.SUCCESS, (seed, client.get(job))
    assert len(jobs) == JOBS
    data = lab.data
    user = json.loads((data / "embedded.json").read_text())["user"]
    for left in (data / "results" / user, data / "marks", data / "files" / user / "trees"):
        wait_until(partial(is_empty, left), f"{left} is empty (seed {seed})", seconds=30)
    for job in [*jobs, long, last]:
        assert sorted(one.kind for one in client.get(job).removed) == ["logs", "results"], seed
    assert len(client.list()) == JOBS + 2
    assert "Traceback" not in (data / "server.log").read_text(), seed


def submit_all(client: Client, folder: Path, jobs: list[str]) -> None:
    """The same folder again and again, as it is used, due, and collected."""
    for number in range(JOBS):
        jobs.append(client.submit(folder, command="sh run.sh", name=f"short-{number}").id)
        time.sleep(0.3 * (number % 4))


def is_empty(folder: Path) -> bool:
    return not os.listdir(folder)


def a_final(client: Client, job: str) -> JobState | None:
    state = client.get(job).job.state
    return state if state.final else None
