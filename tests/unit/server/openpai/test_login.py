"""Coming in as OpenPAI's clients do, and the tokens they come by."""

from __future__ import annotations

import base64
import json
import logging
import time
from datetime import timedelta
from pathlib import Path

import pytest

from paddlecloud.server.app import utc_now
from paddlecloud.server.dialects.openpai.route import LOGIN
from tests.unit.server.openpai.asking import PASSWORD, Pai
from tests.unit.server.running import running


@pytest.mark.parametrize("path", ["/v1/token", "/v1/authn/basic/login", "/v2/authn/basic/login"])
def test_a_login_by_form_or_json_gives_a_token(pai: Pai, path: str) -> None:
    by_form = pai.form(path, expiration="4000", password=PASSWORD, username="carl")
    by_json = pai.send("POST", path, {"username": "carl", "password": PASSWORD, "expiration": 4000}, token="")
    for answer in (by_form, by_json):
        assert answer.status == 200
        assert {**answer.json(), "token": ""} == {"user": "carl", "token": "", "admin": False, "hasGitHubPAT": False}
        assert pai.get("/v2/tokens/check", answer.json()["token"])["username"] == "carl"


def test_the_empty_login_that_the_vs_code_client_sends_counts_for_nothing(pai: Pai) -> None:
    for _ in range(30):
        answer = pai.form("/v2/authn/basic/login", expiration="4000", password="", username="")
        assert (answer.status, answer.json()["code"]) == (400, "InvalidParametersError")
    assert pai.login()


@pytest.mark.parametrize(
    "fields",
    [
        {"username": "carl", "password": PASSWORD, "expiration": "59"},
        {"username": "carl", "password": PASSWORD, "expiration": "604801"},
        {"username": "carl", "password": PASSWORD, "expiration": "soon"},
        {"username": "carl", "password": "short"},
        {"username": "ca rl", "password": PASSWORD},
        {"username[a]": "carl", "password": PASSWORD},
        {},
    ],
    ids=str,
)
def test_a_login_that_cannot_be_meant_is_refused(pai: Pai, fields: dict[str, str]) -> None:
    answer = pai.form("/v2/authn/basic/login", **fields)
    assert (answer.status, answer.json()["code"]) == (400, "InvalidParametersError"), answer.data


def test_a_wrong_password_and_an_unknown_user_look_alike(pai: Pai) -> None:
    wrong = pai.form("/v1/token", username="carl", password="wrong horse")
    unknown = pai.form("/v1/token", username="nobody", password="wrong horse")
    assert (wrong.status, wrong.json()) == (unknown.status, unknown.json())
    assert (wrong.status, wrong.json()["code"]) == (400, "IncorrectPasswordError")


def test_a_token_lasts_as_long_as_was_asked_for(pai: Pai) -> None:
    token = pai.login(expiration="60")
    said = pai.get("/v2/tokens/check", token)
    assert said["exp"] - said["iat"] == 60
    passes, now = pai.server.services.passes, utc_now()
    ended = passes.make("carl", LOGIN, lasting=timedelta(seconds=60), now=now - timedelta(seconds=61))
    assert pai.refused("GET", "/v2/jobs", token=ended) == (401, "UnauthorizedUserError")


def test_a_token_is_a_json_web_token_that_only_this_server_signs(pai: Pai) -> None:
    head, words, _ = pai.login().split(".")
    assert json.loads(base64.urlsafe_b64decode(words + "=="))["username"] == "carl"
    bent = base64.urlsafe_b64encode(b'{"alg":"none","typ":"JWT"}').rstrip(b"=").decode()
    for forged in (f"{bent}.{words}.", f"{head}.{words}.", f"{head}.{words}.AAAA", f"{head}..{words}", "x", "é.é.é"):
        answer = pai.send("GET", "/v2/jobs", token=forged.encode().decode("latin-1"))
        assert (answer.status, answer.json()["message"]) == (401, "Your token is invalid.")


def test_nobody_in_particular_is_a_guest(pai: Pai) -> None:
    answer = pai.send("GET", "/v2/jobs/protocolversion/config", token="")
    assert (answer.status, answer.json()["code"]) == (401, "UnauthorizedUserError")
    assert answer.json()["message"] == "Guest is not allowed to do this operation."


