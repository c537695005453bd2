"""Jobs submitted by either version of OpenPAI's API: as YAML, as JSON, and as the form of the VS Code client."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import pytest
import yaml

from paddlecloud.model.pfs import Who
from tests.unit.server.openpai.asking import FORM, Pai
from tests.unit.server.running import running
from tests.waiting import wait_until


def v2(name: str, **changes: Any) -> dict[str, Any]:
    return {
        "protocolVersion": 2,
        "name": name,
        "type": "job",
        "prerequisites": [{"name": "image", "type": "dockerimage", "uri": "openpai/standalone"}],
        "parameters": {"words": "hello"},
        "taskRoles": {
            "worker_a": {
                "instances": 1,
                "dockerImage": "image",
                "resourcePerInstance": {"cpu": 1, "memoryMB": 1024, "gpu": 0},
                "commands": ["echo <% $parameters.words %>"],
            }
        },
        **changes,
    }


def v1(name: str, **changes: Any) -> dict[str, Any]:
    role = {
        "name": "demo_001",
        "taskNumber": 1,
        "cpuNumber": 1,
        "memoryMB": 512,
        "gpuNumber": 0,
        "command": "echo hello",
    }
    return {"jobName": name, "image": "vzich/poet:tensorflow", "taskRoles": [role], **changes}


def as_form(value: Any, prefix: str = "") -> list[tuple[str, str]]:
    """As the `request` library writes objects: text throughout, null is nothing, empty lists vanish."""
    if isinstance(value, dict):
        inner = [(f"{prefix}[{key}]" if prefix else key, one) for key, one in value.items()]
    elif isinstance(value, list):
        inner = [(f"{prefix}[{number}]", one) for number, one in enumerate(value)]
    else:
        return [(prefix, "" if value is None else str(value).lower() if isinstance(value, bool) else str(value))]
    return [pair for key, one in inner for pair in as_form(one, key)]


def submit_v2(pai: Pai, job: dict[str, Any], token: str | None = None) -> tuple[int, Any]:
    body = yaml.safe_dump(job)
    answer = pai.send("POST", "/v2/jobs", body, token=token, headers={"Content-Type": "text/yaml"})
    return answer.status, answer.json()


def test_a_job_as_yaml_is_a_job_of_ours(pai: Pai) -> None:
    assert submit_v2(pai, v2("as_yaml")) == (
        202,
        {"status": 202, "message": "Update job as_yaml for user ann successfully."},
    )
    mine = pai.server.get("/v1/jobs?name=as_yaml")["items"]
    assert [(job["user"], job["spec"]["name"]) for job in mine] == [("ann", "as_yaml")]
    detail = pai.get("/v2/jobs/ann~as_yaml")
    assert list(detail["taskRoles"]) == ["worker_a"]
    wait_until(lambda: pai.get("/v2/jobs/ann~as_yaml")["jobStatus"]["state"] == "RUNNING", "it runs")


def test_a_storage_that_one_may_not_see_is_refused_by_name(pai: Pai) -> None:
    for name, group in (("demo", "default"), ("closed", "admin")):
        made = pai.server.ask("POST", "/v1/shared", {"name": name, "readers": [group]}, token=pai.server.root)
        assert made.status == 201, made.data
    for name in ("closed", "none"):
        status, said = submit_v2(pai, v2("stored", extras={"storages": [{"name": name}]}))
        assert (status, said["code"]) == (404, "NoStorageError")
        assert said["message"].startswith(f"Storage {name} is not found: yours are demo")
    status, said = submit_v2(pai, v2("stored", extras={"storages": [{"name": "demo", "mountPath": "/pfs/demo"}]}))
    assert (status, "demo is at /pfs/local/shared/demo already" in said["message"]) == (400, True)
    # As nni does, whose storage is where both sides have it.
    there = {"name": "demo", "mountPath": "/pfs/local/shared/demo"}
    assert submit_v2(pai, v2("stored", extras={"storages": [{"name": "demo"}, there]}))[0] == 202
    job = pai.server.get("/v1/jobs?name=stored")["items"][0]
    assert job["spec"]["openpai"]["storages"] == {"/mnt/demo": "/pfs/local/shared/demo"}


def test_a_name_is_taken_once(pai: Pai) -> None:
    assert submit_v2(pai, v2("taken"))[0] == 202
    assert submit_v2(pai, v2("taken")) == (
        409,
        {"code": "ConflictJobError", "message": "Job ann~taken already exists."},
    )
    assert submit_v2(pai, v2("taken"), pai.server.bob)[0] == 202
    refused = pai.send("POST", "/v1/user/ann/jobs", v1("taken"))
    assert (refused.status, refused.json()["code"]) == (409, "ConflictJobError")


@pytest.mark.parametrize(
    ("job", "status", "code"),
    [
        ({"name": "x"}, 400, "InvalidProtocolError"),
        (v2("x", nonsense=1), 400, "InvalidProtocolError"),
        (v2("bad name"), 400, "InvalidProtocolError"),
        (v2("x", taskRoles={}), 400, "InvalidProtocolError"),
        (v2("x", defaults={"virtualCluster": "elsewhere"}), 400, "NoVirtualClusterError"),
        ([1, 2], 400, "InvalidProtocolError"),
        ("text", 400, "InvalidProtocolError"),
        (None, 400, "InvalidProtocolError"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_is_wrong_with_a_protocol_is_told(pai: Pai, job: Any, status: int, code: str) -> None:
    answered, said = submit_v2(pai, job)
    assert (answered, said["code"]) == (status, code), said


@pytest.mark.parametrize(
    "body", [b"", b"\xff\xfe", b"{", b"a: [", b"a: &x [*x]", b"!!python/object:os.system {}", b"\x00"]
)
def test_no_body_makes_the_server_stumble(pai: Pai, body: bytes) -> None:
    for media in ("text/yaml", "application/json", FORM, "", "image/png"):
        for path in ("/v2/jobs", "/v1/user/ann/jobs", "/v1/jobs"):
            answer = pai.send("POST", path, body, headers={"Content-Type": media})
            assert answer.status == 400, (media, path, answer.data)


def test_a_config_comes_back_as_it_was_written_without_its_secrets(pai: Pai) -> None:
    job = v2("with_secret", secrets={"key": "hunter22"})
    job["taskRoles"]["worker_a"]["commands"] = ["echo <% $secrets.key %> # as written"]
    text = f"# a comment\n{yaml.safe_dump(job)}"
    answer = pai.send("POST", "/v2/jobs", text, headers={"Content-Type": "text/yaml"})
    assert answer.status == 202, answer.data
    shown = pai.send("GET", "/v2/jobs/ann~with_secret/config")
    assert shown.headers["Content-Type"].startswith("text/yaml")
    assert b"hunter22" not in shown.data
    assert yaml.safe_load(shown.data)["secrets"] == "******"
    assert "hunter22" not in json.dumps(pai.get("/v2/jobs/ann~with_secret"))
    by_json = pai.send("GET", "/v1/user/ann/jobs/with_secret/config")
    assert by_json.json()["name"] == "with_secret"


def test_a_job_of_another_face_has_no_config(pai: Pai) -> None:
    pai.server.submit(name="plain")
    assert pai.refused("GET", "/v2/jobs/ann~plain/config") == (404, "NoJobConfigError")
    assert pai.refused("GET", "/v2/jobs/ann~gone/config") == (404, "NoJobError")


@pytest.mark.parametrize("by", ["form", "json"])
def test_a_job_of_the_first_protocol_by_form_or_json(pai: Pai, by: str) -> None:
    pai.server.services.pfs.write(Who(user="ann"), "/pfs/local/home/ann/code/train.sh", [b"echo"], size=4)
    name = f"couplet_{by}"
    job = v1(name, codeDir="$PAI_DEFAULT_FS_URI/ann/code", jobEnvs={"isDebug": True}, authFile=None, retryCount=1)
    job["taskRoles"][0]["portList"] = [{"label": "web", "beginAt": 0, "portNumber": 2}]
    if by == "json":
        answer = pai.send("POST", "/v1/user/ann/jobs", {key: one for key, one in job.items() if one is not None})
    else:
        answer = pai.send("POST", "/v1/user/ann/jobs", urlencode(as_form(job)), headers={"Content-Type": FORM})
    assert (answer.status, answer.json()) == (202, {"message": f"update job {name} successfully"}), answer.data
    assert answer.headers["Location"].endswith(f"/api/v1/user/ann/jobs/{name}")
    spec = pai.server.get(f"/v1/jobs?name={name}")["items"][0]["spec"]
    assert (spec["roles"][0]["count"], spec["roles"][0]["name"]) == (1, "demo_001")
    detail = pai.get(f"/v1/user/ann/jobs/{name}")
    assert set(detail) == {"name", "jobStatus", "taskRoles"}
    assert pai.get(f"/v1/user/ann/jobs/{name}/config")["image"] == "vzich/poet:tensorflow"
    as_yaml = pai.send("GET", f"/v1/user/ann/jobs/{name}/config", headers={"Accept": "text/yaml"})
    assert yaml.safe_load(as_yaml.data)["jobName"] == name


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"jobName": "bad name"}, 400, "InvalidParametersError"),
        ({"image": 5}, 400, "InvalidParametersError"),
        ({"taskRoles": []}, 400, "InvalidParametersError"),
        ({"virtualCluster": "elsewhere"}, 404, "NoVirtualClusterError"),
        ({"codeDir": "$PAI_DEFAULT_FS_URI/ann/missing"}, 400, "InvalidParametersError"),
    ],
    ids=str,
)
def test_what_is_wrong_with_a_job_of_the_first_protocol(
    pai: Pai, changes: dict[str, Any], status: int, code: str
) -> None:
    assert pai.refused("POST", "/v1/user/ann/jobs", v1("wrong") | changes) == (status, code)


def test_the_vs_code_client_learns_whether_a_name_is_free(pai: Pai) -> None:
    free = pai.send("GET", "/v1/user/ann/jobs/free")
    assert (free.status, free.json()) == (404, {"code": "NoJobError", "message": "Job free is not found."})
    submit_v2(pai, v2("not_free"))
    assert pai.send("GET", "/v1/user/ann/jobs/not_free").status == 200


def test_guests_see_nothing(pai: Pai) -> None:
    submit_v2(pai, v2("hidden"))
    assert pai.get("/v1/jobs", "") == pai.get("/v1/user/ann/jobs", "") == []
    for path in (
        "user/ann/jobs/hidden",
        "jobs/ann~hidden",
        "user/ann/jobs/hidden/config",
        "jobs/ann/jobs/hidden/config",
    ):
        assert pai.refused("GET", f"/v1/{path}", token="") == (404, "NoJobError"), path
        assert pai.refused("GET", f"/v1/{path}", token=pai.server.bob) == (404, "NoJobError"), path
    assert pai.refused("GET", "/v1/user/ann/jobs/hidden/ssh", token="") == (404, "NoJobError")
    for method, path in (
        ("POST", "user/ann/jobs"),
        ("DELETE", "user/ann/jobs/hidden"),
        ("PUT", "user/ann/jobs/hidden"),
    ):
        assert pai.refused(method, f"/v1/{path}", token="") == (401, "UnauthorizedUserError")
        assert pai.send(method, f"/v1/{path}", v1("x"), token=pai.server.bob).status in (403, 404)
    assert pai.refused("GET", "/v1/jobs", token="wrong") == (401, "UnauthorizedUserError")


def test_guests_see_what_an_operator_opens_and_change_nothing(tmp_path_factory: pytest.TempPathFactory) -> None:
    plain = {"clusters": {"local": {"policy": "open"}}, "openpai": {"open_lists": True}}
    with running(tmp_path_factory.mktemp("open") / "data", plain) as server:
        pai = Pai(server)
        submit_v2(pai, v2("open"))
        item = pai.get("/v1/jobs", "")[0]
        assert item["name"] == "open"
        assert "tags" not in item
        assert "submissionTime" not in item
        assert pai.get("/v1/jobs?username=bob", "") == []
        assert pai.get("/v1/user/ann/jobs/open", "")["name"] == "open"
        assert pai.get("/v1/jobs/ann~open", "")["name"] == "open"
        assert pai.get("/v1/jobs/ann/jobs/open/config", "")["name"] == "open"
        assert [job["name"] for job in pai.get("/v1/jobs", server.bob)] == [], "whoever logs in sees their own"
        assert pai.refused("PUT", "/v1/user/ann/jobs/open/executionType", {"value": "STOP"}, token="")[0] == 401
        assert pai.refused("GET", "/v2/jobs", token="")[0] == 401


def test_a_job_is_stopped_and_deleted_by_the_first_api(pai: Pai) -> None:
    submit_v2(pai, v2("to_delete"))
    job = pai.get("/v2/jobs/ann~to_delete")["debugId"]
    pai.server.reaches(job, "running")
    stopped = pai.send("PUT", "/v1/user/ann/jobs/to_delete/executionType", {"value": "STOP"})
    assert (stopped.status, stopped.json()) == (202, {"message": "execute job to_delete successfully"})
    pai.server.reaches(job, "killed")
    headers = {"Content-Type": "application/json"}
    deleted = pai.send("DELETE", "/v1/user/ann/jobs/to_delete", headers=headers)
    assert (deleted.status, deleted.json()) == (202, {"message": "deleted job to_delete successfully"})
    assert pai.refused("GET", "/v1/user/ann/jobs/to_delete") == (404, "NoJobError")
    assert submit_v2(pai, v2("to_delete"))[0] == 202, "its name is free"
    assert pai.refused("GET", "/v1/user/ann/jobs/to_delete/ssh") == (404, "NoJobSshInfoError")


def test_deleting_a_job_that_runs_stops_it(pai: Pai) -> None:
    job = pai.server.run(name="runs-on")
    assert pai.send("DELETE", "/v1/user/ann/jobs/runs-on").status == 202
    pai.server.reaches(job, "killed")


def test_tags_are_given_filtered_by_and_taken(pai: Pai) -> None:
    for name in ("tagged_a", "tagged_b"):
        submit_v2(pai, v2(name))

    def with_tags(query: str) -> list[str]:
        return [job["name"] for job in pai.get(f"/v2/jobs?keyword=tagged_&{query}")]

    assert pai.send("PUT", "/v2/jobs/ann~tagged_a/tag", {"value": "good one"}).status == 200
    assert pai.send("PUT", "/v2/jobs/ann~tagged_a/tag", {"value": "good one"}).status == 200
    assert pai.get("/v2/jobs/ann~tagged_a")["tags"] == ["good one"]
    assert with_tags("tagsContain=good%20one,other") == ["tagged_a"]
    assert with_tags("tagsNotContain=good%20one") == ["tagged_b"]
    assert pai.get("/v2/jobs?tagsContain=good%20one")[0]["tags"] == ["good one"]
    assert pai.refused("PUT", "/v2/jobs/ann~tagged_a/tag", {"value": "a,b"}) == (400, "InvalidParametersError")
    assert pai.refused("PUT", "/v2/jobs/ann~tagged_a/tag", {"value": "x"}, token=pai.server.bob) == (404, "NoJobError")
    assert pai.send("DELETE", "/v2/jobs/ann~tagged_a/tag", {"value": "good one"}).status == 200
    assert pai.refused("DELETE", "/v2/jobs/ann~tagged_a/tag", {"value": "good one"}) == (404, "NoTagError")
    assert with_tags("tagsContain=good%20one") == []


def test_logs_come_by_links_that_need_no_token_and_end(pai: Pai) -> None:
    job = pai.server.run(name="talks", count=2)
    address = "/v2/jobs/ann~talks/attempts/0/taskRoles/trainer/taskIndex/0/attempts/0/logs"
    assert pai.refused("GET", address) == (404, "NoTaskLogError")
    pai.server.say(job, "trainer-0", b"first\n" + b"x" * 20_000 + b"\n<script>last</script>\n")
    places = {one["name"]: one["uri"] for one in pai.get(address)["locations"]}
    assert set(places) == {"all", "stdout"}
    whole = pai.send("GET", f"/{places['all']}", token="")
    assert whole.data.startswith(b"first")
    assert whole.data.endswith(b"</script>\n")
    assert whole.headers["Content-Type"].startswith("text/plain")
    assert whole.headers["X-Content-Type-Options"] == "nosniff"
    for asked in ("tail-mode=true", "tailMode=true"):
        uri = pai.get(f"{address}?{asked}")["locations"][0]["uri"]
        tail = pai.send("GET", f"/{uri}", token="")
        assert len(tail.data) == 16 * 1024
        assert tail.data.endswith(b"</script>\n")
    assert pai.refused("GET", address, token=pai.server.bob) == (404, "NoJobError")
    assert pai.refused("GET", "//log-manager/logs/all?token=x", token="") == (401, "UnauthorizedUserError")
    login = pai.login()
    assert pai.refused("GET", f"//log-manager/logs/all?token={login}", token="") == (401, "UnauthorizedUserError")
    pai.server.users.change("ann", disabled=True)
    try:
        assert pai.refused("GET", f"/{places['all']}", token="") == (401, "UnauthorizedUserError")
    finally:
        pai.server.users.change("ann", disabled=False)


def test_a_warning_that_quotes_the_job_is_one_line_of_a_header(pai: Pai) -> None:
    """The job would be there, and its client never told."""
    odd = {"a\r\nSet-Cookie: a=b": 1, "\x07\u20ac": 2}
    for name, job, path in (("odd2", v2("odd2", extras=odd), "/v2/jobs"), ("odd1", v1("odd1", extras=odd), "/v1/jobs")):
        answer = pai.send("POST", path, job)
        assert answer.status == 202, (name, answer.data)
        assert "Set-Cookie" not in answer.headers
        assert "a??Set-Cookie: a=b is not known here" in answer.headers["X-Warning"]
