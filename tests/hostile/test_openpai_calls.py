"""Whatever is sent to OpenPAI's face, with whatever credential: no fault, and nothing of others is seen or touched."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

import pytest
import requests
from fastapi.routing import APIRoute
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paddlecloud.server.app import utc_now
from paddlecloud.server.dialects import openpai
from paddlecloud.server.dialects.openpai.portal import sessions
from paddlecloud.server.dialects.openpai.route import LOGIN
from tests.hostile.credentials import KINDS
from tests.unit.server.running import Running, running

CALLS = int(os.environ.get("FUZZ_CALLS", "100"))
SECRET = "not-for-others"
ROUTES = [
    (method, route.path)
    for router in openpai.ROUTERS
    for route in router.routes
    if isinstance(route, APIRoute)
    for method in sorted((route.methods or set()) - {"HEAD"})
    if "{path" not in route.path
]
NAMES = [
    "username",
    "state",
    "order",
    "limit",
    "offset",
    "keyword",
    "vc",
    "tagsContain",
    "jobName",
    "task",
    "next",
    "token",
]
MEDIA = ["application/json", "application/x-www-form-urlencoded", "text/yaml", "text/plain", "", "application/json;x=é"]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    """One for each kind of credential: an admin's calls may disable the users of the others."""
    plain = {"clusters": {"local": {"policy": "open"}}, "rates": {"logins_a_minute": 0, "submits_a_minute": 0}}
    with running(tmp_path / "data", plain) as made:
        yield made


def of_bob(server: Running, session: requests.Session) -> None:
    """Bob, by a log-in and by a session of the pages at once."""
    passes, now = server.services.passes, utc_now()
    token = passes.make("bob", LOGIN, lasting=timedelta(hours=1), now=now)
    session.headers["Authorization"] = f"Bearer {token}"
    page = passes.make("bob", sessions.USE, lasting=timedelta(hours=1), now=now)
    session.cookies.set(sessions.COOKIE, page)


texts = st.one_of(
    st.sampled_from(
        ["ann", "bob", f"ann~{SECRET}", SECRET, "trainer", "0", "default", "..", "a~b~c", "~", "%00", "me"]
    ),
    st.text(max_size=20),
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(
    st.sampled_from(
        ["value", "username", "password", "data", "patch", "groupname", "extension", "jobName", "taskRoles"]
    )
    | texts,
    values,
    max_size=5,
)
bodies = st.one_of(
    objects.map(lambda found: json.dumps(found).encode()),
    st.text("abcjobNametaskRoles[]0=&%1+", max_size=120).map(str.encode),
    st.binary(max_size=120),
    st.just(b""),
)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", ["bob", *KINDS])
def test_no_call_finds_a_fault_or_what_is_anothers(server: Running, kind: str) -> None:
    job = server.run(name=SECRET, token=server.ann)
    session = requests.Session()
    if kind == "bob":
        of_bob(server, session)
    else:
        session.auth = KINDS[kind](server)
    may_see = kind not in ("bob", "nobody")

    @settings(max_examples=CALLS, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(
        route=st.sampled_from(ROUTES),
        parts=st.lists(texts, min_size=6, max_size=6),
        query=st.dictionaries(st.sampled_from(NAMES), texts, max_size=4),
        body=bodies,
        media=st.sampled_from(MEDIA),
    )
    def call(route: tuple[str, str], parts: list[str], query: dict[str, str], body: bytes, media: str) -> None:
        method, path = route
        left = list(parts)
        while "{" in path:
            before, _, rest = path.partition("{")
            # What nobody can write into an address is written as it must be.
            path = before + quote(left.pop().encode("utf-8", "replace"), safe="~") + rest.partition("}")[2]
        sent = {name: value.encode("utf-8", "replace") for name, value in query.items()}
        headers = {"Content-Type": media.encode("utf-8")}
        answer = session.request(
            method, server.url + path, params=sent, data=body, headers=headers, allow_redirects=False, timeout=60
        )
        assert answer.status_code < 500, (route, path, query, body, answer.text)
        if path.startswith("/rest-server") and answer.status_code >= 400:
            assert set(answer.json()) == {"code", "message"}, answer.text
        if not may_see and SECRET not in f"{path}{query}{body!r}":
            assert SECRET not in answer.text
            assert job not in answer.text

    call()
    if not may_see:
        assert server.state(job) == "running"
