"""The same attacks on the nodes of a Slurm cluster, where tasks of all users run as the server's account."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flow.test_slurm import HPC
from tests.hostile.isolation.boxes import KINDS, Box, box, python, tried
from tests.hostile.isolation.test_tasks_reach_only_their_own import PROBE, SECRET
from tests.slurm import Slurm


@pytest.fixture(scope="module")
def cluster(slurm: Slurm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    config = HPC.format(python=sys.executable, account=slurm.account)
    with box(KINDS[0], tmp_path_factory.mktemp("slurm"), config, env=slurm.env) as made:
        made.person("alice")
        made.person("mallory")
        yield made
    slurm.empty()


def test_a_task_on_a_node_reaches_neither_others_files_nor_the_servers(cluster: Box) -> None:
    alice, mallory, data = cluster.person("alice"), cluster.person("mallory"), cluster.data
    alice.run(f"echo {SECRET} > /pfs/local/home/alice/secret; echo {SECRET} > $OUTPUT_PATH/secret")
    said = mallory.run(
        tried(
            f"cat {data}/key {data}/embedded.json",
            f"cat {data}/pfs/local/home/alice/secret",
            f"grep -r {SECRET} {data} /pfs",
            f"touch {cluster.account.home}/evil",
        )
    )
    assert "tried-all" in said
    assert SECRET not in said
    assert not (cluster.account.home / "evil").exists()


def test_a_task_on_a_node_has_a_tmp_of_its_own(cluster: Box) -> None:
    alice, mallory = cluster.person("alice"), cluster.person("mallory")
    hold = f"for d in /tmp /var/tmp /dev/shm; do echo {SECRET} > $d/held-on-a-node; done; echo holding; sleep 1000"
    job = alice.begin(hold)
    alice.hears(job, "holding")
    said = mallory.run(tried("cat /tmp/held-on-a-node /var/tmp/held-on-a-node /dev/shm/held-on-a-node"))
    assert SECRET not in said
    assert not any(Path(folder, "held-on-a-node").exists() for folder in ("/tmp", "/var/tmp", "/dev/shm"))


def test_a_task_on_a_node_has_no_capability_and_no_devices(cluster: Box) -> None:
    found = json.loads(cluster.person("mallory").run(python(PROBE)).splitlines()[-1])
    assert found["capabilities"] is True
    assert "YES" not in {found[name] for name in ("packets", "raw", "clock", "kernel log", "mknod")}
