"""Jobs on a Slurm cluster whose nodes share the server's disk: as on one machine, and through its faults."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.absent import absent
from tests.flow.lab import Lab, a_free_port
from tests.slurm import Slurm
from tests.waiting import wait_until

HPC = """
[clusters.hpc]
backend = "slurm"
policy = "open"
python = "{python}"
sbatch = {{account = "{account}"}}
job_options = ["nodelist", "partition", "exclusive", "hold", "ntasks-per-node"]
"""
# Every trainer tells the first one its number, and is told how many there are.
MEET = """
import os, socket, time
ends = os.environ["PADDLE_TRAINER_ENDPOINTS"].split(",")
rank = int(os.environ["PADDLE_TRAINER_ID"])
host, port = ends[0].split(":")
assert ends[rank] == os.environ["PADDLE_CURRENT_ENDPOINT"] and ends[rank].startswith(os.environ["POD_IP"] + ":")
if rank == 0:
    met, listener = [], socket.create_server((host, int(port)))
    while len(met) < len(ends) - 1:
        other, _ = listener.accept()
        met.append((other.recv(100).decode(), other))
    for number, other in met:
        other.sendall(str(len(ends)).encode())
    said = " ".join(sorted(number for number, _ in met))
else:
    for _ in range(600):
        try:
            joined = socket.create_connection((host, int(port)), 60)
            break
        except ConnectionRefusedError:
            time.sleep(0.1)
    joined.sendall(str(rank).encode())
    said = joined.recv(100).decode()
