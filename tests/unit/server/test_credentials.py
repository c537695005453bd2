"""Every route that shows, makes or revokes tokens, keys and secrets, for each kind of token that may not."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import urllib3
from fastapi.routing import APIRoute

from paddlecloud.model.user import Role, Scope
from paddlecloud.server.app import utc_now
from paddlecloud.server.dialects import openpai, paddlecloud, webhdfs
from paddlecloud.server.rest import ROUTERS
from tests.unit.server.running import Running, running

PAI = "/rest-server"
LOGIN = {"name": "x", "server": "registry.example", "username": "u", "password": "p"}
BUCKET = {"url": "bos://lab/folder", "ak": "a", "sk": "s"}

# What the server lets callers in by.
CREDENTIALS = {
    ("GET", "/v1/keys"): None,
    ("POST", "/v1/keys"): {},
    ("DELETE", "/v1/keys/{ak}"): None,
    ("GET", "/v1/tokens"): None,
    ("POST", "/v1/tokens"): {"name": "x", "scope": "read"},
    ("DELETE", "/v1/tokens/{token_id}"): None,
    ("GET", "/v1/webhdfs"): None,
    ("DELETE", "/v1/users/{name}/old-clients"): None,
    ("GET", f"{PAI}/api/v1/token"): None,
    ("GET", f"{PAI}/api/v2/tokens"): None,
    ("POST", f"{PAI}/api/v1/token/application"): None,
    ("POST", f"{PAI}/api/v2/tokens/application"): None,
    ("DELETE", f"{PAI}/api/v1/token/{{token}}"): None,
    ("DELETE", f"{PAI}/api/v2/tokens/{{token}}"): None,
}
# What a user's jobs log in elsewhere with.
SECRETS = {
    ("GET", "/v1/registries"): None,
    ("POST", "/v1/registries"): LOGIN,
    ("DELETE", "/v1/registries/{name}"): None,
    ("POST", "/v1/storage_keys"): BUCKET,
    ("GET", "/api/v1/registry/"): None,
    ("POST", "/api/v1/registry/"): LOGIN,
    ("DELETE", "/api/v1/registry/"): {"name": "x"},
}
HARMLESS = {
    "/v1/login": "takes a password",
    "/v1/registrations": "sends a key to the user's mailbox alone",
    "/login.html": "takes a password",
    "/api-token-auth/": "takes a password",
    "/api/v1/token2user/": "says whose token the caller has",
    f"{PAI}/api/v1/authn": "takes a password, or ends the caller's own token",
    f"{PAI}/api/v2/authn": "takes a password, or ends the caller's own token",
    f"{PAI}/api/v2/tokens/check": "says what the caller's own token says",
    f"{PAI}/api/v2/storages": "lists shared folders, which have no secrets",
    "/api/v1/pfs/storage/chunks": "bytes of files",
    "/webhdfs/": "files",
    "/t/{": "files, by the secret in the address",
}
OF_SECRETS = re.compile(r"token|key|registr|secret|webhdfs|login|auth|old-clients|storage|password|credential")
FILLED = re.compile(r"\{\w+(:\w+)?\}")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("credentials") / "data") as made:
        yield made


@pytest.fixture(scope="module")
def tokens(server: Running) -> dict[str, str]:
    server.users.add("boss", Role.ADMIN, None, utc_now())
    return {
        "application": server.services.applications.add("ann", utc_now())[1],
        "application of an admin": server.services.applications.add("boss", utc_now())[1],
        "read": server.token("ann", Scope.READ),
        "write, of an admin": server.token("boss", Scope.WRITE),
    }


@pytest.mark.parametrize("kind", ["application", "application of an admin", "read", "write, of an admin"])
@pytest.mark.parametrize(("method", "path"), CREDENTIALS)
def test_a_token_of_less_power_than_its_user_sees_makes_and_revokes_no_other(
    server: Running, tokens: dict[str, str], kind: str, method: str, path: str
) -> None:
    answer = server.ask(method, filled(path), CREDENTIALS[method, path], token=tokens[kind])
    assert (is_forbidden(answer), tells_why(answer, kind)) == (True, True), answer.data


@pytest.mark.parametrize("kind", ["application", "application of an admin", "read"])
@pytest.mark.parametrize(("method", "path"), SECRETS)
def test_an_application_and_a_reader_see_and_change_no_secrets_of_jobs(
    server: Running, tokens: dict[str, str], kind: str, method: str, path: str
) -> None:
    answer = server.ask(method, filled(path), SECRETS[method, path], token=tokens[kind])
    assert (is_forbidden(answer), tells_why(answer, kind)) == (True, True), answer.data


@pytest.mark.parametrize(("method", "path"), [*CREDENTIALS, *SECRETS])
def test_the_users_own_token_is_not_refused(server: Running, method: str, path: str) -> None:
    for token in (server.ann, server.root):
        answer = server.ask(method, filled(path), (CREDENTIALS | SECRETS)[method, path], token=token)
        others = token == server.ann and "old-clients" in path  # the table names no user of hers
        assert is_forbidden(answer) is others, answer.data


def test_every_route_that_sounds_of_secrets_is_in_the_table() -> None:
    routers = (*ROUTERS, *paddlecloud.ROUTERS, *openpai.ROUTERS, *webhdfs.ROUTERS)
    found = {
        (method, route.path)
        for router in routers
        for route in router.routes
        if isinstance(route, APIRoute) and OF_SECRETS.search(route.path)
        for method in (route.methods or set()) - {"HEAD"}
        if not any(route.path.startswith(prefix) for prefix in HARMLESS)
    }
    assert found - {("POST", f"{PAI}/api/v1/token")} == {*CREDENTIALS, *SECRETS}  # that one takes a password


def filled(path: str) -> str:
    return FILLED.sub("x", path)


def is_forbidden(answer: urllib3.BaseHTTPResponse) -> bool:
    """Old clients are told so in a 200, the only status that they read."""
    return answer.status == 403 or (answer.status == 200 and b'"error": "forbidden"' in answer.data)


def tells_why(answer: urllib3.BaseHTTPResponse, kind: str) -> bool:
    text = answer.data.decode().lower()
    return "application" in text if kind.startswith("application") else f"scope {kind.partition(',')[0]}" in text
