"""Seed 001's samples of datasets, in the words of PaddlePaddle v2, as jobs with `--compat v2`."""

from __future__ import annotations

from tests.flow.lab import Lab
from tests.waiting import wait_until

# Of seed 001: the sample of split, and that of a reader which reads what is its own.
PREPARE = """
import paddle.v2.dataset.common as common

def reader():
    for number in range(10):
        yield number

common.split(reader=reader, line_count=2, suffix="./parts/train-%05d.pickle")
"""
TRAIN = """
import os
import cPickle as pickle
import paddle.v2.dataset.common as common

os.chdir("/")
def train():
    return common.cluster_files_reader(
        os.environ["PARTS"] + "/train-*.pickle",
        trainer_count=int(os.getenv("PADDLE_INIT_NUM_GRADIENT_SERVERS")),
        train_id=int(os.getenv("PADDLE_INIT_TRAINER_ID")),
        loader=pickle.load,
    )
print("read", list(train()()), flush=True)
"""


def test_a_folder_with_programs_of_v2_runs_on_two_trainers(desk: Lab) -> None:
    desk.folder(prepare_py=PREPARE, train_py=TRAIN, run_sh="python prepare.py && PARTS=$PWD/parts python train.py\n")
    ran = desk.type("run", "--compat", "v2", "--nodes", "2", "--no-download", "job", "--", "sh", "run.sh")
    assert "trainer-0 | read [0, 1, 2, 5, 6, 9]\n" in ran.stdout
    assert "trainer-1 | read [3, 4, 7, 8]\n" in ran.stdout


def test_without_it_they_are_told_what_is_missing(desk: Lab) -> None:
    desk.folder(prepare_py=PREPARE)
    assert "paddle" in desk.type("run", "--no-download", "job", "--", "python prepare.py", code=100).stdout


def test_a_job_file_asks_for_it(desk: Lab) -> None:
    desk.folder(prepare_py=PREPARE, job_yaml="workdir: .\nrun: python prepare.py && ls parts | wc -l\ncompat: v2\n")
    assert desk.out("run", "--no-download", "-f", "job/job.yaml").endswith("5\n")
    desk.folder(job_yaml="workdir: .\nrun: 'true'\ncompat: v1\n")
    assert "compat" in desk.type("run", "-f", "job/job.yaml", code=2).stderr


def test_a_package_of_paddlepaddle_cloud_finds_it_too(desk: Lab) -> None:
    desk.folder("package", prepare_py=PREPARE, run_sh="python prepare.py && ls parts | wc -l\n")
    flags = ("-jobname", "old", "-pservers", "0", "-entry", "sh run.sh", "--compat", "v2")
    desk.type("submit", *flags, "package")
    wait_until(lambda: desk.type("wait", "old", code=None).returncode == 0, "it succeeds")
    assert desk.out("logs", "old") == "5\n"