open(os.environ["OUTPUT_PATH"] + "/met", "w").write(said)
print("endpoints", ",".join(ends))
"""
FOREVER = ("--", "sleep", "1000")


def made(folder: Path, slurm: Slurm, more: str = "", python: str = sys.executable) -> Lab:
    lab = Lab(folder)
    lab.env |= {**slurm.env, "HOME": str(lab.home)}
    lab.configure(more + HPC.format(python=python, account=slurm.account))
    lab.type("up")
    return lab


@pytest.fixture
def lab(tmp_path: Path, slurm: Slurm) -> Iterator[Lab]:
    lab = made(tmp_path, slurm)
    yield lab
    lab.close()
    slurm.empty()


def submit(lab: Lab, *words: str) -> str:
    return lab.out("submit", *words).split()[-1]


def in_state(lab: Lab, job: str, state: str) -> None:
    client = lab.client()
    wait_until(lambda: client.get(job).job.state.label == state, f"{job} is in {state}", seconds=60)


def attempts(lab: Lab, job: str) -> int:
    return lab.client().get(job).job.attempt


def slurm_job(slurm: Slurm, job: str) -> str:
    """The number of the job that Slurm has of the first attempt."""
    lines = slurm.run("squeue", "--noheader", "--states=all", "--format=%A %j").splitlines()
    return next(line.split()[0] for line in lines if line.split()[1].startswith(job))


def test_a_folder_runs_with_a_live_log_and_its_results_come_back(lab: Lab) -> None:
    go = lab.work / "go"
    lab.folder(run_sh=f"cat words.txt\nuntil [ -e {go} ]; do sleep 0.1; done\ncp words.txt $OUTPUT_PATH/out.txt\n")
    (lab.work / "job" / "words.txt").write_text("words of mine\n")
    job = submit(lab, "job", "--", "sh", "run.sh")
    wait_until(lambda: "words of mine" in lab.type("logs", job, code=None).stdout, "the log is live", seconds=60)
    in_state(lab, job, "running")
    go.touch()
    lab.ends(job, "success")
    lab.out("cp", job, "got")
    assert [path.read_text() for path in lab.work.glob("got/**/rank-0/out.txt")] == ["words of mine\n"]


def test_a_folder_that_is_shared_with_a_group_is_seen_on_the_nodes_and_no_other(lab: Lab) -> None:
    lab.type("group", "add", "lab", "--members", lab.client().profile.user)
    for name, words in (("demo", ("--write", "lab")), ("data", ("--read", "lab")), ("other", ())):
        lab.type("share", "add", name, *words)
    (lab.work / "part").write_text("0\n")
    lab.type("cp", "part", "/pfs/local/shared/demo/part")
    seen = "cd /pfs/local/shared; ls; cat demo/part; echo 1 > demo/made; touch data/x || echo read only"
    lab.folder()
    job = submit(lab, "job", "--cluster", "hpc", "--", "sh", "-c", seen)
    lab.ends(job, "success")
    assert [line for line in lab.out("logs", job).splitlines() if "touch" not in line] == [
        "data",
        "demo",
        "0",
        "read only",
    ]
    lab.type("cp", "/pfs/local/shared/demo/made", "made")
    assert (lab.work / "made").read_text() == "1\n"


def test_three_trainers_meet_at_addresses_of_their_own(lab: Lab) -> None:
    lab.folder(train_py=MEET)
    words = ("--nodes", "3", "--slurm", "ntasks-per-node=1", "--", "python", "train.py")
    job = submit(lab, "job", *words)
    lab.ends(job, "success")
    lab.out("cp", job, "got")
    met = {path.parent.name: path.read_text() for path in lab.work.glob("got/**/rank-*/met")}
    assert met == {"rank-0": "1 2", "rank-1": "3", "rank-2": "3"}
    line = next(line for line in lab.out("logs", job).splitlines() if "endpoints" in line)
    assert len({end.partition(":")[0] for end in line.split()[-1].split(",")}) == 3


def test_pservers_serve_until_the_trainers_are_done(lab: Lab) -> None:
    lab.folder(
        run_sh='[ "$TRAINING_ROLE" = PSERVER ] && exec python -m http.server --bind $POD_IP $PADDLE_PORT\n'
        "for at in $(echo $PADDLE_PSERVERS_IP_PORT_LIST | tr , ' '); do\n"
        'python -c "import urllib.request as r; r.urlopen(\\"http://$at\\", timeout=30)" || exit 1\ndone\n'
    )
    job = submit(lab, "job", "--nodes", "2", "--distribute", "PSERVER", "--", "sh", "run.sh")
    lab.ends(job, "success", seconds=90)


def test_a_job_that_waits_in_slurm_is_queued_with_slurms_reason_and_can_be_killed(lab: Lab, slurm: Slurm) -> None:
    lab.folder()
    running = submit(lab, "job", *FOREVER)
    in_state(lab, running, "running")
    job = submit(lab, "job", "--slurm", "hold", *FOREVER)
    wait_until(lambda: "JobHeldUser" in lab.out("query_job", f"--job_id={job}"), "Slurm's reason is shown", seconds=60)
    assert lab.field(job, "job_status") == "queue"
    assert f"job {slurm_job(slurm, job)}" in lab.out("show", job)
    assert job in lab.out("ls", "--state", "queue", "-o", "name")
    assert running not in lab.out("ls", "--state", "queue", "-o", "name")
    assert job not in lab.out("ls", "--state", "schedule", "-o", "name")
    lab.type("kill_job", f"--job_id={job}")
    lab.ends(job, "killed")
    assert slurm.job_state(slurm_job(slurm, job)) == "CANCELLED"
    lab.type("kill_job", f"--job_id={running}")
    lab.ends(running, "killed")
    wait_until(lambda: slurm.job_state(slurm_job(slurm, running)) != "RUNNING", "it is gone from Slurm")


def test_what_an_administrator_cancels_is_killed(lab: Lab, slurm: Slurm) -> None:
    lab.folder()
    running, held = submit(lab, "job", *FOREVER), submit(lab, "job", "--slurm", "hold", *FOREVER)
    in_state(lab, running, "running")
    in_state(lab, held, "queue")
    for job in (running, held):
        slurm.run("scancel", slurm_job(slurm, job))
        lab.ends(job, "killed")
        assert "cancelled in Slurm" in lab.field(job, "error_msg")
    assert lab.client().get(held).job.started_at is None


def test_options_are_those_that_the_operator_allows(lab: Lab, slurm: Slurm) -> None:
    lab.folder()
    done = lab.type("submit", "job", "--slurm", "qos=high", "--", "true", code=None)
    assert done.returncode != 0
    assert "qos cannot be set by jobs on cluster hpc, whose operator allows nodelist, partition" in done.stderr
    (lab.work / "job.yaml").write_text("run: 'true'\nworkdir: job\nslurm: {partition: low, exclusive: true}\n")
    job = submit(lab, "-f", "job.yaml")
    lab.ends(job, "success")
    assert "Partition=low" in slurm.run("scontrol", "show", "job", slurm_job(slurm, job))


def test_wall_time_ends_a_job_with_timeout(lab: Lab) -> None:
    lab.folder()
    job = submit(lab, "job", "--time-limit", "3s", *FOREVER)
    lab.ends(job, "timeout")


def test_slurms_own_time_limit_is_a_timeout_too(lab: Lab, slurm: Slurm) -> None:
    lab.folder()
    job = submit(lab, "job", "--time-limit", "30m", *FOREVER)
    in_state(lab, job, "running")
    number = slurm_job(slurm, job)
    slurm.run("scontrol", "update", f"JobId={number}", "EndTime=now+2")
    lab.ends(job, "timeout")
    assert "longer than Slurm allows" in lab.field(job, "error_msg")


def test_a_server_that_was_killed_finds_all_of_its_jobs_again(lab: Lab) -> None:
    go = lab.work / "go"
    lab.folder(run_sh=f"until [ -e {go} ]; do sleep 0.1; done\necho done\n")
    both = [submit(lab, "job", "--nodes", str(nodes), "--", "sh", "run.sh") for nodes in (1, 2)]
    queued = submit(lab, "job", "--slurm", "hold", "--", "true")
    for job in both:
        in_state(lab, job, "running")
    in_state(lab, queued, "queue")
    lab.kill_server()
    go.touch()
    lab.type("up")
    for job in both:
        lab.ends(job, "success")
        assert attempts(lab, job) == 1
        assert "done" in lab.out("logs", job)
    in_state(lab, queued, "queue")
    lab.type("kill", queued)
    lab.ends(queued, "killed")


def test_a_controller_that_is_down_for_a_while_changes_nothing(lab: Lab, slurm: Slurm) -> None:
    go = lab.work / "go"
    lab.folder(run_sh=f"until [ -e {go} ]; do sleep 0.1; done\n")
    runs = submit(lab, "job", "--", "sh", "run.sh")
    in_state(lab, runs, "running")
    slurm.stop_controller()
    try:
        late = submit(lab, "job", "--", "sh", "run.sh")
        killed = submit(lab, "job", "--", "sh", "run.sh")
        lab.type("kill", killed)
        wait_until(
            lambda: "does not answer" in (lab.data / "server.log").read_text(), "the server has noticed", seconds=60
        )
        assert lab.field(runs, "job_status") == "running"
        assert lab.client().get(late).job.state.label in ("submit", "queue", "schedule")
    finally:
        slurm.start_controller()
    go.touch()
    for job in (runs, late):
        lab.ends(job, "success")
        assert attempts(lab, job) == 1
    lab.ends(killed, "killed")


@pytest.mark.slow
def test_a_job_whose_node_dies_succeeds_in_its_second_attempt(lab: Lab, slurm: Slurm) -> None:
    slurm.wait_for_nodes()
    lab.folder(run_sh='[ "$PADDLECLOUD_ATTEMPT" = 1 ] && sleep 1000\necho well > $OUTPUT_PATH/end\n')
    others = ["n1", "n2", "n3"]
    slurm.run("scontrol", "update", f"NodeName={','.join(others)}", "State=DRAIN", "Reason=test")
    try:
        job = submit(lab, "job", "--", "sh", "run.sh")
        in_state(lab, job, "running")
    finally:
        slurm.run("scontrol", "update", f"NodeName={','.join(others)}", "State=RESUME")
    slurm.kill_node("n4")
    try:
        lab.ends(job, "success", seconds=120)
        assert attempts(lab, job) == 2
        assert "a node of it has failed" in lab.out("show", job)
    finally:
        slurm.start_node("n4")
        slurm.wait_for_nodes()


@pytest.mark.root
def test_a_mapped_user_runs_as_an_account_of_their_own(tmp_path: Path, slurm: Slurm) -> None:
    if os.geteuid() != 0 or not Path("/usr/bin/python3").exists():
        pytest.skip("needs root, and a Python that every account may run")
    if shutil.which("sudo") is None:
        absent("sudo is not installed: make engines")
    port = a_free_port()
    lab = made(tmp_path, slurm, f"[server]\nport = {port}\n", python="/usr/bin/python3")
    user = json.loads((lab.data / "embedded.json").read_text())["user"]
    lab.type("down")
    slurm.run("sacctmgr", "--immediate", "--quiet", "add", "user", "nobody", f"Account={slurm.account}")
    config = (lab.data / "server.toml").read_text()
    lab.configure(f'{config}url = "http://127.0.0.1:{port}"\naccounts = {{"{user}" = "nobody"}}\n')
    lab.type("up")
    try:
        lab.folder(run_sh=f"id -un; id -u > $OUTPUT_PATH/id\ncat {lab.data}/embedded.json && exit 9\nexit 0\n")
        job = submit(lab, "job", "--", "sh", "run.sh")
        lab.ends(job, "success")
        assert "nobody" in lab.out("logs", job)
        forever = submit(lab, "job", *FOREVER)
        in_state(lab, forever, "running")
        lab.type("kill", forever)
        lab.ends(forever, "killed")
    finally:
        lab.close()
        slurm.empty()
