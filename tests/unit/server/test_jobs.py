"""Submit, get, list and kill over HTTP: who may, and what comes back."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from paddlecloud.model import wire
from paddlecloud.model.job import JobSpec, Resources, RoleSpec
from paddlecloud.model.user import ALL_CLUSTERS, Quota, Scope
from paddlecloud.model.views import JobDetail
from paddlecloud.server.jobs import group
from tests.unit.server.running import Running, a_spec, running
from tests.waiting import wait_until


def test_a_submitted_job_runs_and_its_detail_tells_its_story(server: Running) -> None:
    job = server.run(name="story")
    server.finish(job)
    server.reaches(job, "success")
    answer = server.ask("GET", f"/v1/jobs/{job}")
    detail = wire.decode(JobDetail, answer.data)
    assert detail.job.user == "ann"
    assert detail.job.spec.wall_time_seconds is None
    assert detail.job.spec.job_type == "cpu"
    assert detail.job.spec.cluster == "default"
    assert detail.job.placement is not None
    assert detail.job.placement.cluster == "local"
    assert [moved.to_state.value for moved in detail.history] == ["submit", "schedule", "running", "success"]
    assert [task.name for task in detail.tasks] == ["trainer-0"]
    assert detail.log_tasks == ("trainer-0",)
    assert server.get(f"/v1/jobs/{job}/tasks")[0]["state"] == "succeeded"


def test_another_users_job_looks_as_if_there_were_none(server: Running) -> None:
    job = server.submit()
    unknown = server.ask("GET", f"/v1/jobs/job-{'0' * 32}", token=server.bob)
    for method, path in (
        ("GET", ""),
        ("GET", "/tasks"),
        ("GET", "/events"),
        ("GET", "/logs"),
        ("GET", "/files"),
        ("GET", "/files/log/trainer-0.log"),
        ("GET", "/tasks/trainer-0/log"),
        ("POST", "/kill"),
    ):
        answer = server.ask(method, f"/v1/jobs/{job}{path}", token=server.bob)
        assert answer.status == 404, path
        assert answer.json()["detail"] == unknown.json()["detail"].replace("0" * 32, job[4:])
    assert server.ask("GET", f"/v1/jobs/{job}", token=server.root).status == 200
    assert server.ask("POST", f"/v1/jobs/{job}/kill", token=server.root).status == 200
    server.reaches(job, "killed")


def test_a_list_holds_ones_own_jobs_and_for_an_admin_all(server: Running) -> None:
    mine = server.submit(name="listed")
    theirs = server.submit(name="listed", token=server.bob)

    def listed(path: str, token: str) -> set[str]:
        return {job["id"] for job in server.get(path, token)["items"]}

    assert listed("/v1/jobs?name=listed", server.ann) == {mine}
    assert listed("/v1/jobs?name=listed", server.root) == set()
    assert listed("/v1/jobs?name=listed&all=true", server.root) == {mine, theirs}
    assert listed("/v1/jobs?name=listed&user=bob", server.root) == {theirs}
    assert server.ask("GET", "/v1/jobs?user=bob").status == 403
    assert server.ask("GET", "/v1/jobs?all=1").status == 403


def test_a_list_goes_on_by_its_cursor(server: Running) -> None:
    ids = [server.submit(name="paged") for _ in range(5)]
    seen: list[str] = []
    cursor = ""
    while True:
        page = server.get(f"/v1/jobs?name=paged&limit=2{cursor}")
        seen += [job["id"] for job in page["items"]]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert seen == ids[::-1]


def test_a_list_takes_states_by_commas_and_a_wrong_one_is_named(server: Running) -> None:
    job = server.run(name="stated")
    assert [found["id"] for found in server.get("/v1/jobs?name=stated&state=running,killing")["items"]] == [job]
    assert server.get("/v1/jobs?name=stated&state=schedule%20timeout")["items"] == []
    answer = server.ask("GET", "/v1/jobs?state=runing")
    assert answer.status == 422
    assert answer.json()["field"] == "state"
    server.finish(job)


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/v1/jobs?stat=running", "stat"),
        ("/v1/jobs?limit=0", "limit"),
        ("/v1/jobs?limit=1001", "limit"),
        ("/v1/jobs?limit=x", "limit"),
        ("/v1/jobs?cursor=nonsense", "cursor"),
        ("/v1/me?x=1", "x"),
        ("/v1/events?follow=maybe", "follow"),
    ],
)
def test_a_wrong_or_unknown_parameter_is_named(server: Running, path: str, field: str) -> None:
    answer = server.ask("GET", path)
    assert answer.status == 422
    assert answer.json()["field"] == field


def test_a_running_job_is_killed_and_a_second_kill_says_that_it_has_ended(server: Running) -> None:
    job = server.run()
    assert server.ask("POST", f"/v1/jobs/{job}/kill").json()["state"] == "killing"
    server.reaches(job, "killed")
    again = server.ask("POST", f"/v1/jobs/{job}/kill")
    assert again.status == 409
    assert "killed" in again.json()["detail"]


def test_one_idempotency_key_makes_one_job_for_each_user(server: Running) -> None:
    key = {"Idempotency-Key": "the same"}
    first = server.ask("POST", "/v1/jobs", a_spec(), headers=key)
    again = server.ask("POST", "/v1/jobs", a_spec(), headers=key)
    assert first.json()["id"] == again.json()["id"]
    assert server.ask("POST", "/v1/jobs", a_spec("other"), headers=key).json()["code"] == "conflict"
    other = server.ask("POST", "/v1/jobs", a_spec(), headers=key, token=server.bob)
    assert other.json()["id"] != first.json()["id"]
    assert server.ask("POST", "/v1/jobs", a_spec(), headers={"Idempotency-Key": "x" * 201}).status == 422


def test_a_submission_sent_again_is_the_same_job_though_it_would_not_be_taken_any_more(server: Running) -> None:
    token = server.add_user("lately-small")
    key = {"Idempotency-Key": "before the quota"}
    first = server.ask("POST", "/v1/jobs", a_spec(count=3), headers=key, token=token)
    server.users.change("lately-small", quotas={ALL_CLUSTERS: Quota(instances=1)})
    again = server.ask("POST", "/v1/jobs", a_spec(count=3), headers=key, token=token)
    assert (again.status, again.json()["id"]) == (201, first.json()["id"])
    assert server.ask("POST", "/v1/jobs", a_spec(count=3), token=token).json()["code"] == "quota"


def test_a_tree_that_was_not_uploaded_by_the_user_is_refused(server: Running) -> None:
    for tree in ("0" * 64, "../../etc", ""):
        answer = server.ask("POST", "/v1/jobs", a_spec(tree=tree))
        assert answer.status == 422
        assert answer.json()["field"] == "tree"


def test_a_quota_refuses_what_is_more_and_shortens_what_is_left_open(server: Running) -> None:
    token = server.add_user("small")
    server.users.change("small", quotas={"local": Quota(instances=2, wall_time_seconds=600)})
    for spec in (a_spec(count=3), a_spec(wall_time_seconds=601)):
        answer = server.ask("POST", "/v1/jobs", spec, token=token)
        assert (answer.status, answer.json()["code"]) == (403, "quota")
    job = server.ask("POST", "/v1/jobs", a_spec(), token=token).json()
    assert job["spec"]["wall_time_seconds"] == 600


def test_a_job_that_waits_says_why_how_far_from_the_front_and_about_when(tmp_path: Path) -> None:
    with running(tmp_path / "data", capacities={"local": Resources(cpus=4, memory_bytes=2**30)}) as server:
        every_cpu = {"cpus": 4, "memory_bytes": 2**20}
        roles = [{"name": "trainer", "count": 1, "command": "go on", "resources": every_cpu}]
        spec = {"roles": roles, "wall_time_seconds": 600}
        first = server.ask("POST", "/v1/jobs", spec).json()["id"]
        server.reaches(first, "running")
        second, third = (server.ask("POST", "/v1/jobs", spec).json()["id"] for _ in range(2))
        server.reaches(third, "queue")
        detail = server.get(f"/v1/jobs/{third}")
        assert "4 CPUs" in detail["job"]["queue_reason"]
        assert detail["forecast"]["position"] == 2
        assert detail["forecast"]["about_at"] > server.get(f"/v1/jobs/{second}")["forecast"]["about_at"]
        cluster = server.get("/v1/clusters")[0]
        assert (cluster["name"], cluster["capacity"]["cpus"], cluster["free"]["cpus"]) == ("local", 4.0, 0.0)


def test_a_cluster_that_does_not_answer_takes_jobs_and_is_listed_without_numbers(tmp_path: Path) -> None:
    with running(tmp_path / "data") as server:
        server.backends["local"].reachable = False
        job = server.submit()
        wait_until(lambda: "does not answer" in server.get(f"/v1/jobs/{job}")["job"]["queue_reason"], "it says so")
        assert server.get("/v1/clusters")[0]["capacity"] is None
        server.backends["local"].reachable = True
        server.reaches(job, "running")


def test_a_read_token_only_reads(server: Running) -> None:
    reader = server.token("ann", Scope.READ)
    assert server.ask("GET", "/v1/jobs", token=reader).status == 200
    for method, path in (("POST", "/v1/jobs"), ("POST", "/v1/trees"), ("PUT", f"/v1/chunks/{'0' * 64}")):
        answer = server.ask(method, path, b"{}", token=reader)
        assert (answer.status, answer.json()["code"]) == (403, "forbidden")


def test_an_admin_by_a_write_token_is_no_more_than_a_user(server: Running) -> None:
    writer = server.token("root-of-all", Scope.WRITE)
    job = server.submit()
    assert server.ask("GET", f"/v1/jobs/{job}", token=writer).status == 404
    assert server.ask("GET", "/v1/users", token=writer).status == 403
    assert server.ask("GET", "/v1/events?all=1&follow=0", token=writer).status == 403


def test_the_free_policy_is_a_clusters_own(tmp_path: Path) -> None:
    plain = {
        "server": {"default_clusters": ["own"]},
        "clusters": {"own": {"policy": "open"}, "cce": {"policy": "free"}},
    }
    with running(tmp_path / "data", plain) as server:
        assert server.ask("POST", "/v1/jobs", a_spec(count=2)).status == 201
        answer = server.ask("POST", "/v1/jobs", a_spec(count=2, cluster="cce"))
        assert answer.json()["code"] == "quota"
        assert "instance_count 2 asked for, 1 allowed for one job of ann on cce" in answer.json()["detail"]
        answer = server.ask("POST", "/v1/jobs", a_spec(cluster="bcc"))
        assert "default, own, cce" in answer.json()["detail"]
        listed = {cluster["name"]: cluster for cluster in server.get("/v1/clusters")}
        assert (listed["own"]["default"], listed["cce"]["default"]) == (True, False)
        assert listed["cce"]["policy"] == "free"


def test_nothing_is_recorded_of_a_job_that_was_refused(server: Running) -> None:
    before = len(server.get("/v1/jobs?limit=1000")["items"])
    wrong: list[object] = [
        a_spec(count=0),
        a_spec(""),
        a_spec(count=2000),
        a_spec(priority=10**30),
        {"roles": []},
        {},
        [],
        1,
    ]
    for spec in wrong:
        assert server.ask("POST", "/v1/jobs", spec).status == 422, spec
    assert len(server.get("/v1/jobs?limit=1000")["items"]) == before


def test_jobs_of_one_folder_and_command_are_alike_whatever_was_edited() -> None:
    first = JobSpec(roles=(RoleSpec(name="trainer", count=1, command="sh run.sh"),), folder="job", tree="a" * 64)
    assert group("ann", first) == group("ann", replace(first, tree="b" * 64))
    assert len({group("ann", first), group("bob", first), group("ann", replace(first, folder="other"))}) == 3
