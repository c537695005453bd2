"""Seed 003's two runs as they were: the data in HDFS, the trainers on the nodes of a Slurm."""

from __future__ import annotations

import re
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flow.cluster_desk import (
    IMAGES_CONFIG,
    IMAGES_DATA,
    LOCAL,
    QUEUES,
    TAGGING_CONFIG,
    TAGGING_DATA,
    Desk,
    slurm_settings,
)
from tests.flow.lab import Lab
from tests.hdfs import USER, Hdfs
from tests.slurm import Slurm

HOME = "/pfs/local/home/ME/paddle/demos"


@pytest.fixture(scope="module", params=["local", "slurm"])
def lab(request: pytest.FixtureRequest, hdfs_cluster: Hdfs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    made = Lab(tmp_path_factory.mktemp("cluster"))
    known = f'[hdfs."{hdfs_cluster.name}"]\nurl = "{hdfs_cluster.url}"\n'
    if request.param == "local":
        made.configure(LOCAL + QUEUES + known)
    else:
        slurm: Slurm = request.getfixturevalue("slurm")
        made.env |= {"SLURM_CONF": slurm.env["SLURM_CONF"], "PATH": slurm.env["PATH"]}
        made.configure(slurm_settings(slurm) + known)
    made.type("up")
    yield made
    made.close()


@pytest.fixture
def folder(hdfs_cluster: Hdfs) -> str:
    """In HDFS, with what both runs read."""
    made = f"/stores/{secrets.token_hex(6)}/app/ecom/fcr-opt/daiwenkai/paddle/demos"
    store = hdfs_cluster.store(made)
    for name, data in (("sequence_tagging", TAGGING_DATA), ("image_classification", IMAGES_DATA)):
        store.write_all([(f"{name}/{path}", text.encode()) for path, text in data.items()])
    return made


def in_hdfs(config: str, hdfs: Hdfs, folder: str) -> str:
    """A config with the place of its data as the seed has it."""
    told = config.replace(HOME, folder).replace('fs_name="pfs"', f'fs_name="hdfs://{hdfs.name}"')
    return told.replace("xxxx,", f"{USER},")


def test_sequence_tagging(lab: Lab, tmp_path: Path, hdfs_cluster: Hdfs, folder: str) -> None:
    desk = Desk(lab, tmp_path)
    desk.take_tagging(in_hdfs(TAGGING_CONFIG, hdfs_cluster, folder))
    job = desk.submit("--entry", "python train.py")
    lab.ends(job, "success")
    lines = lab.out("logs", job).splitlines()
    assert "train.list ['./train_data_dir/train/train.txt.gz'] ['to train']" in lines
    assert "test.list ['./test_data_dir/test/test.txt.gz'] ['to test']" in lines
    stored = subprocess.run(["grep", "-rl", "geheim", str(lab.data)], capture_output=True, text=True)
    assert stored.stdout == "", "no copy of the password is on the server"


def test_image_classification(lab: Lab, tmp_path: Path, hdfs_cluster: Hdfs, folder: str) -> None:
    desk = Desk(lab, tmp_path)
    desk.take_images(in_hdfs(IMAGES_CONFIG, hdfs_cluster, folder))
    job = desk.submit()
    lab.ends(job, "success", seconds=120)
    log = lab.out("logs", job)
    assert len(re.findall("mean a library of 24", log)) == 24
    assert sorted(re.findall(r"train_batch_(\d+)", log)) == [f"{number:03d}" for number in range(50)]


def test_a_file_system_that_the_server_does_not_know_is_refused(lab: Lab, tmp_path: Path, folder: str) -> None:
    desk = Desk(lab, tmp_path)
    desk.take_tagging(TAGGING_CONFIG.replace('fs_name="pfs"', 'fs_name="hdfs://other:54310"'))
    said = desk.run("--entry", "python train.py", code=2).stderr
    assert "other:54310" in said
    assert "geheim" not in said
