"""Our records as the Go client of PaddlePaddle Cloud reads them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from paddlecloud.model.job import Job, JobSpec, Resources, RoleSpec
from paddlecloud.model.state import JobState
from paddlecloud.model.task import TaskReport, TaskState
from paddlecloud.server.dialects.paddlecloud import shapes

AT = datetime(2017, 5, 24, 7, 52, 45, tzinfo=UTC)
SPEC = JobSpec(
    roles=(
        RoleSpec(name="trainer", count=2, command="true"),
        RoleSpec(name="pserver", count=3, command="true", min_succeeded=0),
    ),
    name="my-job",
)
JOB = Job(id=f"job-{1:032x}", user="ann", spec=SPEC, created_at=AT)


def task(name: str, state: TaskState, **more: Any) -> TaskReport:
    return replace(TaskReport(name=name, state=state, started_at=AT), **more)


def test_counts_of_a_job_are_null_where_they_are_nothing() -> None:
    running = replace(JOB, state=JobState.RUNNING, started_at=AT)
    tasks = [
        task("trainer-0", TaskState.RUNNING),
        task("trainer-1", TaskState.FAILED),
        task("pserver-0", TaskState.RUNNING),
    ]
    item = shapes.trainers(running, tasks)
    assert item["metadata"]["name"] == "my-job-trainer"
    assert item["status"] == {
        "active": 1,
        "completion_time": None,
        "conditions": None,
        "failed": 1,
        "start_time": "2017-05-24T07:52:45Z",
        "succeeded": None,
    }
    servers = shapes.pservers(running, tasks)
    assert servers is not None
    assert (servers["metadata"]["name"], servers["status"]) == ("my-job-pserver", {"ready_replicas": 1, "replicas": 3})


def test_a_job_without_pservers_has_no_such_item() -> None:
    assert shapes.pservers(replace(JOB, spec=replace(SPEC, roles=SPEC.roles[:1])), []) is None


def test_every_worker_has_one_container_status_from_the_start_on() -> None:
    for state in TaskState:
        for worker in shapes.workers(JOB, [task("trainer-0", state)], all_roles=True):
            (status,) = worker["status"]["container_statuses"]
            assert set(status["state"]) == {"running", "terminated", "waiting"}
            assert sum(value is not None for value in status["state"].values()) == 1


@pytest.mark.parametrize(
    ("report", "code", "message"),
    [
        (task("trainer-0", TaskState.FAILED, exit_code=1), 1, "General Error"),
        (task("trainer-0", TaskState.FAILED, exit_code=3), 3, "exit code 3"),
        (task("trainer-0", TaskState.FAILED, signal=11), 139, "Segmentation Fault"),
        (task("trainer-0", TaskState.FAILED, signal=8), 136, "Error Arithmetic Operation(Floating Point Exception)"),
        (task("trainer-0", TaskState.FAILED, signal=6), 134, "Program Abort"),
        (task("trainer-0", TaskState.FAILED, signal=9, reason="out of\nmemory"), 137, "out of memory"),
        (task("trainer-0", TaskState.LOST), 1, "General Error"),
        (task("trainer-0", TaskState.SUCCEEDED, exit_code=0), 0, None),
    ],
)
def test_last_words_are_one_line_and_those_of_the_old_runtime(report: TaskReport, code: int, message: str) -> None:
    first, _ = shapes.workers(JOB, [report])
    ended = first["status"]["container_statuses"][0]["state"]["terminated"]
    assert (ended["exit_code"], ended["message"]) == (code, message)


@pytest.mark.parametrize(
    ("capacity", "hard"),
    [
        (Resources(cpus=2.5, memory_bytes=32 * 2**30, gpus=1), ("2.5", "32Gi", "1")),
        (Resources(cpus=8, memory_bytes=1500 * 2**20), ("8", "1500Mi", "0")),
        (None, ("unknown", "unknown", "0")),
    ],
)
def test_a_quota_is_texts_and_always_has_gpus(capacity: Resources | None, hard: tuple[str, ...]) -> None:
    found = shapes.quota("local", capacity, None, AT)["status"]["hard"]
    assert (found["requests.cpu"], found["requests.memory"], found["alpha.kubernetes.io/nvidia-gpu"]) == hard
    assert found["pods"] == "unlimited"
    assert all(isinstance(value, str) for value in found.values())
