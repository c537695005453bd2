"""The Slurm that tests are run on is one: four nodes that take jobs, die and come back, and nothing is left of it."""

from __future__ import annotations

import json
import os
import urllib.request
from pathlib import Path

import pytest

from tests import slurm as engine
from tests.slurm import CGROUPS, Slurm
from tests.slurm_conf import ACCOUNT
from tests.waiting import wait_until

OF_TEAM = f"--account={ACCOUNT}"


def test_four_nodes_are_idle(slurm: Slurm) -> None:
    assert slurm.node_states() == {"n1": "idle", "n2": "idle", "n3": "idle", "n4": "idle"}


def test_a_job_runs_on_all_nodes_each_with_an_address_and_processes_of_its_own(slurm: Slurm) -> None:
    told = slurm.run("srun", "--nodes=4", "sh", "-c", "echo $SLURMD_NODENAME $(ls -d /proc/[0-9]* | wc -l)")
    processes = dict(line.split() for line in told.splitlines())
    assert sorted(processes) == ["n1", "n2", "n3", "n4"]
    assert all(int(count) < 20 for count in processes.values())
    addresses = [slurm.run("scontrol", "show", "node", name, "--oneliner") for name in slurm.nodes]
    assert len({text.partition("NodeAddr=")[2].split()[0] for text in addresses}) == 4


def test_a_job_is_in_the_accounts_when_it_has_ended(slurm: Slurm) -> None:
    job = slurm.submit("exit 3", OF_TEAM, "--qos=high", "--gres=gpu:2")

    def kept() -> str:
        told = slurm.run("sacct", "-X", "-j", job, "--noheader", "--parsable2", "--format=state,exitcode,account")
        return told.strip() if "FAILED" in told else ""

    assert wait_until(kept, "sacct tells the end") == f"FAILED|3:0|{ACCOUNT}"


def test_a_partition_refuses_a_job_above_its_time(slurm: Slurm) -> None:
    refused = slurm.attempt("sbatch", "--partition=short", "--time=5", "--wrap=true")
    assert "time limit" in refused.stderr


def test_its_rest_service_answers_who_has_a_token(slurm: Slurm) -> None:
    if slurm.rest is None:
        pytest.skip("slurmrestd needs an account of its own, which root alone can give it")
    token = slurm.run("scontrol", "token").strip().partition("=")[2]
    url, headers = f"{slurm.rest}/slurm/v0.0.38/nodes", {"X-SLURM-USER-NAME": "root", "X-SLURM-USER-TOKEN": token}
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=20) as answer:
        assert [node["name"] for node in json.load(answer)["nodes"]] == list(slurm.nodes)


def test_a_running_job_outlives_a_restart_of_the_controller(slurm: Slurm) -> None:
    ready, go = slurm.folder / "output" / "ready", slurm.folder / "output" / "go"
    job = slurm.submit(f"touch {ready}; until [ -e {go} ]; do sleep 0.1; done")
    wait_until(ready.exists, "the job runs")
    slurm.stop_controller()
    assert "DOWN" in slurm.attempt("scontrol", "ping").stdout
    slurm.start_controller()
    assert slurm.job_state(job) == "RUNNING"
    go.touch()
    wait_until(lambda: slurm.job_state(job) == "COMPLETED", "the job ends")


@pytest.mark.slow
def test_a_killed_node_takes_its_processes_with_it_and_is_found_to_be_down(slurm: Slurm) -> None:
    beat = slurm.folder / "output" / "beat"
    job = slurm.submit(f"while :; do date >{beat}; sleep 0.1; done", "--no-requeue", "--nodelist=n2")
    wait_until(beat.exists, "the job runs on n2")
    slurm.kill_node("n2")
    last = beat.stat().st_mtime_ns
    slurm.wait_for_nodes("down*", ["n2"])
    assert beat.stat().st_mtime_ns == last
    wait_until(lambda: slurm.job_state(job) == "NODE_FAIL", "the job has failed with its node")
    slurm.start_node("n2")
    slurm.wait_for_nodes("idle")


def test_a_job_outlives_the_daemon_of_its_node(slurm: Slurm) -> None:
    began, go = slurm.folder / "output" / "began", slurm.folder / "output" / "on"
    job = slurm.submit(f"touch {began}; until [ -e {go} ]; do sleep 0.1; done", "--nodelist=n3")
    wait_until(began.exists, "the job runs")
    slurm.kill_slurmd("n3")
    slurm.start_slurmd("n3")
    go.touch()
    wait_until(lambda: slurm.job_state(job) == "COMPLETED", "the job ends")
    slurm.wait_for_nodes("idle")


def test_nothing_is_left_of_a_cluster_that_was_stopped_while_jobs_ran() -> None:
    with engine.running(nodes=2, accounting=False, rest=False) as cluster:
        job = cluster.submit("sleep 1000", "--nodes=2")
        wait_until(lambda: cluster.job_state(job) == "RUNNING", "the job runs")
        folder = cluster.folder
    assert not folder.exists()
    assert _mentioning(str(folder)) == []


@pytest.mark.root
def test_memory_is_held_to_what_was_asked_where_groups_are_used() -> None:
    if os.geteuid() != 0 or not (CGROUPS / "memory").is_dir():
        pytest.skip("needs root and control groups of version 1")
    with engine.running(nodes=1, rest=False, accounting=False, proctrack="cgroup") as cluster:
        greedy = cluster.submit("head --bytes=300M /dev/zero | tail --bytes=250M >/dev/null", "--mem=50M")
        wait_until(lambda: cluster.job_state(greedy) == "OUT_OF_MEMORY", "the job is ended for its memory")
        cluster.submit("sleep 1000")
    assert not list(CGROUPS.glob("*/slurm_n1"))


def _mentioning(words: str) -> list[str]:
    """Processes with these words in their command or environment; one that is dead has none."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            text = (place / "cmdline").read_bytes() + (place / "environ").read_bytes()
        except OSError:
            continue
        if words.encode() in text:
            found.append(text[:200].decode(errors="replace"))
    return found