def test_a_login_leaves_no_row_and_a_second_one_no_hash_and_no_record(pai: Pai) -> None:
    pai.login()

    def on_record() -> int:
        entries = pai.server.get("/v1/audit?action=login&limit=500", pai.server.root)["items"]
        return len([entry for entry in entries if entry["user"] == "carl"])

    before, began = on_record(), time.perf_counter()
    tokens = {pai.login() for _ in range(50)}
    assert time.perf_counter() - began < 1.5, "argon2 alone would take longer"
    assert len(tokens) == 50
    assert on_record() == before
    assert pai.server.users.tokens("carl") == []


def test_who_is_remembered_comes_in_however_often_they_and_others_of_their_address_do(tmp_path: Path) -> None:
    """Behind one address, as that of a proxy, many clients log in every ten seconds, and some guess."""
    plain = {"clusters": {"local": {"policy": "open"}}, "rates": {"logins_a_minute": 1}}
    with running(tmp_path / "data", plain) as server:
        pai = Pai(server)
        pai.login()
        assert {pai.form("/v1/token", username="carl", password=PASSWORD).status for _ in range(15)} == {200}
        guesses = (pai.form("/v1/token", username=f"u{n}", password="a guess").status for n in range(50))
        assert 429 in guesses
        assert pai.form("/v1/token", username="carl", password=PASSWORD).status == 200
        assert pai.form("/v1/token", username="carl", password="a guess").status == 429


def test_a_new_password_ends_what_was_remembered_and_every_token(pai: Pai) -> None:
    token = pai.login()
    pai.server.users.change("carl", password="another horse")
    try:
        assert pai.form("/v1/token", username="carl", password=PASSWORD).status == 400
        assert pai.refused("GET", "/v2/jobs", token=token) == (401, "UnauthorizedUserError")
    finally:
        pai.server.users.change("carl", password=PASSWORD)


def test_a_disabled_user_does_not_come_in_by_what_is_remembered(pai: Pai) -> None:
    token = pai.login()
    pai.server.users.change("carl", disabled=True)
    try:
        assert pai.form("/v1/token", username="carl", password=PASSWORD).status == 400
        assert pai.refused("GET", "/v2/jobs", token=token) == (401, "UnauthorizedUserError")
    finally:
        pai.server.users.change("carl", disabled=False)


def test_who_logs_out_is_out_and_others_are_not(pai: Pai) -> None:
    token, other = pai.login(), pai.login()
    headers = {"Content-Type": "application/json"}
    answer = pai.send("DELETE", "/v2/authn/basic/logout", token=token, headers=headers)
    assert (answer.status, answer.json()) == (200, {"message": "Logout successfully"})
    assert pai.refused("GET", "/v2/jobs", token=token) == (401, "UnauthorizedUserError")
    assert pai.get("/v2/jobs", other) == []


def test_tokens_of_applications_last_can_be_shown_again_and_revoked(pai: Pai) -> None:
    token = pai.login()
    made = pai.send("POST", "/v2/tokens/application", token=token, headers={"Content-Type": "application/json"}).json()
    assert made["application"] is True
    assert pai.get("/v1/token", token) == pai.get("/v2/tokens", token) == {"tokens": [token, made["token"]]}
    assert pai.get("/v2/jobs", made["token"]) == []
    said = pai.get("/v2/tokens/check", made["token"])
    assert (said["application"], said["exp"]) == (True, None)
    assert pai.send("DELETE", f"/v2/tokens/{made['token']}", token=token).json() == {"message": "revoke successfully"}
    assert pai.refused("GET", "/v2/jobs", token=made["token"]) == (401, "UnauthorizedUserError")
    assert pai.send("DELETE", f"/v1/token/{token}", token=token).status == 200
    assert pai.refused("GET", "/v2/jobs", token=token) == (401, "UnauthorizedUserError")


def test_an_application_cannot_touch_tokens_nor_users(pai: Pai) -> None:
    root = pai.server.services.passes.make("root-of-all", LOGIN, lasting=timedelta(hours=1), now=utc_now())
    made = pai.send("POST", "/v1/token/application", token=root).json()["token"]
    for method, path in (
        ("GET", "/v2/tokens"),
        ("POST", "/v2/tokens/application"),
        ("DELETE", f"/v2/tokens/{made}"),
    ):
        assert pai.refused(method, path, token=made) == (403, "ForbiddenUserError"), path


