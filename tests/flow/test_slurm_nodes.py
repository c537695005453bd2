"""What a real Slurm has: nodes that `--num_nodes` counts, what is idle there, and the order of its queue."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flow.cluster_desk import QUEUES, TAGGING_DATA, Desk
from tests.flow.lab import Lab
from tests.slurm import Slurm
from tests.waiting import wait_until


@pytest.fixture
def lab(tmp_path: Path, slurm: Slurm) -> Iterator[Lab]:
    made = Lab(tmp_path)
    made.env |= {**slurm.env, "HOME": str(made.home)}
    made.configure(
        f"[clusters.hpc]\nbackend = 'slurm'\npython = '{sys.executable}'\njob_options = ['nice']\n"
        f"sbatch = {{account = '{slurm.account}'}}\n{QUEUES}"
    )
    made.type("up")
    yield made
    made.close()
    slurm.empty()


def test_num_nodes_is_a_number_of_nodes_with_a_trainer_on_each(lab: Lab, slurm: Slurm, tmp_path: Path) -> None:
    (tmp_path / "desk").mkdir()
    desk = Desk(lab, tmp_path / "desk")
    desk.put("sequence_tagging", TAGGING_DATA)
    desk.take_tagging()
    job = desk.submit("--num_nodes", "4", "--entry", "echo ends $PADDLE_TRAINER_ENDPOINTS")
    lab.ends(job, "success", seconds=120)
    ends = re.findall(r"trainer-0 \| ends (\S+)", lab.out("logs", job))[0].split(",")
    assert len({end.partition(":")[0] for end in ends}) == 4
    refused = desk.run("--num_nodes", "5", "--entry", "true", code=2).stderr
    assert "asks for 5 nodes (--num_nodes), and partition batch of hpc has 4: ask for 4 at most" in refused
    assert "`pack = true` in [clusters.hpc]" in refused
    refused = desk.run("--num_nodes", "5000", "--entry", "true", code=2).stderr
    assert re.search(r"the job has 5000 tasks .*; this server takes \d+ at most", refused)


def test_clusters_say_what_slurm_has_and_whether_it_answers(lab: Lab, slurm: Slurm) -> None:
    cpus = len(slurm.nodes) * slurm.shape.cpus

    def told() -> str:
        return lab.out("clusters")

    def used(number: int) -> bool:
        return f"{cpus - number} of {cpus} free" in told()

    wait_until(lambda: used(0), "all is free")
    assert re.search(r"^hpc +up +slurm", told(), re.MULTILINE)
    job = lab.out("submit", "--no-files", "--cpus", "1", "--", "sleep", "1000").strip()
    wait_until(lambda: used(1), "one CPU is used", seconds=60)
    lab.type("kill", "--wait", job)
    slurm.stop_controller()
    try:
        wait_until(lambda: re.search(r"^hpc +down", told(), re.MULTILINE), "hpc is down", seconds=60)
        assert "hpc does not answer: Slurm" in lab.type("clusters").stderr
        warned = re.findall(r"WARNING (.*)", (lab.data / "server.log").read_text())
        assert any("cluster hpc does not answer" in line for line in warned)
        assert len(warned) == len(set(warned)), "a warning is not repeated within a minute"
    finally:
        slurm.start_controller()
    wait_until(lambda: re.search(r"^hpc +up", told(), re.MULTILINE), "hpc is up", seconds=60)


def test_the_queue_is_in_slurms_order(lab: Lab, slurm: Slurm) -> None:
    slurm.submit("sleep 1000", "--nodes=4", "--exclusive", f"--account={slurm.account}")
    later = lab.out("submit", "--no-files", "--slurm", "nice=1000", "--", "true").strip()
    sooner = lab.out("submit", "--no-files", "--", "true").strip()

    def rows() -> list[list[str]]:
        return [line.split()[:2] for line in lab.out("queue").splitlines()[1:]]

    wait_until(lambda: rows() == [["1", sooner], ["2", later]], "the queue is in order", seconds=60)
    assert "1 job before it" in lab.out("show", later)
