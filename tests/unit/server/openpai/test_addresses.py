"""Which addresses are OpenPAI's, and which stay those of older clients."""

from __future__ import annotations

import pytest

from paddlecloud.server.dialects.openpai.addresses import spelled
from tests.unit.server.openpai.asking import Pai


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/rest-server/api/v2/jobs", "/rest-server/api/v2/jobs"),
        ("/rest-server/api/v2/users/", "/rest-server/api/v2/users"),
        ("/rest-server", "/rest-server"),
        ("/rest-server/", "/rest-server"),
        ("/api/v2/jobs/a~b", "/rest-server/api/v2/jobs/a~b"),
        ("/api/v1/", "/rest-server/api/v1"),
        ("/api/v1", "/rest-server/api/v1"),
        ("/api/v1/token", "/rest-server/api/v1/token"),
        ("/api/v1/user/u/jobs", "/rest-server/api/v1/user/u/jobs"),
        ("/api/v1/jobs", "/rest-server/api/v1/jobs"),
        ("/api/v1/jobs/u~j", "/rest-server/api/v1/jobs/u~j"),
        ("/api/v1/jobs/u/jobs/j/config", "/rest-server/api/v1/user/u/jobs/j/config"),
        ("/rest-server/api/v1/jobs/u/jobs/j/config", "/rest-server/api/v1/user/u/jobs/j/config"),
        # of seed 001
        ("/api/v1/jobs/", None),
        ("/api/v1/token2user/", None),
        ("/api/v1/logs", None),
        ("/api/v1/logs/", None),
        ("/api/v1/quota/", None),
        ("/api/v1/registry/", None),
        ("/api/v1/file/", None),
        ("/api/v1/filelist/", None),
        ("/api/v1/publish/", None),
        ("/api/v1/pservers/", None),
        ("/api/v1/workers/", None),
        # of nobody
        ("/api/v3/jobs", None),
        ("/api/v1x/jobs", None),
        ("/rest-serverx/api/v2/jobs", None),
        ("/v1/jobs", None),
        ("/", None),
    ],
)
def test_an_address_is_spelled_in_one_way(path: str, meant: str | None) -> None:
    assert spelled(path) == meant


@pytest.mark.parametrize("path", ["//rest-server/api/v2/nothing", "//rest-server", "//api/v2/x/y/z", "//rest-server/x"])
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH"])
def test_what_there_is_not_is_told_in_its_own_words(pai: Pai, method: str, path: str) -> None:
    answer = pai.send(method, path, token="")
    assert answer.status == 404
    assert answer.json()["code"] == "NoApiError"
    assert answer.json()["message"].startswith("API /rest-server")


def test_scripts_of_any_origin_may_ask_and_no_cookie_counts(pai: Pai) -> None:
    answer = pai.send("GET", "/v2/info", token="", headers={"Origin": "https://elsewhere.example"})
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert "Access-Control-Allow-Credentials" not in answer.headers
    assert "Set-Cookie" not in answer.headers
    asked = {"Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "authorization,content-type"}
    before = pai.send("OPTIONS", "/v2/jobs", token="", headers=asked)
    assert before.status == 204
    assert before.headers["Access-Control-Allow-Headers"] == "authorization,content-type"
    assert "PUT" in before.headers["Access-Control-Allow-Methods"]
    assert pai.send("GET", "//v1/jobs").headers.get("Access-Control-Allow-Origin") is None


def test_the_vs_code_client_finds_a_server_that_it_knows(pai: Pai) -> None:
    assert pai.send("GET", "//healthz", token="").status == 200
    assert pai.send("GET", "//view.html", token="").status == 404
    said = {"name": "PAI RESTful API", "version": "v1.8.1", "launcherType": "k8s", "authnMethod": "basic"}
    for path in ("//api/v2/info", "//rest-server/api/v2/info", "//api/v1/", "//rest-server/api/v1"):
        answer = pai.send("GET", path, token="", headers={"Content-Type": "application/json"})
        assert answer.json() == said, path


def test_an_old_client_of_another_system_is_answered_as_ever(pai: Pai) -> None:
    token = pai.server.services.old_tokens.token_of(pai.server.user("ann"))
    answer = pai.send("GET", "//api/v1/jobs/", token="", headers={"Authorization": f"Token {token}"})
    assert answer.json()["kind"] == "JobList"
