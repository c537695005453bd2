"""Every task finds out by itself where the others are, from what Slurm says in its environment."""

from __future__ import annotations

import pytest

from paddlecloud.runtime.allocation import (
    ADDRESSES,
    SLURM,
    AllocationError,
    expand,
    job,
    nodes_of_tasks,
    number,
    settle,
)
from paddlecloud.runtime.taskfile import Role
from paddlecloud.runtime.variables import environment
from tests.unit.runtime.orders import alone

STEP = {"SLURM_STEP_NODELIST": "n[1-2]", "SLURM_STEP_TASKS_PER_NODE": "2,1", "SLURM_JOB_ID": "12"}


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ("n1", ["n1"]),
        ("n[1-3]", ["n1", "n2", "n3"]),
        ("n[08-10]", ["n08", "n09", "n10"]),
        ("n[1,3-4],login", ["n1", "n3", "n4", "login"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
        ("a-b[1]c", ["a-b1c"]),
        ("", []),
        ("n[3-1]", []),
    ],
)
def test_a_list_of_nodes(names: str, found: list[str]) -> None:
    assert list(expand(names)) == found


@pytest.mark.parametrize("names", ["n[a-b]", "n[1-]x", "n[-]", "n[1-9999999999]", "n[²]"])
def test_what_is_no_list_is_refused(names: str) -> None:
    with pytest.raises(AllocationError, match="no list of nodes"):
        list(expand(names))


@pytest.mark.parametrize(
    ("nodes", "counts", "found"),
    [
        ("n[1-2]", "2,1", ["n1", "n1", "n2"]),
        ("n[1-4]", "1(x4)", ["n1", "n2", "n3", "n4"]),
        ("n[1-3]", "2(x2),1", ["n1", "n1", "n2", "n2", "n3"]),
    ],
)
def test_tasks_are_dealt_out_in_blocks(nodes: str, counts: str, found: list[str]) -> None:
    told = {"SLURM_STEP_NODELIST": nodes, "SLURM_STEP_TASKS_PER_NODE": counts}
    assert nodes_of_tasks(told) == found


def test_parts_of_a_heterogeneous_job_come_one_after_the_other_wherever_they_are() -> None:
    told = {
        "SLURM_STEP_NODELIST": "n[1-3]",
        "SLURM_STEP_TASKS_PER_NODE": "8,4,2",
        "SLURM_JOB_NODELIST_HET_GROUP_0": "n3",
        "SLURM_JOB_NODELIST_HET_GROUP_1": "n[1-2]",
    }
    assert nodes_of_tasks(told) == ["n3"] * 2 + ["n1"] * 8 + ["n2"] * 4


@pytest.mark.parametrize(
    "wrong",
    [
        {"SLURM_STEP_TASKS_PER_NODE": "1"},
        {"SLURM_STEP_TASKS_PER_NODE": "1,x"},
        {"SLURM_STEP_TASKS_PER_NODE": ""},
        {"SLURM_PROCID": "3"},
        {"SLURM_PROCID": "2", "SLURMD_NODENAME": "n1"},
    ],
)
def test_a_task_that_is_not_where_it_should_be_does_not_guess(wrong: dict[str, str]) -> None:
    with pytest.raises(AllocationError):
        nodes_of_tasks({**STEP, **wrong})


def test_without_a_step_it_is_alone() -> None:
    assert nodes_of_tasks({"SLURMD_NODENAME": "n7"}) == ["n7"]
    assert (number({}), number({"SLURM_PROCID": "5"})) == (0, 5)
    assert (job({}), job(STEP)) == ("", "12")


def test_the_task_file_is_settled_with_addresses_and_gpus() -> None:
    task = alone(
        allocation=SLURM,
        uses_gpus=True,
        address="@1",
        trainers=["@0:1", "@1:2"],
        pservers=["@2:3"],
        workers=["@0:4", "@1:5"],
        master="@0:6",
        coordinator="@0:7",
        roles=[
            Role("trainer", 1, 1.0, 1, 1, 1, ["@0", "@1"], [[1], [2]], {}, 0),
            Role("pserver", 0, 1.0, 1, 1, 0, ["@2"], [[3]], {}, 0),
        ],
    )
    told = {**STEP, ADDRESSES: "n1=10.0.0.1 ", "CUDA_VISIBLE_DEVICES": "2,3"}
    found = settle(task, told)
    assert (found.address, found.trainers, found.pservers) == ("10.0.0.1", ["10.0.0.1:1", "10.0.0.1:2"], ["n2:3"])
    assert (found.master, found.coordinator, found.workers[1]) == ("10.0.0.1:6", "10.0.0.1:7", "10.0.0.1:5")
    assert [role.addresses for role in found.roles] == [["10.0.0.1"] * 2, ["n2"]]
    assert found.gpus == [2, 3]
    assert settle(task._replace(uses_gpus=False), told).gpus == []
    with pytest.raises(AllocationError, match="one more is looked for"):
        settle(task._replace(pservers=["@3:1"]), told)


@pytest.mark.parametrize(
    ("told", "gpus", "variables"),
    [
        ({"CUDA_VISIBLE_DEVICES": "GPU-8f,GPU-9a"}, [0, 1], {"CUDA_VISIBLE_DEVICES": "GPU-8f,GPU-9a"}),
        ({"CUDA_VISIBLE_DEVICES": "MIG-1c"}, [0], {"CUDA_VISIBLE_DEVICES": "MIG-1c"}),
        ({"ROCR_VISIBLE_DEVICES": "GPU-8f"}, [0], {"ROCR_VISIBLE_DEVICES": "GPU-8f", "CUDA_VISIBLE_DEVICES": "0"}),
        ({"CUDA_VISIBLE_DEVICES": "NoDevFiles"}, [], {"CUDA_VISIBLE_DEVICES": ""}),
        ({"CUDA_VISIBLE_DEVICES": "2,5"}, [2, 5], {"CUDA_VISIBLE_DEVICES": "2,5"}),
    ],
)
def test_gpus_that_the_cluster_names_are_counted_and_stay_as_they_are_named(
    told: dict[str, str], gpus: list[int], variables: dict[str, str]
) -> None:
    found = settle(alone(allocation=SLURM, uses_gpus=True, address="@0"), {**told, "SLURMD_NODENAME": "n1"})
    assert found.gpus == gpus
    assert environment(found).items() >= variables.items()
    assert settle(alone(allocation=SLURM, env={"A": "b"}), told).env == {"A": "b"}


def test_addresses_with_colons_are_in_brackets_where_a_port_follows() -> None:
    task = alone(allocation=SLURM, address="@2", trainers=["@0:1", "@2:2"])
    found = settle(task, {**STEP, ADDRESSES: "n1=10.0.0.1 n2=fd00::1"})
    assert (found.address, found.trainers) == ("fd00::1", ["10.0.0.1:1", "[fd00::1]:2"])


def test_one_task_reaches_itself_on_loopback() -> None:
    found = settle(alone(allocation=SLURM, address="@0", trainers=["@0:1"]), {"SLURMD_NODENAME": "n1"})
    assert (found.address, found.trainers) == ("127.0.0.1", ["127.0.0.1:1"])


def test_a_file_that_says_where_tasks_are_is_left_as_it_is() -> None:
    assert settle(alone(gpus=[1]), {**STEP, "CUDA_VISIBLE_DEVICES": "7"}) == alone(gpus=[1])
