"""OpenPAI's real SDK and its command `pai`, unmodified, against the real server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3
import yaml

from tests.flow.lab import Lab
from tests.flow.paiclient import Sdk, SdkError, pai
from tests.waiting import wait_until

PASSWORD = "correct horse"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    lab = Lab(tmp_path_factory.mktemp("openpai"))
    lab.configure("[clusters.local]\ncpus = 16\nmemory = '32Gi'\npolicy = 'open'\n[jobs]\ngrace = '1s'\n")
    lab.type("up")
    lab.type("user", "add", "alice", "--password", stdin=f"{PASSWORD}\n")
    lab.type("user", "add", "boss", "--role", "admin", "--password", stdin=f"{PASSWORD}\n")
    yield lab
    lab.close()


@pytest.fixture(scope="module")
def alice(server: Lab) -> Iterator[Sdk]:
    made = Sdk(server.server["url"], "alice", password=PASSWORD)
    yield made
    made.close()


@pytest.fixture(scope="module")
def boss(server: Lab) -> Iterator[Sdk]:
    made = Sdk(server.server["url"], "boss", password=PASSWORD)
    yield made
    made.close()


def a_job(name: str, *commands: str) -> dict[str, Any]:
    return {
        "protocolVersion": 2,
        "name": name,
        "type": "job",
        "prerequisites": [{"name": "image", "type": "dockerimage", "uri": "openpai/standalone:python_3.6"}],
        "taskRoles": {
            "worker": {
                "instances": 1,
                "dockerImage": "image",
                "resourcePerInstance": {"cpu": 1, "memoryMB": 512, "gpu": 0},
                "commands": list(commands),
            }
        },
    }


def state(sdk: Sdk, name: str, user: str = "alice") -> str:
    return str(sdk.call("job", "getJob", user, name)["jobStatus"]["state"])


def test_a_job_from_its_submit_to_its_log(server: Lab, alice: Sdk) -> None:
    said = alice.call("job", "createJob", a_job("hello", "echo hello from $PAI_JOB_NAME"))
    assert said["message"] == "Update job hello for user alice successfully."
    wait_until(lambda: state(alice, "hello") == "SUCCEEDED", "it succeeds", seconds=60)
    listed = alice.call("job", "listJobs", {"username": "alice", "limit": 5, "withTotalCount": True})
    assert (listed["totalCount"], listed["data"][0]["name"], listed["data"][0]["appExitCode"]) == (1, "hello", 0)
    assert alice.call("job", "getJob", "alice", "hello", 0)["jobStatus"]["attemptId"] == 0
    assert alice.call("job", "getJobConfig", "alice", "hello")["name"] == "hello"
    task = alice.call("job", "getTask", "alice", "hello", 0, "worker", 0)
    assert task["attempts"][0]["taskState"] == "SUCCEEDED"
    for tail in (False, True):
        places = alice.call("job", "getTaskLogs", "alice", "hello", 0, "worker", 0, 0, tail)["locations"]
        log = urllib3.request("GET", server.server["url"] + places[0]["uri"])
        assert (log.status, b"hello from alice~hello" in log.data) == (200, True)
    events = alice.call("job", "listEvents", "alice", "hello", {})
    assert [event["reason"] for event in events["data"]][-1] == "Completed"
    attempts = alice.call("jobHistory", "getJobAttempts", "alice", "hello")
    assert [attempt["attemptIndex"] for attempt in attempts] == [0]
    assert alice.call("jobHistory", "getJobAttempt", "alice", "hello", 0)["state"] == "SUCCEEDED"
    assert alice.call("jobHistory", "getJobAttemptsHealthz", "alice", "hello") == "ok"
    assert "hello" in server.out("ls", "--user", "alice")


def test_a_job_that_runs_is_awaited_tagged_and_stopped(alice: Sdk) -> None:
    running = alice.call("job", "createRunningJob", a_job("sleeps", "sleep 600"))
    assert running["jobStatus"]["state"] == "RUNNING"
    worker = running["taskRoles"]["worker"]["taskStatuses"][0]
    assert worker["containerIp"]
    alice.call("job", "addTag", "alice", "sleeps", "keep")
    assert alice.call("job", "listJobs", {"tagsContain": "keep"})[0]["name"] == "sleeps"
    alice.call("job", "deleteTag", "alice", "sleeps", "keep")
    alice.call("job", "updateJobExecutionType", "alice", "sleeps", "STOP")
    wait_until(lambda: state(alice, "sleeps") == "STOPPED", "it is stopped", seconds=60)


@pytest.mark.parametrize(
    ("part", "method", "arguments", "code", "status"),
    [
        ("job", "getJob", ["alice", "nothing"], "NoJobError", 404),
        ("job", "getJobConfig", ["alice", "nothing"], "NoJobError", 404),
        ("job", "createJob", [{"name": "x"}], "InvalidProtocolError", 400),
        ("user", "createUser", [{"username": "x", "password": "long enough"}], "ForbiddenUserError", 403),
        ("virtualCluster", "getVirtualCluster", ["nothing"], "NoVirtualClusterError", 404),
        ("storage", "getStorage", ["nothing"], "NoStorageError", 404),
    ],
)
def test_the_sdk_understands_every_refusal(
    alice: Sdk, part: str, method: str, arguments: list[Any], code: str, status: int
) -> None:
    with pytest.raises(SdkError) as refused:
        alice.call(part, method, *arguments)
    assert (refused.value.code, refused.value.status) == (code, status)


def test_tokens_and_what_the_server_says_of_itself(server: Lab, alice: Sdk) -> None:
    assert alice.call("api", "getClusterInfo")["authnMethod"] == "basic"
    assert alice.call("authn", "basicLogin", "alice", PASSWORD, 100)["user"] == "alice"
    made = alice.call("token", "createApplicationToken")
    assert made["token"] in alice.call("token", "getTokens")["tokens"]
    application = Sdk(server.server["url"], "alice", token=made["token"])
    try:
        assert isinstance(application.call("job", "listJobs"), list)
        with pytest.raises(SdkError) as refused:
            application.call("token", "getTokens")
        assert refused.value.code == "ForbiddenUserError"
        alice.call("token", "deleteToken", made["token"])
        with pytest.raises(SdkError) as refused:
            application.call("job", "listJobs")
        assert (refused.value.code, refused.value.status) == ("UnauthorizedUserError", 401)
    finally:
        application.close()
    leaves = Sdk(server.server["url"], "alice", password=PASSWORD)
    try:
        leaves.call("job", "listJobs")
        assert leaves.call("authn", "basicLogout")["message"] == "Logout successfully"
    finally:
        leaves.close()


def test_an_admin_keeps_users_and_groups(boss: Sdk) -> None:
    boss.call("user", "createUser", {"username": "carol", "password": "long enough", "email": "c@lab.example"})
    assert "carol" in [user["username"] for user in boss.call("user", "getAllUser")]
    boss.call("user", "updateUser", {"username": "carol", "email": "carol@lab.example"})
    assert boss.call("user", "getUser", "carol")["email"] == "carol@lab.example"
    boss.call(
        "group", "createGroup", {"groupname": "vision", "description": "eyes", "externalName": "", "extension": {}}
    )
    boss.call("user", "updateUserGroup", "carol", "vision")
    assert [one["username"] for one in boss.call("group", "getGroupMembers", "vision")] == ["carol"]
    boss.call("group", "updateGroup", {"groupname": "vision", "description": "ears"})
    assert boss.call("group", "getGroup", "vision")["description"] == "ears"
    boss.call("user", "deleteUserGroup", "carol", "vision")
    boss.call("user", "updateUserGrouplist", "carol", ["vision"])
    assert boss.call("user", "getUser", "carol")["grouplist"] == ["default", "vision"]
    boss.call("group", "deleteGroup", "vision")
    assert "vision" not in [group["groupname"] for group in boss.call("group", "getAllGroup")]
    boss.call("user", "deleteUser", "carol")
    with pytest.raises(SdkError) as refused:
        boss.call("user", "getUser", "carol")
    assert refused.value.code == "NoUserError"
    assert boss.call("kubernetes", "getK8sNodes")["items"]
    assert "items" in boss.call("kubernetes", "getK8sPods", {"namespace": "default"})


def test_places(alice: Sdk) -> None:
    clusters = alice.call("virtualCluster", "listVirtualClusters")
    assert clusters["default"]["resourcesTotal"]["cpu"] == 16
    assert alice.call("virtualCluster", "getVirtualCluster", "local")["status"] == "RUNNING"
    assert alice.call("virtualCluster", "getVirtualClusterSkuTypes", "default") == {}
    assert alice.call("storage", "getStorages")["storages"] == []


def test_the_older_client_of_the_sdk(server: Lab, alice: Sdk) -> None:
    def v1(part: str, method: str, *arguments: Any) -> Any:
        return alice.call(part, method, *arguments, api="v1")

    role = {"name": "main", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 512, "gpuNumber": 0, "command": "sleep 600"}
    v1("job", "submit", "alice", {"jobName": "older", "image": "any", "taskRoles": [role], "retryCount": 0})
    wait_until(lambda: state(alice, "older") == "RUNNING", "it runs", seconds=60)
    assert v1("job", "list") == [], "the older client lists without a token, and so sees nothing"
    with pytest.raises(SdkError) as refused:
        v1("job", "get", "alice", "older")
    assert refused.value.status == 404
    v1("job", "execute", "alice", "older", "STOP")
    wait_until(lambda: state(alice, "older") == "STOPPED", "it is stopped", seconds=60)
    v1("job", "delete", "alice", "older")
    with pytest.raises(SdkError) as refused:
        alice.call("job", "getJob", "alice", "older")
    assert refused.value.code == "NoJobError"
    assert v1("", "login")["user"] == "alice"
    assert v1("authn", "info")["authn_type"] == "basic"
    made = v1("authn", "createApplicationToken")["token"]
    assert made in v1("authn", "getTokens")["tokens"]
    assert v1("authn", "deleteToken", made)["message"] == "revoke successfully"


def test_the_command_pai(server: Lab, alice: Sdk, tmp_path: Path) -> None:
    token = alice.call("authn", "basicLogin", "alice", PASSWORD, 4000)["token"]
    host = server.server["url"].partition("://")[2]
    pai(tmp_path, "addc", f"http://{host}", "alice", token, "-a", "lab")
    assert "lab" in pai(tmp_path, "listc")
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(a_job("by-command", "echo yes")))
    pai(tmp_path, "subj", "lab", str(file))
    wait_until(lambda: state(alice, "by-command") == "SUCCEEDED", "it succeeds", seconds=60)
    shown = pai(tmp_path, "listj", "lab")
    assert "by-command" in shown
    assert "SUCCEEDED" in shown
    assert "by-command" in pai(tmp_path, "getj", "lab", "by-command")
    assert "by-command" in pai(tmp_path, "listj", "lab", "-a")
    pai(tmp_path, "lists", "lab")
    pai(tmp_path, "delc", "lab")
