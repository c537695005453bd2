"""Calls of WebHDFS that machines made up: none is a fault of the server, and none reaches what is another user's."""

from __future__ import annotations

import http.client
import json
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote, quote_from_bytes, urlsplit

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from paddlecloud.model.pfs import Who
from tests.unit.server.hdfscalls import Hdfs
from tests.unit.server.running import Running, running

CALLS = int(os.environ.get("FUZZ_CALLS", "300"))
MARK = b"only bob may read this"
OPS = [
    *(
        "OPEN",
        "GETFILESTATUS",
        "LISTSTATUS",
        "GETCONTENTSUMMARY",
        "GETFILECHECKSUM",
        "GETHOMEDIRECTORY",
        "GETACLSTATUS",
    ),
    *("GETTRASHROOT", "CHECKACCESS", "CREATE", "MKDIRS", "RENAME", "SETPERMISSION", "SETOWNER", "SETTIMES", "SETACL"),
    *("SETREPLICATION", "MODIFYACLENTRIES", "REMOVEACLENTRIES", "REMOVEDEFAULTACL", "REMOVEACL", "APPEND", "DELETE"),
]

NAMES = st.one_of(
    st.sampled_from(
        [
            *(
                "user",
                "ann",
                "bob",
                "pfs",
                "local",
                "home",
                "public",
                "shared",
                "output",
                "folder",
                "file",
                ".reserved",
            ),
            *(
                ".inodes",
                "1",
                "..",
                ".",
                "",
                "%2e%2e",
                "%2F",
                "..%2f..",
                "\\..\\",
                ".staging",
                "a" * 300,
                "~",
                "*",
                "?",
            ),
        ]
    ).map(quote),
    st.sampled_from(["%2e%2e", "%2E.", "%00", "%ff", "%c0%ae", "%2f", "%5c", "%0a", "%ef%bf%bf", "%ee%bf%bf"]),
    st.binary(max_size=8).map(quote_from_bytes),
    st.text(max_size=8).map(quote),
)
PATHS = st.lists(NAMES, max_size=7).map(lambda names: "/" + "/".join(names))
VALUES = st.one_of(
    st.sampled_from(
        [
            *(
                "true",
                "False",
                "0",
                "-1",
                "7",
                "99999999999999999999",
                "755",
                "01777",
                "9",
                "OVERWRITE",
                "ann",
                "bob",
                "",
            ),
            *("/user/bob/x", "/user/ann/x", "/ann/../bob/x", "user::rwx,group::r--,other::---", "user:bob:rwx", "x"),
        ]
    ),
    PATHS,
    st.text(max_size=12),
)
KEYS = st.sampled_from(
    [
        *("offset", "length", "overwrite", "recursive", "destination", "renameoptions", "permission", "owner", "group"),
        *("modificationtime", "accesstime", "replication", "blocksize", "buffersize", "aclspec", "data", "noredirect"),
        *("user.name", "doas", "fsaction", "Op", "delegation"),
    ]
)
QUERIES = st.dictionaries(KEYS, VALUES, max_size=4)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("server") / "data"


@pytest.fixture(scope="module")
def server(data: Path) -> Iterator[Running]:
    with running(data) as made:
        for user in ("ann", "bob"):
            files = made.services.pfs
            home = f"/pfs/local/home/{user}"
            for name in ("file", "folder/file"):
                files.write(Who(user=user), f"{home}/{name}", [MARK if user == "bob" else b"ann's"], size=100)
        yield made


@pytest.fixture(scope="module")
def ann(server: Running) -> Hdfs:
    return Hdfs(server, server.ann, "ann")


def asked(url: str, method: str, target: str, body: bytes | None) -> tuple[int, bytes, str]:
    there = urlsplit(url)
    with closing(http.client.HTTPConnection(str(there.hostname), there.port, timeout=30)) as connection:
        connection.request(method, target, body)
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.getheader("Location") or ""


@settings(max_examples=CALLS, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(
    method=st.sampled_from(["GET", "PUT", "POST", "DELETE", "PATCH"]),
    op=st.one_of(st.sampled_from(OPS), st.sampled_from(OPS).map(str.lower), st.text(max_size=8)),
    path=PATHS,
    query=QUERIES,
    body=st.one_of(st.none(), st.binary(max_size=50)),
    top=st.sampled_from(["/webhdfs/v1", "/webhdfs/api/v1", "/webhdfs/webhdfs/v1"]),
)
@example("GET", "OPEN", "/user/ann/%2e%2e/bob/file", {}, None, "/webhdfs/v1")
@example("GET", "OPEN", "/pfs/local/home/ann/../bob/file", {}, None, "/webhdfs/v1")
@example("PUT", "RENAME", "/user/ann/file", {"destination": "/user/ann/../bob/file"}, None, "/webhdfs/v1")
@example("PUT", "CREATE", "/user/bob/file", {"overwrite": "true", "data": "true"}, b"mine", "/webhdfs/v1")
@example("DELETE", "DELETE", "/user/bob", {"recursive": "true"}, None, "/webhdfs/v1")
def test_no_call_is_a_fault_or_reaches_what_is_anothers(
    server: Running,
    ann: Hdfs,
    data: Path,
    method: str,
    op: str,
    path: str,
    query: dict[str, str],
    body: bytes | None,
    top: str,
) -> None:
    words = "&".join(f"{quote(key)}={quote(value)}" for key, value in {"op": op, **query}.items())
    target = f"{ann.secret}{top}{path}?{words}"
    status, content, location = asked(server.url, method, target, body)
    if status == 307:
        assert location.startswith(f"{server.url}{ann.secret}{top}/")
        there = urlsplit(location)
        status, content, _ = asked(server.url, method, f"{there.path}?{there.query}", body)
    assert status in (200, 201, 400, 401, 403, 404), (target, status, content)
    assert MARK not in content
    if status >= 400:
        assert list(json.loads(content)) == ["RemoteException"], (target, content)
    homes = data / "pfs" / "local" / "home"
    assert (homes / "bob" / "file").read_bytes() == (homes / "bob" / "folder" / "file").read_bytes() == MARK
    assert sorted(os.listdir(homes / "bob")) == ["file", "folder", "output"]
    assert sorted(os.listdir(homes)) == ["ann", "bob"]


@settings(max_examples=CALLS // 3, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(op=st.sampled_from(OPS), path=PATHS, query=QUERIES, secret=st.one_of(st.none(), st.text(max_size=50)))
def test_a_stranger_gets_nothing_whatever_they_say(
    server: Running, op: str, path: str, query: dict[str, str], secret: str | None
) -> None:
    before = "" if secret is None else f"/t/{quote(secret, safe='')}"
    words = "&".join(f"{quote(key)}={quote(value)}" for key, value in {"op": op, "user.name": "bob", **query}.items())
    for method in ("GET", "PUT", "DELETE"):
        status, content, _ = asked(server.url, method, f"{before}/webhdfs/v1{path}?{words}", None)
        assert status in (401, 403, 404, 429), (status, content)
        assert MARK not in content
