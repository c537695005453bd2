"""The environment contract: seed 002's variables, each with its value in each kind of task."""

from __future__ import annotations

import pytest

from paddlecloud.runtime.variables import GANG, VARIABLES, environment
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
# Without one of these a framework was seen to train alone, or to fail far from the cause.
SILENT = (
    "PADDLE_TRAINER_ID PADDLE_TRAINERS_NUM PADDLE_NNODES PADDLE_GLOBAL_SIZE PADDLE_TRAINER_ENDPOINTS "
    "PADDLE_CURRENT_ENDPOINT PADDLE_MASTER RANK WORLD_SIZE PET_NNODES TF_CONFIG JAX_NUM_PROCESSES"
).split()
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
        rank=1, address="127.0.0.3", ports=[20001], trainers=TRAINERS, trainer_count=2, distribute="NCCL2",
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
        role="pserver", task="pserver-1", rank=1, address="127.0.0.5", ports=[20003], trainers=TRAINERS,
        pservers=PSERVERS, trainer_count=2, pserver_count=2, distribute="PSERVER",
    )  # fmt: skip
    found = environment(task)
    assert found["TRAINING_ROLE"] == "PSERVER"
    assert found["PADDLE_TRAINER_ID"] == "1"
    assert f"{found['POD_IP']}:{found['PADDLE_PORT']}" in found["PADDLE_PSERVERS_IP_PORT_LIST"].split(",")
    assert found["PADDLE_TRAINER_ENDPOINTS"] == ",".join(TRAINERS)
    assert found["PADDLE_IS_LOCAL"] == "0"


SECOND_OF_TWO = alone(
    rank=1, address="127.0.0.3", ports=[20001, 20011, 20021, 20031], trainers=TRAINERS, trainer_count=2,
    workers=["127.0.0.2:20010", "127.0.0.3:20011"], master="127.0.0.2:20020", coordinator="127.0.0.2:20030",
    job="job-00000010ffffffffffffffffffffffff",
)  # fmt: skip
FRAMEWORKS = {
    "paddle": {
        "PADDLE_TRAINING_ROLE": "TRAINER",
        "PADDLE_GLOBAL_RANK": "1",
        "PADDLE_GLOBAL_SIZE": "2",
        "PADDLE_LOCAL_SIZE": "1",
        "PADDLE_DISTRI_BACKEND": "gloo",
    },
    "paddle.distributed.launch": {
        "PADDLE_MASTER": "127.0.0.2:20020",
        "PADDLE_NNODES": "2",
        "PADDLE_RANK": "1",
        "PADDLE_NPROC_PER_NODE": "1",
    },
    "torch": {
        "MASTER_ADDR": "127.0.0.2",
        "MASTER_PORT": "20020",
        "RANK": "1",
        "WORLD_SIZE": "2",
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
    },
    "torchrun": {
        "PET_NNODES": "2",
        "PET_NODE_RANK": "1",
        "PET_NPROC_PER_NODE": "1",
        "PET_MASTER_ADDR": "127.0.0.2",
        "PET_MASTER_PORT": "20020",
    },
    "tensorflow": {
        "TF_CONFIG": '{"cluster":{"worker":["127.0.0.2:20010","127.0.0.3:20011"]},"task":{"type":"worker","index":1}}'
    },
    "jax": {
        "JAX_COORDINATOR_ADDRESS": "127.0.0.2:20030",
        "JAX_NUM_PROCESSES": "2",
        "JAX_PROCESS_ID": "1",
        "OMPI_MCA_orte_hnp_uri": "",
        "OMPI_COMM_WORLD_SIZE": "2",
        "OMPI_COMM_WORLD_RANK": "1",
        "OMPI_COMM_WORLD_LOCAL_RANK": "0",
    },
}
SLURM = {
    "SLURM_JOB_ID": "1",
    "SLURM_STEP_NODELIST": "127.0.0.2,127.0.0.3",
    "SLURM_NTASKS": "2",
    "SLURM_PROCID": "1",
    "SLURM_LOCALID": "0",
}


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_framework_finds_its_own_variables(framework: str) -> None:
    found = environment(SECOND_OF_TWO)
    assert {name: found.get(name) for name in FRAMEWORKS[framework]} == FRAMEWORKS[framework]


@pytest.mark.parametrize("framework", sorted(FRAMEWORKS.keys() - {"paddle"}))
def test_a_pserver_is_told_nothing_by_which_it_would_train(framework: str) -> None:
    found = environment(alone(**{**SECOND_OF_TWO._asdict(), "role": "pserver", "pservers": PSERVERS}))
    assert not FRAMEWORKS[framework].keys() & found.keys()


def test_launchers_start_a_process_for_each_gpu() -> None:
    found = environment(SECOND_OF_TWO._replace(uses_gpus=True, gpus=[4, 5, 6]))
    assert (found["PADDLE_NPROC_PER_NODE"], found["PET_NPROC_PER_NODE"]) == ("3", "3")
    assert (found["CUDA_VISIBLE_DEVICES"], found["FLAGS_selected_gpus"]) == ("4,5,6", "0")
    assert found["JAX_LOCAL_DEVICE_IDS"] == "0,1,2"


def test_slurms_variables_are_set_only_on_request() -> None:
    assert not SLURM.keys() & environment(SECOND_OF_TWO).keys()
    found = environment(SECOND_OF_TWO._replace(slurm=True))
    assert {name: found.get(name) for name in SLURM} == SLURM


@pytest.mark.parametrize("name", SILENT)
def test_no_trainer_is_without_its_number_and_its_peers_and_nobody_may_set_them(name: str) -> None:
    assert environment(alone())[name]
    assert environment(SECOND_OF_TWO)[name]
    assert name in GANG


def test_all_that_cannot_be_overridden_is_in_the_table() -> None:
    assert {variable.name for variable in VARIABLES} >= GANG


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
    assert (found["OMP_NUM_THREADS"], found["PYTHONUNBUFFERED"]) == ("1", "1")


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
