"""The environment contract: seed 002's variables, each with its value in each kind of task."""

from __future__ import annotations

import pytest

from paddlecloud.runtime.variables import VARIABLES, environment
from tests.unit.runtime.orders import alone

SEED_002 = {
    "POD_IP",
    "PADDLE_TRAINER_ID",
    "PADDLE_TRAINERS_NUM",
    "PADDLE_USE_CUDA",
    "PADDLE_IS_LOCAL",
    "DISTRIBUTE_JOB_TYPE",
    "PADDLE_PSERVERS_IP_PORT_LIST",
    "PADDLE_TRAINER_ENDPOINTS",
    "PADDLE_CURRENT_ENDPOINT",
    "TRAINING_ROLE",
    "OUTPUT_PATH",
    "LOCAL_LOG_PATH",
    "LOCAL_MOUNT_PATH",
    "JOB_ID",
    "PADDLE_PORT",
}
SEED_001 = {
    "PADDLE_JOB_NAME": "name",
    "TRAINERS": "2",
    "PSERVERS": "2",
    "ENTRY": "python train.py",
    "TRAINER_PACKAGE": "/pfs/dc1/home/u/job",
    "PWD": "/pfs/dc1/home/u/job",
    "PADDLE_INIT_PORT": "7164",
    "PADDLE_INIT_PORTS_NUM": "1",
    "PADDLE_INIT_PORTS_NUM_FOR_SPARSE": "1",
    "PADDLE_INIT_TRAINER_COUNT": "4",
    "PADDLE_INIT_NUM_GRADIENT_SERVERS": "2",
    "PADDLE_INIT_NUM_PASSES": "1",
    "PADDLE_INIT_USE_GPU": "0",
    "PADDLE_INIT_PSERVERS": "127.0.0.4,127.0.0.5",
    "PADDLE_INIT_TRAINER_ID": "1",
    "PADDLE_CLOUD_CURRENT_DATACENTER": "dc1",
    "PADDLE_CLOUD_USERNAME": "some_one@example.com",
    "NAMESPACE": "some-one-example-com",
    "PADDLECLOUD_PFS": "/pfs",
}
TRAINERS = ["127.0.0.2:20000", "127.0.0.3:20001"]
PSERVERS = ["127.0.0.4:20002", "127.0.0.5:20003"]


def test_the_table_has_all_of_seed_002_and_each_name_once() -> None:
    names = [variable.name for variable in VARIABLES]
    assert set(names) >= SEED_002
    assert len(names) == len(set(names))


def test_one_trainer_alone_is_local() -> None:
    found = environment(alone())
    assert found["PADDLE_IS_LOCAL"] == "1"
    assert found["PADDLE_TRAINERS_NUM"] == "1"
    assert found["PADDLE_TRAINER_ENDPOINTS"] == found["PADDLE_CURRENT_ENDPOINT"] == "127.0.0.2:20000"
    assert "DISTRIBUTE_JOB_TYPE" not in found
    assert "PADDLE_PSERVERS_IP_PORT_LIST" not in found


def test_a_trainer_of_two_on_gpus_runs_by_nccl2() -> None:
    task = alone(
        rank=1, address="127.0.0.3", port=20001, trainers=TRAINERS, trainer_count=2, distribute="NCCL2",
        uses_gpus=True, gpus=[2, 3],
    )  # fmt: skip
    found = environment(task)
    expected = {
        "POD_IP": "127.0.0.3",
        "PADDLE_PORT": "20001",
        "PADDLE_TRAINER_ID": "1",
        "PADDLE_TRAINERS_NUM": "2",
        "PADDLE_USE_CUDA": "1",
        "PADDLE_IS_LOCAL": "0",
        "DISTRIBUTE_JOB_TYPE": "NCCL2",
        "PADDLE_TRAINER_ENDPOINTS": "127.0.0.2:20000,127.0.0.3:20001",
        "PADDLE_CURRENT_ENDPOINT": "127.0.0.3:20001",
        "TRAINING_ROLE": "TRAINER",
        "CUDA_VISIBLE_DEVICES": "2,3",
    }
    assert {name: found.get(name) for name in expected} == expected
    assert "PADDLE_DISTRI_BACKEND" not in found


def test_a_pserver_finds_itself_in_the_list_of_pservers() -> None:
    task = alone(
        role="pserver", task="pserver-1", rank=1, address="127.0.0.5", port=20003, trainers=TRAINERS, pservers=PSERVERS,
        trainer_count=2, pserver_count=2, distribute="PSERVER",
    )  # fmt: skip
    found = environment(task)
    assert found["TRAINING_ROLE"] == "PSERVER"
    assert found["PADDLE_TRAINER_ID"] == "1"
    assert f"{found['POD_IP']}:{found['PADDLE_PORT']}" in found["PADDLE_PSERVERS_IP_PORT_LIST"].split(",")
    assert found["PADDLE_TRAINER_ENDPOINTS"] == ",".join(TRAINERS)
    assert found["PADDLE_IS_LOCAL"] == "0"


@pytest.mark.parametrize("role", ["trainer", "pserver"])
def test_every_task_finds_what_paddlepaddle_cloud_set(role: str) -> None:
    task = alone(
        role=role, rank=1, trainers=TRAINERS, pservers=PSERVERS, trainer_count=2, pserver_count=2,
        user="some_one@example.com", entry="python train.py", trainer_devices=4, datacenter="dc1",
        cwd="/pfs/dc1/home/u/job", pfs="/pfs",
    )  # fmt: skip
    found = environment(task)
    assert {name: found.get(name) for name in SEED_001} == SEED_001


def test_without_a_datacenter_its_variables_are_not_set() -> None:
    found = environment(alone())
    assert not {"PADDLE_CLOUD_CURRENT_DATACENTER", "PADDLECLOUD_PFS", "PADDLE_INIT_PSERVERS", "TOPOLOGY"} & set(found)
    assert found["TRAINER_PACKAGE"] == found["PWD"] == "/x/work"


def test_one_trainer_with_a_pserver_is_distributed() -> None:
    assert environment(alone(pserver_count=1, pservers=PSERVERS[:1]))["PADDLE_IS_LOCAL"] == "0"


def test_a_cpu_task_gets_gloo_and_no_gpu() -> None:
    found = environment(alone())
    assert (found["PADDLE_DISTRI_BACKEND"], found["CUDA_VISIBLE_DEVICES"], found["PADDLE_USE_CUDA"]) == (
        "gloo",
        "",
        "0",
    )


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("OMP_NUM_THREADS", "mine"),
        ("PADDLE_INIT_NUM_PASSES", "mine"),
        ("PADDLECLOUD_HANDLE", "job-1-1"),
        ("PADDLECLOUD_TASK", "trainer-0"),
    ],
)
def test_the_users_variables_win_over_all_but_the_marks(name: str, kept: str) -> None:
    assert environment(alone(env={name: "mine"}))[name] == kept
