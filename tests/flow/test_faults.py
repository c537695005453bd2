"""What befalls a machine: its clock is set, its open files run out, its database is gone. No job is lost by it."""

from __future__ import annotations

import os
import resource
import signal
from datetime import timedelta
from pathlib import Path

import pytest

from paddlecloud.model.state import JobState
from tests.faketime import FakeClock
from tests.flow.lab import Lab, a_free_port
from tests.waiting import wait_until

WAITS = "until [ -e {go} ]; do sleep 0.1; done; echo done > $OUTPUT_PATH/done"


def running(lab: Lab, go: Path, *more: str) -> str:
    job = lab.submit(WAITS.format(go=go), *more)
    wait_until(lambda: lab.field(job, "job_status") == "running", "the job runs")
    return job


@pytest.mark.slow
@pytest.mark.parametrize("meanwhile", ["server runs", "server is down"])
@pytest.mark.parametrize("hours", [2, -2])
def test_a_clock_that_is_set_ends_no_job(lab: Lab, tmp_path: Path, meanwhile: str, hours: int) -> None:
    clock, go = FakeClock(tmp_path / "ahead"), tmp_path / "go"
    lab.env.update(clock.env)
    lab.configure(f"[server]\nport = {a_free_port()}\n[clusters.local]\ncpus = 1\n[jobs]\nschedule_limit = '1h'\n")
    job = running(lab, go, "--wall_time=00:10:00")
    waits = lab.submit("true")
    if meanwhile == "server is down":
        lab.type("down")
    clock.set(timedelta(hours=hours))
    if meanwhile == "server is down":
        lab.type("up")
    log = lab.data / "server.log"
    wait_until(lambda: "clock was set" in log.read_text(), "the server has seen it", seconds=30)
    states = {lab.field(job, "job_status") for _ in range(5)}  # each looked at after at least one round
    assert states == {"running"}
    assert lab.field(waits, "job_status") == "queue"
    clock.set(timedelta())
    assert lab.field(job, "job_status") == "running"
    go.touch()
    for ended in (job, waits):
        wait_until(lambda ended=ended: lab.field(ended, "job_status") == "success", "it succeeds")  # type: ignore[misc]


def test_a_job_waits_while_no_file_can_be_opened(lab: Lab, tmp_path: Path) -> None:
    lab.configure(f"[server]\nport = {a_free_port()}\n[clusters.local]\ncpus = 1\n")
    go = tmp_path / "go"
    first = running(lab, go)
    second = lab.submit("true")
    client, server = lab.client(), lab.server["pid"]
    assert client.get(second).job.state is JobState.QUEUE
    _, most = resource.prlimit(server, resource.RLIMIT_NOFILE)
    few = len(os.listdir(f"/proc/{server}/fd")) + 2  # enough to read an exit file, too few to start the helper again
    for pid in helpers(server):
        os.kill(pid, signal.SIGKILL)
    resource.prlimit(server, resource.RLIMIT_NOFILE, (few, most))
    try:
        go.touch()
        log = lab.data / "server.log"
        refused = f"{second}-2 waits to be started: Too many open files"
        wait_until(lambda: refused in log.read_text(), "the second job could not be started twice")
    finally:
        resource.prlimit(server, resource.RLIMIT_NOFILE, (most, most))
    lab.ends(first, "success")
    lab.ends(second, "success")


def helpers(server: int) -> list[int]:
    children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    found = [
        int(pid) for task in Path(f"/proc/{server}/task").iterdir() for pid in (task / "children").read_text().split()
    ]
    return sorted({*map(int, children), *found})


@pytest.mark.parametrize("how", ["missing", "empty"])
def test_a_server_without_its_records_does_not_begin_anew_unasked(lab: Lab, how: str) -> None:
    job = lab.submit("echo kept > $OUTPUT_PATH/kept")
    lab.ends(job, "success")
    backup = lab.out("db", "backup").strip()
    lab.type("down")
    for file in lab.data.glob("paddlecloud.db*"):
        file.unlink()
    if how == "empty":
        (lab.data / "paddlecloud.db").touch()
    for words in (["up"], ["ls"], ["serve", "--embedded"]):
        refused = lab.type(*words, code=None)
        assert refused.returncode != 0
        assert "has no records" in refused.stderr
        assert f"paddlecloud db restore {backup}" in refused.stderr
        assert "--new" in refused.stderr
    lab.type("db", "restore", backup)
    assert lab.field(job, "job_status") == "success"
    lab.type("down")
    (lab.data / "paddlecloud.db").write_bytes(b"")
    lab.type("up", "--new")
    assert job not in lab.out("ls")
    lab.type("down")
    lab.type("up")
    assert list(lab.data.glob(f"results/*/{job}")), "its files stay where they are"
