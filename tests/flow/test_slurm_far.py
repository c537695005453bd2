"""Jobs on a Slurm whose nodes do not share the server's disk: they fetch the folder, and log, files and end come back.

The nodes of the tests are on this machine, so the server's disk is in their reach: what is seen here is that tasks
work in a folder of the node's own, and are told of no other.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flow.lab import Lab, a_free_port, alive
from tests.slurm import Slurm
from tests.waiting import wait_until

TRAIN = """
import os, sys, time
print("began in", os.getcwd(), "with", open("data/words.txt").read().strip(), flush=True)
for step in range(int(sys.argv[1])):
    print("step", step, flush=True)
    time.sleep(0.5)
out = os.environ["OUTPUT_PATH"]
os.makedirs(out + "/model", exist_ok=True)
open(out + "/model/weights.bin", "wb").write(bytes(range(256)) * 40_000)
open(out + "/empty", "w").close()
open(os.environ["LOCAL_LOG_PATH"] + "/events", "w").write("events of " + os.environ["PADDLE_TRAINER_ID"])
"""


@pytest.fixture
def far(tmp_path: Path, slurm: Slurm) -> Iterator[Lab]:
    lab = Lab(tmp_path)
    port = a_free_port()
    lab.env |= {**slurm.env, "HOME": str(lab.home), "TMPDIR": str(tmp_path)}
    lab.configure(
        f"""
        [server]
        port = {port}

        [clusters.far]
        backend = "slurm"
        url = "http://127.0.0.1:{port}"
        python = "{sys.executable}"
        sbatch = {{account = "{slurm.account}"}}
        """
    )
    lab.type("up")
    yield lab
    lab.close()
    slurm.empty()


def a_job(lab: Lab) -> None:
    folder = lab.folder(train_py=TRAIN)
    (folder / "data").mkdir(exist_ok=True)
    (folder / "data" / "words.txt").write_text("words of mine")
    (folder / "run.sh").write_text('#!/bin/sh\npython train.py "$1"\n')
    (folder / "run.sh").chmod(0o755)


def test_a_folder_runs_on_nodes_that_fetch_it_and_its_results_come_back(far: Lab) -> None:
    a_job(far)
    job = far.out("submit", "job", "--nodes", "2", "-o", "name", "--", "./run.sh", "1").strip()
    far.ends(job, "success")
    log = far.out("logs", job, "-w", "trainer-1")
    assert "began in /tmp/paddlecloud-" in log
    assert "with words of mine" in log
    assert str(far.data) not in log
    far.type("get_files", f"--job_id={job}", "--download=1", "--download_dir=back")
    back = far.work / "back" / job
    for rank in (0, 1):
        assert (back / f"rank-{rank}" / "model" / "weights.bin").read_bytes() == bytes(range(256)) * 40_000
        assert (back / f"rank-{rank}" / "empty").read_bytes() == b""
        assert (back / "log" / f"trainer-{rank}" / "events").read_text() == f"events of {rank}"


def test_the_log_is_live(far: Lab) -> None:
    a_job(far)
    job = far.out("submit", "job", "-o", "name", "--", "python", "train.py", "60").strip()
    wait_until(lambda: "step 2" in far.out("logs", job), "three steps are in the log", seconds=60)
    assert far.field(job, "job_status") == "running"
    far.type("kill_job", f"--job_id={job}")
    far.ends(job, "killed")


def test_a_server_that_is_away_for_a_while_misses_nothing(far: Lab) -> None:
    a_job(far)
    job = far.out("submit", "job", "-o", "name", "--", "python", "train.py", "12").strip()
    wait_until(lambda: "step 1" in far.out("logs", job), "it runs", seconds=60)
    far.kill_server()
    wait_until(lambda: not nodes_run(job, "train.py"), "the task has ended while nobody was there", seconds=60)
    far.type("up")
    far.ends(job, "success")
    assert [line for line in far.out("logs", job).splitlines() if "step" in line][-1].endswith("step 11")
    assert far.out("logs", job).count("step 5") == 1
    assert "weights.bin" in far.out("ls", job)


def test_a_failed_task_tells_why(far: Lab) -> None:
    far.folder(train_py="print('about to fail'); raise SystemExit(7)")
    job = far.out("submit", "job", "-o", "name", "--", "python", "train.py").strip()
    far.ends(job, "failed")
    assert "exit code 7" in far.field(job, "error_msg")
    assert "about to fail" in json.dumps([task.tail for task in far.client().get(job).tasks])


def test_no_secret_is_among_the_arguments_of_a_process(far: Lab) -> None:
    far.folder(train_py="import time; time.sleep(60)")
    job = far.out("submit", "job", "-o", "name", "--", "python", "train.py").strip()
    wait_until(lambda: far.field(job, "job_status") == "running", "it runs", seconds=60)
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                assert b"pcj_" not in (process / "cmdline").read_bytes()
            except (FileNotFoundError, ProcessLookupError):
                continue
    far.type("kill_job", f"--job_id={job}")
    far.ends(job, "killed")


def test_a_task_sees_nothing_of_other_runs_on_its_node_and_nothing_is_left_of_its_own(far: Lab) -> None:
    base = Path(f"/tmp/paddlecloud-{os.geteuid()}")
    base.mkdir(mode=0o700, exist_ok=True)
    other = Path(tempfile.mkdtemp(dir=base))
    (other / "secret").write_text("SECRET")
    try:
        far.folder(run_sh=f"cat {other}/secret; find {base} -name away.py; pwd")
        job = far.out("submit", "job", "-o", "name", "--", "sh", "run.sh").strip()
        far.ends(job, "success")
        log = far.out("logs", job)
        assert "SECRET" not in log
        assert "away.py" not in log
        own = base / Path(log.split()[-1]).relative_to(base).parts[0]
        wait_until(lambda: not own.exists(), "its folder is gone", seconds=30)
    finally:
        shutil.rmtree(other)


def test_the_working_directory_of_a_failed_task_comes_back_if_it_is_kept(far: Lab) -> None:
    far.folder(run_sh="echo half > half; exit 3")
    (far.work / "job.yaml").write_text("workdir: job\nrun: sh run.sh\nkeep_on_failure: true\n")
    job = far.out("submit", "-f", "job.yaml").split()[-1]
    far.ends(job, "failed")
    assert "workspace/attempt-1/trainer-0/half" in far.out("ls", job)


def test_files_come_back_whatever_their_names(far: Lab) -> None:
    far.folder(train_py="import os; open(os.fsencode(os.environ['OUTPUT_PATH']) + b'/caf\\xe9', 'w').write('latin')")
    job = far.out("submit", "job", "-o", "name", "--", "python", "train.py").strip()
    far.ends(job, "success")
    far.type("get_files", f"--job_id={job}", "--download=1", "--download_dir=back")
    assert os.listdir(os.fsencode(far.work / "back" / job / "rank-0")) == [b"caf\xe9"]


def test_a_job_that_runs_in_the_pfs_is_refused_with_a_sentence(far: Lab) -> None:
    user = json.loads((far.data / "embedded.json").read_text())["user"]
    home = f"/pfs/local/home/{user}"
    far.folder("package", train_py="print()")
    far.type("cp", "package", f"{home}/package")
    far.type("submit", "-jobname", "of-pfs", "-pservers", "0", "-topology", "train.py", f"{home}/package")
    wait_until(lambda: "failed" in far.out("ls"), "it fails", seconds=60)
    assert "do not share the server's files" in far.out("show", "of-pfs")


def test_each_trainer_fetches_its_share_of_the_inputs(far: Lab) -> None:
    user = json.loads((far.data / "embedded.json").read_text())["user"]
    home = f"/pfs/local/home/{user}"
    data = far.folder("data")
    for number in range(2):  # one of four trainers gets none
        (data / f"part-{number}").write_text(f"{number}\n")
    (data / "deep").mkdir()
    (data / "deep/er").write_text("5\n")
    far.type("cp", "data", f"{home}/data")
    (far.data / "pfs/local/home" / user / "data/stolen").symlink_to(far.data / "key")
    far.folder(run_sh="cat train.list $(cat train.list); cat one; readlink -f one; ls in")
    inputs = f"- {{from: {home}/data, to: in, deal: true, list: train.list}}\n- {{from: {home}/data/part-0, to: one}}\n"
    inputs += f"- {{from: {home}/none, optional: true}}\n"
    (far.work / "job.yaml").write_text(f"workdir: job\nrun: sh run.sh\nnodes: 4\ninputs:\n{inputs}")
    job = far.out("submit", "-f", "job.yaml").split()[-1]
    far.ends(job, "success")
    files = ["deep/er", *(f"part-{number}" for number in range(2))]
    for rank in range(4):
        mine = files[rank::4]
        said = far.out("logs", job, "-w", f"trainer-{rank}").splitlines()
        assert said[: 2 * len(mine) + 1] == [
            *(f"./in/{file}" for file in mine),
            *("5" if file == "deep/er" else file[-1] for file in mine),
            "0",
        ]
        assert said[2 * len(mine) + 1].startswith("/tmp/paddlecloud-")


def nodes_run(job: str, program: str) -> list[int]:
    """The processes of a job's task that run a program."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            ours = (
                job.encode() in (entry / "environ").read_bytes()
                and program.encode() in (entry / "cmdline").read_bytes()
            )
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        if ours and alive(int(entry.name)):
            found.append(int(entry.name))
    return found
