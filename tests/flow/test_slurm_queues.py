"""Queues of a real Slurm: what the operator says of one, and what a job may add, is what Slurm is asked for."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flow.lab import Lab
from tests.slurm import Slurm
from tests.waiting import wait_until


@pytest.fixture
def lab(tmp_path: Path, slurm: Slurm) -> Iterator[Lab]:
    made = Lab(tmp_path)
    made.env |= {**slurm.env, "HOME": str(made.home)}
    made.configure(
        f"""
        [clusters.hpc]
        backend = "slurm"
        python = "{sys.executable}"
        sbatch = {{account = "{slurm.account}", partition = "low"}}
        job_options = ["constraint", "exclusive"]

        [queues.fcr]
        cluster = "hpc"
        time_limit = "00:01:00"
        sbatch = {{partition = "short", qos = "high"}}

        [queues.fcr-slow]
        cluster = "hpc"
        time_limit = "99:59:59"
        """
    )
    made.type("up")
    yield made
    made.close()
    slurm.empty()


def asked_of_slurm(slurm: Slurm, job: str) -> dict[str, str]:
    """What Slurm says of the job by the name that we gave it."""

    def found() -> str:
        return slurm.run("squeue", "--noheader", f"--name={job}-1", "--states=RUNNING", "--format=%A").strip()

    number = wait_until(found, "Slurm runs it", seconds=90)
    words = slurm.run("scontrol", "show", "job", number, "--oneliner").split()
    return dict(word.partition("=")[::2] for word in words)


def test_a_queues_options_go_over_the_clusters_and_the_jobs_over_both(lab: Lab, slurm: Slurm) -> None:
    fast = lab.out("submit", "--no-files", "--queue", "fcr", "--slurm", "constraint=rack2", "--", "sleep 1000").strip()
    asked = asked_of_slurm(slurm, fast)
    assert (asked["Partition"], asked["QOS"], asked["Account"]) == ("short", "high", slurm.account)
    assert (asked["TimeLimit"], asked["Features"]) == ("00:01:00", "rack2")
    assert asked["NodeList"] in ("n3", "n4")
    slow = lab.out(
        *("submit", "--no-files", "--queue", "fcr-slow", "--time-limit", "99:59:59", "--slurm", "exclusive"),
        *("--", "sleep 1000"),
    ).strip()
    asked = asked_of_slurm(slurm, slow)
    assert (asked["Partition"], asked["QOS"], asked["TimeLimit"]) == ("low", "normal", "4-04:00:00")
    assert asked["OverSubscribe"] == "NO"
    lab.out("kill", "--wait", fast, slow)


def test_a_job_cannot_ask_slurm_for_what_its_operator_keeps(lab: Lab) -> None:
    refused = lab.type("submit", "--no-files", "--queue", "fcr", "--slurm", "qos=low", "--", "true", code=2)
    assert (
        "slurm: qos cannot be set by jobs on cluster hpc, whose operator allows constraint, exclusive" in refused.stderr
    )
    refused = lab.type("submit", "--no-files", "--slurm", "output=/etc/passwd", "--", "true", code=2)
    assert "slurm: 'output' is set by the server itself" in refused.stderr
