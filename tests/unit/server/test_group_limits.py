"""What groups give their members: limits, with where each comes from, and queues that are not open to all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from paddlecloud.model.job import Resources
from paddlecloud.model.user import Quota
from paddlecloud.scheduler.quota import of_groups
from tests.unit.server.running import Running, a_spec, running

MACHINE = Resources(cpus=8.0, memory_bytes=2**33, gpus=2)
SETTINGS: dict[str, object] = {
    "clusters": {"local": {"policy": "open", "running_jobs": 1, "instances": 2}, "other": {"policy": "open"}},
    "pfs": {"space": 1000},
    "queues": {
        "open": {"cluster": "local"},
        "of_lab": {"cluster": "local", "groups": ["lab"]},
        "of_admins": {"cluster": "local", "groups": ["admin"]},
        "of_bob": {"cluster": "local", "users": ["bob"]},
        "narrow": {"cluster": "other", "cpus": 2, "gpus": 0},
    },
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    capacities = {"local": MACHINE, "other": MACHINE}
    with running(tmp_path_factory.mktemp("server") / "data", SETTINGS, capacities) as made:
        yield made


@pytest.fixture(autouse=True)
def removed(server: Running) -> Iterator[None]:
    yield
    for one in server.get("/v1/groups", server.root):
        if one["created_at"] is not None:
            assert server.ask("DELETE", f"/v1/groups/{one['name']}", token=server.root).status == 204


def made(server: Running, name: str, **asked: Any) -> None:
    answer = server.ask("POST", "/v1/groups", {"name": name, **asked}, token=server.root)
    assert answer.status == 201, answer.data


def limits(server: Running, cluster: str) -> tuple[dict[str, int], str]:
    """What limits Ann there, and where it comes from."""
    use = server.get("/v1/quota")
    place = use["overall"] if cluster == "all" else use["clusters"][cluster]
    return {name: limit for name, limit in place["quota"].items() if limit is not None}, place["source"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {}),
        ({"a": {"c": Quota(running_jobs=2)}}, {"c": Quota(running_jobs=2)}),
        (
            {"a": {"c": Quota(running_jobs=2, instances=9)}, "b": {"c": Quota(running_jobs=3, instances=1)}},
            {"c": Quota(running_jobs=3, instances=9)},
        ),
        # On a cluster no limit is the most generous; on all together, who says nothing of one is not counted.
        ({"a": {"c": Quota(running_jobs=2)}, "b": {"c": Quota(instances=1)}}, {"c": Quota()}),
        (
            {"a": {"": Quota(running_jobs=2)}, "b": {"": Quota(space_bytes=5)}},
            {"": Quota(running_jobs=2, space_bytes=5)},
        ),
        (
            {"a": {"c": Quota(instances=1)}, "b": {"d": Quota(instances=2)}},
            {"c": Quota(instances=1), "d": Quota(instances=2)},
        ),
        ({"a": {"c": Quota(running_jobs=0)}}, {"c": Quota(running_jobs=0)}),
    ],
)
def test_of_several_groups_the_most_generous_limit_counts(
    given: dict[str, dict[str, Quota]], expected: dict[str, Quota]
) -> None:
    assert of_groups(given) == expected


def test_a_limit_is_the_users_own_else_a_groups_else_the_clusters(server: Running) -> None:
    assert limits(server, "local") == ({"running_jobs": 1, "instances": 2}, "cluster")
    assert limits(server, "all") == ({}, "")
    made(server, "lab", members=["ann"], quotas={"local": {"running_jobs": 3}}, quota={"instances": 4})
    assert limits(server, "local") == ({"running_jobs": 3}, "group lab")
    assert limits(server, "all") == ({"instances": 4}, "group lab")
    made(server, "guests", members=["ann"], quotas={"local": {"running_jobs": 5}})
    assert limits(server, "local") == ({"running_jobs": 5}, "groups guests, lab")
    server.users.change("ann", quotas={"local": Quota(running_jobs=2), "": Quota(waiting_jobs=9)})
    assert limits(server, "local") == ({"running_jobs": 2}, "own")
    assert limits(server, "all") == ({"waiting_jobs": 9}, "own")
    server.users.change("ann", quotas={"local": None, "": None})
    server.ask("DELETE", "/v1/groups/guests/members/ann", token=server.root)
    assert limits(server, "local") == ({"running_jobs": 3}, "group lab")


def test_members_run_more_at_once_and_who_leaves_waits_again(server: Running) -> None:
    first = server.run(cluster="local")
    second = server.submit(cluster="local")
    server.reaches(second, "queue")
    assert "1 of 1 jobs running for ann on local" in server.get(f"/v1/jobs/{second}")["job"]["queue_reason"]
    made(server, "lab", members=["ann"], quotas={"local": {"running_jobs": 2}})
    server.services.loop.wake()
    server.reaches(second, "running")
    server.ask("DELETE", "/v1/groups/lab/members/ann", token=server.root)
    refused = server.ask("POST", "/v1/jobs", a_spec(count=3, cluster="local"))
    assert (refused.status, refused.json()["code"]) == (403, "quota")
    assert "2 allowed for one job of ann on local" in refused.json()["detail"]
    for job in (first, second):
        server.finish(job)
        server.reaches(job, "success")


def test_the_space_of_a_member_is_their_own_limit_else_the_largest_of_their_groups_else_everybodys(
    server: Running,
) -> None:
    def put(size: int) -> int:
        return server.ask("PUT", "/v1/files/pfs/local/home/ann/x", bytes(size)).status

    assert (put(900), put(1500)) == (200, 403)
    made(server, "lab", members=["ann"], quota={"space_bytes": 2000})
    made(server, "more", members=["ann"], quota={"running_jobs": 3})
    use = server.get("/v1/quota")
    assert (use["space_limit_bytes"], use["space_source"]) == (2000, "group lab")
    assert (put(1500), put(2500)) == (200, 403)
    server.users.change("ann", quotas={"": Quota(running_jobs=9)})  # says nothing of space
    assert server.get("/v1/quota")["space_limit_bytes"] == 2000
    server.users.change("ann", quotas={"": Quota(space_bytes=3000)})
    assert put(2500) == 200
    assert server.get("/v1/quota")["space_source"] == "own"
    server.users.change("ann", quotas={"": None})


def queues(server: Running, token: str | None = None) -> list[str]:
    return [one["name"] for one in server.get("/v1/queues", token)]


def test_a_queue_is_open_to_its_users_to_members_of_its_groups_and_to_groups_that_were_given_it(
    server: Running,
) -> None:
    assert queues(server) == ["open", "narrow"]
    assert queues(server, server.bob) == ["open", "of_bob", "narrow"]
    assert queues(server, server.root) == ["open", "of_admins", "narrow"]
    refused = server.ask("POST", "/v1/jobs", a_spec(queue="of_lab"))
    assert (refused.status, refused.json()["field"]) == (403, "queue")
    assert "you may use open, narrow" in refused.json()["detail"]
    made(server, "lab", members=["ann"])
    assert queues(server) == ["open", "of_lab", "narrow"]
    server.ask("PATCH", "/v1/groups/lab", {"queues": ["of_bob"]}, token=server.root)
    assert queues(server) == ["open", "of_lab", "of_bob", "narrow"]
    assert server.ask("POST", "/v1/jobs/check", a_spec(queue="of_bob")).status == 200
    server.ask("DELETE", "/v1/groups/lab/members/ann", token=server.root)
    assert queues(server) == ["open", "narrow"]
    assert server.ask("POST", "/v1/jobs/check", a_spec(queue="of_bob")).status == 403


def test_jobs_of_a_capped_queue_wait_with_the_numbers_and_one_that_never_fits_is_refused(server: Running) -> None:
    two = [{"name": "trainer", "count": 1, "command": "go on", "resources": {"cpus": 2, "memory_bytes": 2**20}}]
    first = server.run(roles=two, queue="narrow")
    (narrow,) = [one for one in server.get("/v1/queues") if one["name"] == "narrow"]
    assert (narrow["cpus"], narrow["gpus"], narrow["memory_bytes"], narrow["used"]["cpus"]) == (2, 0, None, 2)
    second = server.submit(roles=two, queue="narrow", token=server.bob)
    server.services.loop.wake()
    server.reaches(second, "queue")
    why = server.get(f"/v1/jobs/{second}", server.bob)["job"]["queue_reason"]
    assert why == (
        "queue narrow: its jobs use 2 of 2 CPUs and 0 of 0 GPUs that they may at a time, and this one needs 2 CPUs and "
        "0 GPUs"
    )
    for changed, said in (({"cpus": 3}, "needs 3 CPUs and 0 GPUs"), ({"cpus": 1, "gpus": 1}, "needs 1 CPU and 1 GPU")):
        roles = [{**two[0], "resources": changed}]
        refused = server.ask("POST", "/v1/jobs", {"roles": roles, "queue": "narrow"})
        assert (refused.status, refused.json()["field"]) == (422, "roles")
        assert f"may use 2 CPUs and 0 GPUs at a time, and this one alone {said}" in refused.json()["detail"]
    server.finish(first)
    server.reaches(second, "running")
    server.finish(second)
