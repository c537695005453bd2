"""The ports that tasks get: by label, as wished where that is free, and each given once."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec.structs import replace

from paddlecloud.model.job import Job, JobSpec, Placement, Ports, Resources, RoleSpec
from paddlecloud.scheduler import places
from paddlecloud.scheduler.plan import Snapshot, plan

ROOM = Resources(cpus=8, memory_bytes=2**33)


def a_job(ports: dict[str, Ports], count: int = 2, **changes: object) -> Job:
    role = RoleSpec(name="worker", count=count, command="x", ports=ports)
    job = Job(id="job-1", user="ann", spec=JobSpec(roles=(role,)), created_at=datetime(2026, 11, 17, tzinfo=UTC))
    return replace(job, **changes)


def placed(job: Job, *held: Placement) -> list[tuple[int, ...]]:
    tasks = places.requests(job.spec, ROOM)
    return [task.ports for task in places.place(job, "local", tasks, held, 0).tasks]


def test_a_task_that_asks_for_none_has_four_ports() -> None:
    assert [len(ports) for ports in placed(a_job({}))] == [4, 4]


def test_labels_stand_for_ports_of_the_task_and_http_and_ssh_are_always_there() -> None:
    job = a_job({"web": Ports(count=2), "http": Ports(count=3), "ssh": Ports()})
    assert job.spec.roles[0].labels == {"http": [0, 6, 7], "ssh": [1], "web": [4, 5]}
    found = placed(job)
    assert [len(ports) for ports in found] == [8, 8]
    assert len({port for ports in found for port in ports}) == 16


def test_a_wished_port_is_given_once_and_others_get_another() -> None:
    job = a_job({"web": Ports(count=2, begin=9000), "http": Ports(begin=7000)})
    first, second = placed(job)
    assert (first[0], first[4], first[5]) == (7000, 9000, 9001)
    assert not {7000, 9000, 9001} & set(second)
    assert len(set(first)) == len(first)


def test_a_wish_that_is_taken_or_was_just_refused_is_not_given() -> None:
    job = a_job({"web": Ports(begin=9000)}, count=1)
    held = places.place(job, "local", places.requests(job.spec, ROOM), (), 0)
    assert 9000 in held.tasks[0].ports
    assert 9000 not in placed(replace(job, id="job-2"), held)[0]
    refused = replace(job, queue_reason="port 9000, meant for worker-0, cannot be had: taken", attempt=1)
    assert 9000 not in placed(refused)[0]
    other = replace(job, queue_reason="port 90000, meant for worker-0, cannot be had: taken")
    assert 9000 in placed(other)[0]


def test_tasks_of_a_cluster_that_finds_nodes_itself_have_their_labels_too() -> None:
    job = a_job({"web": Ports(count=3, begin=9000)})
    found = places.leave_open(job, "slurm", places.requests(job.spec, None))
    assert [len(task.ports) for task in found.tasks] == [7, 7]
    assert found.tasks[0].ports[4:] == (9000, 9001, 9002)


def test_a_job_for_which_there_are_no_ports_waits_and_is_told_so() -> None:
    job = a_job({"web": Ports(count=96)}, count=200)
    snapshot = Snapshot(
        now=job.created_at, waiting=[job], placed=[], clusters={"local": replace(ROOM, cpus=1000)}, default=["local"]
    )
    decided = plan(snapshot)
    assert decided.placements == []
    assert "all ports" in decided.reasons[job.id]


def test_a_wish_for_a_port_that_another_task_of_the_job_was_given_is_not_given() -> None:
    plain = RoleSpec(name="plain", count=1, command="x")
    job = a_job({}, count=1)
    given = placed(replace(job, spec=JobSpec(roles=(plain,))))[0]
    wishing = RoleSpec(name="wishing", count=1, command="x", ports={"web": Ports(begin=given[2])})
    both = placed(replace(job, spec=JobSpec(roles=(plain, wishing))))
    assert len({port for ports in both for port in ports}) == len(both[0]) + len(both[1])
