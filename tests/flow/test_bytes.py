"""Folders go up and results come down, whole; logs are followed while they are written."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from tests.flow.lab import Lab
from tests.waiting import wait_until


def test_an_odd_folder_survives_the_way_into_a_task(desk: Lab) -> None:
    folder = desk.folder(run_sh="./tool > $OUTPUT_PATH/said\n(cd $PWD && find . | sort) > $OUTPUT_PATH/tree\n")
    tool = folder / "tool"
    tool.write_text("#!/bin/sh\nreadlink a-link; cat 'a b/c\nd'\n")
    tool.chmod(0o755)
    (folder / "a b").mkdir()
    (folder / "a b" / "c\nd").write_text("newline\n")
    (folder / "empty").mkdir()
    (folder / ("长" * 85)).write_text("255 bytes")
    (folder / "a-link").symlink_to("a b/c\nd")
    (folder / ".gitignore").write_text("*.tmp\n")
    (folder / "x.tmp").write_text("ignored")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "x.pyc").write_text("ignored")
    job = desk.out("submit_job", "--files=job", "--start_cmd=sh run.sh").split()[-1]
    desk.ends(job, "success")
    desk.type("get_files", f"--job_id={job}", "--download=1", "--download_dir=result")
    results = desk.work / "result" / job / "rank-0"
    assert (results / "said").read_text() == "a b/c\nd\nnewline\n"
    tree = (results / "tree").read_text()
    assert "./empty\n" in tree
    assert "长" * 85 in tree
    assert "x.tmp" not in tree
    assert "pyc" not in tree


def test_a_link_out_of_the_folder_is_refused(desk: Lab) -> None:
    (desk.folder() / "out").symlink_to("../..")
    done = desk.type("submit_job", "--files=job", "--start_cmd=true", code=2)
    assert "out" in done.stderr


def test_only_what_changed_is_sent_again(desk: Lab) -> None:
    folder = desk.folder(run_sh="true\n")
    (folder / "data").write_bytes(os.urandom(20 * 2**20))
    desk.type("submit_job", "--files=job", "--start_cmd=sh run.sh")
    before = uploaded(desk)
    (folder / "run.sh").write_text("echo changed\n")
    desk.type("submit_job", "--files=job", "--start_cmd=sh run.sh")
    assert uploaded(desk) - before < 2**20


def uploaded(lab: Lab) -> int:
    """Bytes in the store, each inode once."""
    seen = {}
    for path in (lab.data / "files").rglob("*"):
        status = path.lstat()
        if stat.S_ISREG(status.st_mode):
            seen[status.st_ino] = status.st_size
    return sum(seen.values())


def test_results_of_a_running_job_are_brought_again_only_where_they_are_new(desk: Lab) -> None:
    more = desk.work / "more"
    job = desk.submit(f"echo 1 > $OUTPUT_PATH/one; until [ -e {more} ]; do sleep 0.1; done; echo 2 > $OUTPUT_PATH/two")
    one, two = (desk.work / "results" / job / "rank-0" / name for name in ("one", "two"))
    wait_until(lambda: "rank-0/one" in desk.out("ls", f"{job}:"), "the first result")
    desk.type("cp", f"{job}:rank-0", "results")
    assert (one.read_text(), two.exists()) == ("1\n", False)
    one.with_name("mine").touch()
    more.touch()
    desk.ends(job, "success")
    assert desk.type("cp", f"{job}:rank-0", "results", code=2).stderr.count("exists: name a new folder") == 1
    said = desk.type("cp", "--update", f"{job}:rank-0", "results").stderr
    assert (one.read_text(), two.read_text(), one.with_name("mine").exists()) == ("1\n", "2\n", True)
    assert "2 files, 4 B, in results" in said

    again = desk.type("cp", "--update", f"{job}:rank-0", "results").stderr
    assert "; 0 of them new or changed" in again, "of an ended job nothing is brought twice"


def test_a_task_cannot_change_the_uploaded_tree(desk: Lab) -> None:
    desk.folder(
        run_sh="echo spoiled > data; echo spoiled > $LOCAL_MOUNT_PATH/data\n"
        "rm -f run.sh; cp $LOCAL_MOUNT_PATH/run.sh $OUTPUT_PATH/\ncat data > $OUTPUT_PATH/mine\n",
        data_txt="whole\n",
    )
    (desk.work / "job" / "data").write_text("whole\n")
    for _ in range(2):
        job = desk.out("submit_job", "--files=job", "--start_cmd=sh run.sh").split()[-1]
        desk.ends(job, "success")
    stored = [path.with_name("data").read_text() for path in (desk.data / "files").glob("*/trees/*/data.txt")]
    assert stored == ["whole\n"]


def test_a_followed_log_arrives_while_the_job_runs_with_the_rank_before_each_line(desk: Lab) -> None:
    gate = desk.work / "gate"
    desk.folder(run_sh=f'echo "first of $PADDLE_TRAINER_ID"\nwhile [ ! -e {gate} ]; do sleep 0.05; done\necho last\n')
    job = desk.out(
        "submit_job", "--files=job", "--start_cmd=sh run.sh", "--instance_count=2", "--distribute_job_type=NCCL2"
    ).split()[-1]
    lines: list[str] = []
    with desk.begin("logs", "-f", job) as follower:
        reader = threading.Thread(target=lambda: lines.extend(follower.stdout or []))
        reader.start()
        try:
            wait_until(lambda: len(lines) == 2, "both ranks are heard")
            assert sorted(lines) == ["trainer-0 | first of 0\n", "trainer-1 | first of 1\n"]
        finally:
            gate.touch()
        reader.join()
    assert follower.returncode == 0
    assert sorted(lines)[1::2] == ["trainer-0 | last\n", "trainer-1 | last\n"]


@pytest.mark.timeout(600)
def test_a_log_of_one_gib_is_tailed_and_fetched_with_flat_server_memory(lab: Lab) -> None:
    job = lab.submit("yes 'a line of a very long log, which says nothing new' | head -c 1073741824; echo; echo the end")
    lab.ends(job, "success", seconds=120)
    assert lab.out("logs", "--tail", "1", job) == "the end\n"
    before = memory_kib(lab)
    lab.type("get_files", f"--job_id={job}", "--prefix=log", "--download=1", "--download_dir=result")
    assert (lab.work / "result" / job / "log" / "trainer-0.log").stat().st_size == 1073741824 + 1 + 8
    with lab.begin("logs", "-f", job) as follower:
        size = sum(len(line) for line in follower.stdout or ())
    assert follower.returncode == 0
    assert size == 1073741824 + 1 + 8
    assert memory_kib(lab) - before < 200 * 1024  # a few ranges at a time, each read whole for its digest


def memory_kib(lab: Lab) -> int:
    for line in Path(f"/proc/{lab.server['pid']}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1])
    raise AssertionError("no VmHWM")
