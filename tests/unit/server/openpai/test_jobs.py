"""Jobs as OpenPAI's clients see them, those of our own command too."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.model.user import Role
from tests.unit.server.openpai.asking import Pai
from tests.unit.server.running import running
from tests.waiting import wait_until

ITEM = set(
    "debugId name username state subState executionType tags retries retryDetails retryDelayTime submissionTime "
    "createdTime launchedTime completedTime appExitCode virtualCluster totalGpuNumber totalTaskNumber "
    "totalTaskRoleNumber jobPriority".split()
)
STATUS = set(
    "username state subState executionType retries retryDetails retryDelayTime submissionTime createdTime launchedTime "
    "completedTime attemptId attemptState appId appProgress appTrackingUrl appCreatedTime appLaunchedTime "
    "appCompletedTime appExitCode appExitSpec appExitDiagnostics appExitMessages appExitTriggerMessage "
    "appExitTriggerTaskRoleName appExitTriggerTaskIndex appExitType virtualCluster timeLimitSeconds".split()
)
TASK = set(
    "taskIndex taskUid taskState containerId containerIp containerNodeName containerPorts containerGpus containerLog "
    "containerExitCode containerExitSpec containerExitDiagnostics retries accountableRetries createdTime launchedTime "
    "completedTime attemptId attemptState currentAttemptCreatedTime currentAttemptLaunchedTime "
    "currentAttemptCompletedTime".split()
)
EVENT = set(
    "uid frameworkName podUid taskroleName taskName taskIndex type reason message firstTimestamp lastTimestamp count "
    "sourceComponent sourceHost".split()
)


def listed(pai: Pai, query: str = "", token: str | None = None) -> list[str]:
    return [job["name"] for job in pai.get(f"/v2/jobs{query}", token)]


def test_a_job_of_our_own_command_shows_with_every_field(pai: Pai) -> None:
    job = pai.server.run(name="seen", count=2)
    item = next(item for item in pai.get("/v2/jobs") if item["name"] == "seen")
    assert set(item) == ITEM
    assert (item["debugId"], item["username"], item["state"], item["subState"]) == (
        job,
        "ann",
        "RUNNING",
        "AttemptRunning",
    )
    assert (item["totalTaskNumber"], item["totalTaskRoleNumber"], item["totalGpuNumber"]) == (2, 1, 0)
    assert (item["virtualCluster"], item["jobPriority"], item["executionType"]) == ("default", "default", "START")
    assert item["appExitCode"] is item["completedTime"] is None
    assert isinstance(item["createdTime"], int)
    assert item["createdTime"] > 1_700_000_000_000
    detail = pai.get("/v2/jobs/ann~seen")
    assert (detail["name"], detail["debugId"], set(detail["jobStatus"])) == ("seen", job, STATUS)
    tasks = detail["taskRoles"]["trainer"]["taskStatuses"]
    assert [set(task) for task in tasks] == [TASK, TASK]
    assert [task["taskState"] for task in tasks] == ["RUNNING", "RUNNING"]
    assert tasks[1]["containerLog"].endswith(
        "/api/v2/jobs/ann~seen/attempts/0/taskRoles/trainer/taskIndex/1/attempts/0/logs"
    )
    pai.server.finish(job)
    pai.server.reaches(job, "success")
    ended = pai.get("/v2/jobs/ann~seen")["jobStatus"]
    assert (ended["state"], ended["appExitCode"], ended["appExitSpec"]["phrase"]) == ("SUCCEEDED", 0, "Succeeded")


def test_a_failed_job_tells_its_exit_code_and_why(pai: Pai) -> None:
    job = pai.server.run(name="fails")
    pai.server.finish(job, exit_code=127)
    pai.server.reaches(job, "failed")
    item = next(item for item in pai.get("/v2/jobs?state=FAILED") if item["name"] == "fails")
    assert (item["state"], item["subState"], item["appExitCode"]) == ("FAILED", "Completed", 127)
    status = pai.get("/v2/jobs/ann~fails")["jobStatus"]
    assert (status["appExitCode"], status["appExitTriggerTaskRoleName"], status["appExitTriggerTaskIndex"]) == (
        127,
        "trainer",
        0,
    )
    spec = status["appExitSpec"]
    assert (spec["code"], spec["phrase"], spec["behavior"]) == (127, "CommandNotFound", "PERMANENT")
    assert spec["solution"]
    assert "command" in spec["reason"]


def test_a_stopped_job_is_stopped_and_cannot_be_started_again(pai: Pai) -> None:
    job = pai.server.run(name="stops")
    address = "/v2/jobs/ann~stops/executionType"
    assert pai.refused("PUT", address, {"value": "PAUSE"}) == (400, "InvalidParametersError")
    assert pai.refused("PUT", address, {}) == (400, "InvalidParametersError")
    answer = pai.send("PUT", address, {"value": "STOP"})
    assert (answer.status, answer.json()) == (202, {"status": 202, "message": "Execute job ann~stops successfully."})
    wait_until(lambda: pai.get("/v2/jobs/ann~stops")["jobStatus"]["state"] == "STOPPED", "it is stopped")
    assert pai.server.state(job) == "killed"
    status = pai.get("/v2/jobs/ann~stops")["jobStatus"]
    assert (status["appExitCode"], status["executionType"], status["appExitType"]) == (-210, "STOP", "USER_STOP")
    assert pai.send("PUT", address, {"value": "STOP"}).status == 202
    assert pai.refused("PUT", address, {"value": "START"}) == (400, "InvalidParametersError")


def test_nobody_sees_or_touches_a_job_of_another(pai: Pai) -> None:
    job = pai.server.run(name="secret")
    bob = pai.server.bob
    assert "secret" not in listed(pai, token=bob)
    assert listed(pai, "?username=ann", bob) == []
    assert pai.get("/v2/jobs?username=ann&withTotalCount=true", bob) == {"totalCount": 0, "data": []}
    for path in ("", "/config", "/events", "/attempts/0", "/job-attempts", "/job-attempts/0", "/ssh"):
        assert pai.refused("GET", f"/v2/jobs/ann~secret{path}", token=bob) == (404, "NoJobError"), path
        assert pai.refused("GET", f"/v2/jobs/bob~{job}{path}", token=bob) == (404, "NoJobError"), path
    stop = {"value": "STOP"}
    assert pai.refused("PUT", "/v2/jobs/ann~secret/executionType", stop, token=bob) == (404, "NoJobError")
    assert pai.server.state(job) == "running"
    root = pai.server.root
    assert "secret" in listed(pai, "?username=ann", root)
    assert pai.get("/v2/jobs/ann~secret", root)["debugId"] == job
    assert pai.send("PUT", "/v2/jobs/ann~secret/executionType", stop, token=root).status == 202


def test_a_token_that_may_only_read_stops_nothing(pai: Pai) -> None:
    from paddlecloud.model.user import Scope

    pai.server.run(name="read-only")
    reads = pai.server.token("ann", Scope.READ)
    assert "read-only" in listed(pai, token=reads)
    refused = pai.refused("PUT", "/v2/jobs/ann~read-only/executionType", {"value": "STOP"}, token=reads)
    assert refused == (403, "ForbiddenUserError")


@pytest.mark.parametrize("name", ["with space", "a/b", "ünï", "a?b", "tilde~s", "%41", "..", "<b>", "job#1", "a;b"])
def test_an_odd_name_breaks_no_client_and_finds_its_job(pai: Pai, name: str) -> None:
    """What would break an address is called by its id, so that whatever a list says can be asked for."""
    job = pai.server.submit(name=name)
    item = next(item for item in pai.get("/v2/jobs") if item["debugId"] == job)
    assert all(letter.isalnum() or letter in "._~-" for letter in item["name"])
    assert item["name"].isascii()
    assert pai.get(f"/v2/jobs/{item['username']}~{item['name']}")["debugId"] == job


def test_of_jobs_of_one_name_each_is_found_by_what_the_list_calls_it(pai: Pai) -> None:
    made = [pai.server.submit(name="tmp_job") for _ in range(3)]
    items = [item for item in pai.get("/v2/jobs?keyword=tmp_job") if item["debugId"] in made]
    assert sorted(item["name"] for item in items) == sorted([*made[:2], "tmp_job"])
    for item in items:
        assert pai.get(f"/v2/jobs/ann~{item['name']}")["debugId"] == item["debugId"]


def test_a_list_is_filtered_sorted_and_cut(pai: Pai) -> None:
    for number in range(3):
        pai.server.submit(name=f"page-{number}", count=3 - number)
    query = "?keyword=page-&order=totalTaskNumber,ASC"
    assert listed(pai, query) == ["page-2", "page-1", "page-0"]
    assert listed(pai, f"{query}&offset=1&limit=1") == ["page-1"]
    assert listed(pai, "?keyword=page-&order=nonsense,UP") == ["page-2", "page-1", "page-0"], (
        "passed over, newest first"
    )
    whole = pai.get(f"/v2/jobs{query}&limit=1&withTotalCount=true")
    assert (whole["totalCount"], len(whole["data"])) == (3, 1)
    assert listed(pai, "?keyword=page-&username=nobody,ann&limit=2") == ["page-2", "page-1"]
    assert listed(pai, "?keyword=page-&vc=default&limit=1") == ["page-2"]
    assert listed(pai, "?vc=elsewhere") == listed(pai, "?state=UNKNOWN") == listed(pai, "?jobPriority=crit") == []
    assert listed(pai, "?keyword=page-&jobPriority=default,oppo&limit=1") == ["page-2"]


@pytest.mark.parametrize("query", ["limit=50001", "limit=-1", "offset=x", "limit=1e3", "offset=²", "limit=" + "9" * 30])
def test_a_page_that_cannot_be_is_refused(pai: Pai, query: str) -> None:
    assert pai.refused("GET", f"/v2/jobs?{query}") == (400, "InvalidParametersError")


def test_limits_are_told_in_openpais_words(pai: Pai) -> None:
    assert pai.send("GET", "/v2/jobs?limit=50001").json()["message"] == "Limit exceeds max number 50000."
    assert pai.send("GET", "/v2/jobs/ann~gone").json()["message"] == "Job ann~gone is not found."


def test_why_a_job_waits_is_among_its_events(tmp_path_factory: pytest.TempPathFactory) -> None:
    from paddlecloud.model.job import Resources

    small = {"local": Resources(cpus=2.0, memory_bytes=2**30)}
    with running(tmp_path_factory.mktemp("waits") / "data", capacities=small) as server:
        pai = Pai(server)
        asks = [{"name": "trainer", "count": 1, "command": "go on", "resources": {"cpus": 2.0}}]
        server.run(name="first", roles=asks)
        server.submit(name="second", roles=asks)
        wait_until(lambda: "free" in str(events(pai, "second", "?type=Warning")), "the reason is told")
        told = events(pai, "second", "?type=Warning")
        assert {event["type"] for event in told} == {"Warning"}
        assert told[-1]["reason"] == "FailedScheduling"
        assert "first in the queue" in told[-1]["message"]
        assert next(event["reason"] for event in events(pai, "first")) == "Submitted"


def events(pai: Pai, name: str, query: str = "") -> list[dict[str, Any]]:
    found = pai.get(f"/v2/jobs/ann~{name}/events{query}")
    assert found["totalCount"] == len(found["data"])
    assert all(set(event) == EVENT for event in found["data"])
    return list(found["data"])


def test_attempts_are_counted_from_nought_and_the_newest_is_first(pai: Pai) -> None:
    job = pai.server.run(name="again", retry={"user_error": 1})
    pai.server.finish(job, exit_code=3)
    wait_until(lambda: pai.get("/v2/jobs/ann~again")["jobStatus"]["retries"] == 1, "it is tried again")
    pai.server.reaches(job, "running")
    found = pai.get("/v2/jobs/ann~again/job-attempts")
    assert [(one["attemptIndex"], one["isLatest"]) for one in found] == [(1, True), (0, False)]
    assert (found[1]["state"], found[1]["exitCode"]) == ("FAILED", 3)
    assert pai.get("/v2/jobs/ann~again/job-attempts/0") == found[1]
    assert pai.get("/v2/jobs/ann~again/attempts/0")["jobStatus"]["appExitCode"] == 3
    status = pai.get("/v2/jobs/ann~again")["jobStatus"]
    assert (status["attemptId"], status["retryDetails"]) == (1, {"user": 1, "platform": 0, "resource": 0})
    for number in ("2", "x", "-1", "9" * 20, "²"):
        assert pai.send("GET", f"/v2/jobs/ann~again/attempts/{number}").status == 404
    assert pai.send("GET", "/v2/jobs/ann~again/job-attempts/healthz").data == b"ok"


def test_a_task_has_its_attempts(pai: Pai) -> None:
    pai.server.run(name="tasked", count=2)
    found = pai.get("/v2/jobs/ann~tasked/attempts/0/taskRoles/trainer/taskIndex/1/attempts")
    assert (found["jobName"], found["taskRoleName"], found["taskIndex"], found["taskState"]) == (
        "tasked",
        "trainer",
        1,
        "RUNNING",
    )
    assert [set(one) for one in found["attempts"]] == [TASK]
    for role, index in (("trainer", "2"), ("worker", "0"), ("trainer", "x"), ("trainer", "²")):
        assert (
            pai.send("GET", f"/v2/jobs/ann~tasked/attempts/0/taskRoles/{role}/taskIndex/{index}/attempts").status == 404
        )


def test_an_empty_body_of_json_does_no_harm(pai: Pai) -> None:
    headers = {"Content-Type": "application/json"}
    assert pai.send("GET", "/v2/jobs", headers=headers).status == 200
    assert pai.send("GET", "/v2/info", token="", headers=headers).status == 200


def test_an_admin_sees_everybodys_jobs(pai: Pai) -> None:
    pai.server.add_user("dora", Role.USER)
    pai.server.submit(name="of-bob", token=pai.server.bob)
    assert "of-bob" in listed(pai, "?limit=1000", pai.server.root)
    assert "of-bob" not in listed(pai)
