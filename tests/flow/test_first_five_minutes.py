"""A fresh machine, an empty HOME, no server configured: the first command does it all."""

from __future__ import annotations

import json
import os
import signal
import stat
from pathlib import Path

from tests.flow.lab import Lab, alive, processes_with
from tests.waiting import wait_until


def test_the_first_command_starts_a_private_server_and_says_so_in_one_line(lab: Lab) -> None:
    lab.folder(run_sh="echo hello\n")
    done = lab.type("submit_job", "--files=job", "--start_cmd=sh run.sh")
    assert [line for line in done.stderr.splitlines() if "server" in line and "started" in line]
    assert lab.server["url"].startswith("http://127.0.0.1:")
    assert stat.S_IMODE(lab.data.stat().st_mode) == 0o700
    config = lab.home / ".config" / "paddlecloud" / "config.toml"
    assert stat.S_IMODE(config.stat().st_mode) == 0o600
    assert "started" not in lab.type("ls").stderr


def test_two_starts_at_once_make_one_server(lab: Lab) -> None:
    starts = [lab.begin("ls") for _ in range(4)]
    for start in starts:
        start.communicate(timeout=60)
    assert [start.returncode for start in starts] == [0, 0, 0, 0]
    mine = [pid for pid in processes_with(str(lab.data)) if b"serve" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    assert mine == [lab.server["pid"]]


def test_up_status_and_down_are_what_they_say(lab: Lab) -> None:
    assert lab.type("status", code=4).returncode == 4
    lab.type("up")
    pid = lab.server["pid"]
    assert str(pid) in lab.out("status")
    lab.type("up")
    assert lab.server["pid"] == pid
    lab.type("down")
    assert not alive(pid)
    lab.type("status", code=4)
    lab.type("down")


def test_jobs_go_on_while_the_server_is_down(lab: Lab) -> None:
    job = lab.submit("for i in 1 2 3; do echo $i; sleep 0.5; done")
    wait_until(lambda: lab.field(job, "job_status") == "running", "it runs")
    lab.type("down")
    lab.type("up")
    lab.ends(job, "success")
    assert lab.out("logs", job) == "1\n2\n3\n"


def test_run_follows_the_log_and_brings_the_results_back(lab: Lab) -> None:
    lab.folder(run_sh="echo step 1\nsleep 0.3\necho step 2\necho weights > $OUTPUT_PATH/model\n")
    done = lab.type("run", "job", "--", "sh", "run.sh")
    assert done.stdout.index("step 1") < done.stdout.index("step 2")
    assert [path.read_text() for path in lab.work.glob("**/rank-0/model")] == ["weights\n"]


def test_the_modern_verbs_speak_json_and_exit_codes(lab: Lab) -> None:
    lab.folder(run_sh="exit 3\n")
    job = lab.out("submit", "job", "--", "sh", "run.sh").split()[-1]
    lab.type("wait", job, code=100)
    lab.type("wait", "--exit-code", "job", job, code=3)
    assert json.loads(lab.out("show", job, "-o", "json"))["job"]["state"] == "failed"
    assert json.loads(lab.out("ls", "-o", "json"))[0]["id"] == job
    assert lab.out("ls", "-o", "name").split() == [job]
    lab.type("show", "job-" + "0" * 32, code=102)
    lab.type("frobnicate", code=2)
    lab.type("ls", code=4, PADDLECLOUD_SERVER="http://127.0.0.1:9", PADDLECLOUD_TOKEN="x")


def test_a_server_that_hangs_is_told_from_one_that_does_not_run(lab: Lab) -> None:
    lab.type("up")
    pid = lab.server["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        told = f"(pid {pid}) runs and does not answer"
        assert told in lab.type("status", code=4).stdout
        assert told in lab.type("ls", code=4).stderr
        assert json.loads(lab.type("status", "--json", code=4).stdout)["hung_pid"] == pid
    finally:
        os.kill(pid, signal.SIGCONT)
    assert str(pid) in lab.out("status")