def test_an_application_comes_in_by_basic_and_a_password_does_not(pai: Pai) -> None:
    made = pai.send("POST", "/v2/tokens/application", token=pai.login()).json()["token"]

    def by_basic(name: str, secret: str) -> int:
        sent = base64.b64encode(f"{name}:{secret}".encode()).decode()
        return pai.send("GET", "/v2/jobs", token="", headers={"Authorization": f"Basic {sent}"}).status

    assert by_basic("carl", made) == 200
    assert by_basic("ann", made) == 401
    assert by_basic("carl", PASSWORD) == 401
    assert by_basic("carl", pai.login()) == 401
    assert pai.send("GET", "/v2/jobs", token="", headers={"Authorization": "Basic é"}).status == 401


def test_a_token_that_ends_makes_none_that_does_not(pai: Pai) -> None:
    ends = pai.server.ask("POST", "/v1/tokens", {"name": "x", "scope": "write", "expires_in_seconds": 60}).json()
    assert pai.refused("POST", "/v2/tokens/application", token=ends["secret"]) == (403, "ForbiddenUserError")


def test_nobody_revokes_a_token_of_another(pai: Pai) -> None:
    token = pai.login()
    assert pai.refused("DELETE", f"/v2/tokens/{token}") == (403, "ForbiddenUserError")
    assert pai.refused("DELETE", "/v2/tokens/nonsense") == (400, "InvalidParametersError")
    assert pai.get("/v2/jobs", token) == []


def test_a_pass_is_good_for_its_own_use_alone(pai: Pai) -> None:
    other = pai.server.services.passes.make("carl", "something else", lasting=timedelta(hours=1), now=utc_now())
    assert pai.refused("GET", "/v2/jobs", token=other) == (401, "UnauthorizedUserError")


def test_who_may_only_read_or_not_for_long_is_not_shown_tokens_that_last(pai: Pai) -> None:
    assert pai.send("POST", "/v2/tokens/application", token=pai.server.ann).status == 200
    for scope, seconds in (("read", None), ("read", 60), ("write", 60)):
        asked = {"name": "x", "scope": scope, "expires_in_seconds": seconds}
        less = pai.server.ask("POST", "/v1/tokens", asked).json()["secret"]
        for path in ("/v1/token", "/v2/tokens"):
            assert pai.refused("GET", path, token=less) == (403, "ForbiddenUserError")
    assert len(pai.get("/v2/tokens", pai.server.ann)["tokens"]) == 1


def test_an_application_gets_no_more_by_our_own_api(pai: Pai) -> None:
    """A key, a password or an address of files would be good when its token is revoked."""
    made = pai.send("POST", "/v2/tokens/application", token=pai.login()).json()["token"]
    ask = pai.server.ask
    ours = ask("POST", "/v1/login", {"name": "carl", "password": PASSWORD}).json()["token"]["id"]
    for method, path, body in (
        ("POST", "/v1/keys", {}),
        ("POST", "/v1/tokens", {"name": "x", "scope": "write"}),
        ("DELETE", f"/v1/tokens/{ours}", None),
        ("PATCH", "/v1/users/carl", {"password": "another horse"}),
        ("PATCH", "/v1/users/carl", {"email": "a@example.com"}),
        ("DELETE", "/v1/users/carl/old-clients", None),
        ("GET", "/v1/webhdfs", None),
    ):
        answer = ask(method, path, body, token=made)
        assert answer.status == 403, (method, path, answer.data)
        assert "application" in answer.json()["detail"]
    assert ask("GET", "/v1/jobs", token=made).status == 200
    assert pai.login()


def test_no_token_is_in_a_line_of_the_log(pai: Pai, caplog: pytest.LogCaptureFixture) -> None:
    token = pai.login()
    made = pai.send("POST", "/v2/tokens/application", token=token).json()["token"]
    with caplog.at_level(logging.INFO):
        for secret in (token, made):
            encoded = "".join(f"%{ord(letter):02x}" for letter in secret)
            for written in (secret, encoded):
                assert pai.refused("DELETE", f"/v2/tokens/{written}") == (403, "ForbiddenUserError")
    lines = "\n".join(
        f"{record.getMessage()} {record.__dict__}" for record in caplog.records if record.name != "uvicorn.access"
    )
    assert "/rest-server/api/v2/tokens/…" in lines
    for secret in (token, made):
        assert secret not in lines
        assert "".join(f"%{ord(letter):02x}" for letter in secret) not in lines
