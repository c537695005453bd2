"""Tokens kept for passwords: found again for the same server and user alone, and never in the way."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from paddlecloud.model.errors import UnauthenticatedError
from paddlecloud.sdk import kept_tokens
from paddlecloud.sdk.http import Http
from paddlecloud.sdk.profile import Profile
from tests.unit.sdk.answering import Answer, Asked, Web, web

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
SERVER = "http://gpu-box:8642"
_TOKEN = {"id": "i", "user": "u", "name": "login", "scope": "write", "created_at": "2026-11-16T00:00:00Z"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config" / "tokens.json"


def an_http(there: Web, file: Path, now: datetime = NOW) -> Http:
    profile = Profile(server=there.url, user="u", password="p", tokens_file=str(file))
    return Http(profile, clock=lambda: now)


def answering(asked: Asked, *, good: str = "pct_1") -> Answer:
    if asked.path == "/v1/login":
        token = _TOKEN | {"expires_at": LATER.isoformat()}
        return Answer(200, json.dumps({"token": token, "secret": good}).encode())
    fits = asked.headers.get("Authorization") == f"Bearer {good}"
    return Answer() if fits else Answer(401, b'{"code": "unauthenticated", "detail": "the token is not known here"}')


def test_a_token_is_found_for_its_server_and_user_alone_and_not_at_its_end(file: Path) -> None:
    kept_tokens.keep(file, SERVER, "wang", "pct_1", LATER, NOW)
    assert file.stat().st_mode & 0o777 == 0o600
    assert kept_tokens.find(file, SERVER, "wang", NOW) == "pct_1"
    assert kept_tokens.find(file, SERVER, "li", NOW) == ""
    assert kept_tokens.find(file, "https://gpu-box:8642", "wang", NOW) == ""
    assert kept_tokens.find(file, SERVER, "wang", LATER - timedelta(seconds=30)) == ""


def test_keeping_a_token_keeps_those_of_others_but_for_what_has_ended(file: Path) -> None:
    kept_tokens.keep(file, SERVER, "li", "pct_1", NOW, NOW)
    kept_tokens.keep(file, "http://other", "wang", "pct_2", LATER, NOW)
    kept_tokens.keep(file, SERVER, "wang", "pct_3", LATER, NOW)
    assert "pct_1" not in file.read_text()
    assert kept_tokens.find(file, "http://other", "wang", NOW) == "pct_2"


def test_only_the_token_that_was_refused_is_forgotten(file: Path) -> None:
    kept_tokens.keep(file, SERVER, "wang", "pct_new", LATER, NOW)
    kept_tokens.forget(file, SERVER, "wang", "pct_old")
    assert kept_tokens.find(file, SERVER, "wang", NOW) == "pct_new"
    kept_tokens.forget(file, SERVER, "wang", "pct_new")
    assert "pct_new" not in file.read_text()


@pytest.mark.parametrize("text", ["", "[]", "{", '{"http://gpu-box:8642": 3}', '{"http://gpu-box:8642": {"wang": {}}}'])
def test_a_file_that_is_none_of_ours_only_costs_a_login(file: Path, text: str) -> None:
    file.parent.mkdir()
    file.write_text(text)
    assert kept_tokens.find(file, SERVER, "wang", NOW) == ""
    kept_tokens.keep(file, SERVER, "wang", "pct_1", LATER, NOW)
    assert kept_tokens.find(file, SERVER, "wang", NOW) == "pct_1"


def test_a_folder_that_cannot_be_written_does_not_keep_a_command_from_its_work(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with web(answering) as there:
        an_http(there, tmp_path / "file" / "tokens.json").request("GET", "/v1/me")
        assert [asked.path for asked in there.asked] == ["/v1/login", "/v1/me"]


def test_the_next_command_uses_the_token_of_the_one_before(file: Path) -> None:
    with web(answering) as there:
        for _ in range(3):
            an_http(there, file).request("GET", "/v1/me")
        assert [asked.path for asked in there.asked] == ["/v1/login", "/v1/me", "/v1/me", "/v1/me"]
        an_http(there, file, now=LATER).request("GET", "/v1/me")
        assert there.asked[-2].path == "/v1/login"


def test_a_kept_token_that_is_refused_is_replaced_and_the_call_made_again(file: Path) -> None:
    with web(answering) as there:
        kept_tokens.keep(file, there.url, "u", "pct_revoked", LATER, NOW)
        an_http(there, file).request("POST", "/v1/jobs", body=b"{}")
        assert [asked.path for asked in there.asked] == ["/v1/jobs", "/v1/login", "/v1/jobs"]
        assert there.asked[2].body == b"{}"
        assert kept_tokens.find(file, there.url, "u", NOW) == "pct_1"


def test_a_server_that_refuses_what_it_gave_is_asked_once_more_and_not_for_ever(file: Path) -> None:
    def refusing(asked: Asked) -> Answer:
        return answering(asked if asked.path == "/v1/login" else Asked("GET", asked.path, {}, b""))

    with web(refusing) as there:
        kept_tokens.keep(file, there.url, "u", "pct_revoked", LATER, NOW)
        with pytest.raises(UnauthenticatedError):
            an_http(there, file).request("GET", "/v1/me")
        assert [asked.path for asked in there.asked] == ["/v1/me", "/v1/login", "/v1/me"]


def test_a_token_of_another_server_is_never_sent(file: Path) -> None:
    kept_tokens.keep(file, SERVER, "u", "pct_secret", LATER, NOW)
    with web(answering) as there:
        an_http(there, file).request("GET", "/v1/me")
        assert not any("pct_secret" in str(asked) for asked in there.asked)
