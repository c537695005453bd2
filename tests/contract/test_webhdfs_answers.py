"""The same requests to a real HDFS and to our own WebHDFS get the same answers: status, shape and class of error.

Where ours is another on purpose (docs/webhdfs.md), the request is not here.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

import pytest
import urllib3

from tests.contract.webhdfs_face import USER as OURS
from tests.contract.webhdfs_face import WebHdfsFace
from tests.hdfs import USER as THEIRS
from tests.hdfs import Hdfs

# Method, path below a new folder, operation and parameters, body. `{}` in a parameter is that folder.
Request = tuple[str, str, Mapping[str, object], bytes | None]


def get(path: str, op: str, **query: object) -> Request:
    return "GET", path, {"op": op, **query}, None


def put(path: str, op: str, **query: object) -> Request:
    return "PUT", path, {"op": op, **query}, None


def create(path: str, body: bytes = b"x", **query: object) -> Request:
    return "PUT", path, {"op": "CREATE", "permission": "750", **query}, body


def append(path: str, body: bytes = b"x") -> Request:
    return "POST", path, {"op": "APPEND"}, body


def delete(path: str, **query: object) -> Request:
    return "DELETE", path, {"op": "DELETE", **query}, None


def rename(source: str, target: str, **query: object) -> Request:
    return put(source, "RENAME", destination="{}" + target, **query)


TREE = [create("/f", b"hello world"), create("/d/inside", b"123"), put("/empty", "MKDIRS", permission="700")]

STORIES: Mapping[str, list[Request]] = {
    "folders": [
        put("", "MKDIRS"),
        get("", "LISTSTATUS"),
        put("/a", "MKDIRS"),
        put("/a/b", "mkdirs", permission="0750"),
        get("/a/b", "GETFILESTATUS"),
        put("/s", "MKDIRS", permission="1777"),
        get("/s", "GETFILESTATUS"),
        put("/x", "MKDIRS", permission="9"),
        create("/f"),
        put("/f", "MKDIRS"),
        put("/f/below", "MKDIRS"),
        get("", "LISTSTATUS"),
        put("/x/" + "n" * 255, "MKDIRS"),
    ],
    "files": [
        create("/f", b"hello world"),
        get("/f", "GETFILESTATUS"),
        get("/f", "LISTSTATUS"),
        create("/f", b"again"),
        create("/f", b"again", overwrite="False"),
        create("/f", b"again", overwrite="TRUE"),
        create("/f", b"again", overwrite="maybe"),
        create("", b"x", overwrite="true"),
        create("/deep/er/f", b"x", replication=1, blocksize=1048576, buffersize=100),
        get("/deep/er/f", "GETFILESTATUS"),
        create("/g", b"x", replication="x"),
        create("/foo bar?.txt", b"12"),
        get("/foo bar?.txt", "OPEN"),
        create("/数据&a=b", b"12"),
        get("/数据&a=b", "open"),
        get("", "liststatus"),
    ],
    "reading": [
        *TREE,
        get("/f", "OPEN"),
        get("/f", "OPEN", offset=6),
        get("/f", "OPEN", offset=6, length=2),
        get("/f", "OPEN", length=1000),
        get("/f", "OPEN", length=0),
        get("/f", "OPEN", offset=11),
        get("/f", "OPEN", offset=100),
        get("/f", "OPEN", offset=-1),
        get("/f", "OPEN", length=-1),
        get("/f", "OPEN", offset="x"),
        get("/d", "OPEN"),
        get("/nothing", "OPEN"),
        get("/nothing", "GETFILESTATUS"),
        get("/nothing", "LISTSTATUS"),
        create("/nil", b""),
        get("/nil", "OPEN"),
        get("/nil", "OPEN", offset=1),
    ],
    "appending": [
        create("/f", b"hello"),
        append("/f", b" world"),
        get("/f", "OPEN"),
        append("/nothing"),
        append(""),
    ],
    "counting": [
        *TREE,
        get("", "GETCONTENTSUMMARY"),
        get("/f", "GETCONTENTSUMMARY"),
        get("/nothing", "GETCONTENTSUMMARY"),
        *[
            step
            for size in (0, 1, 511, 512, 513, 100_000)
            for step in (
                create(f"/c{size}", bytes(number % 251 for number in range(size))),
                get(f"/c{size}", "GETFILECHECKSUM"),
            )
        ],
        get("/nothing", "GETFILECHECKSUM"),
        get("/d", "GETFILECHECKSUM"),
    ],
    "renaming": [
        *TREE,
        rename("/nothing", "/x"),
        rename("/f", "/no/x"),
        rename("/f", "/f"),
        rename("/f", "/f/x"),
        rename("/d", "/d"),
        rename("/f", "/d"),
        get("/d", "LISTSTATUS"),
        create("/f"),
        create("/g"),
        rename("/f", "/g"),
        rename("/f", "/d/inside"),
        rename("/d", "/e"),
        put("/f", "RENAME", destination="rel"),
        put("/f", "RENAME"),
        put("/f", "RENAME", destination=""),
        get("", "LISTSTATUS"),
    ],
    "renaming strictly": [
        *TREE,
        create("/g"),
        rename("/nothing", "/x", renameoptions="OVERWRITE"),
        rename("/f", "/g", renameoptions="NONE"),
        rename("/f", "/f", renameoptions="OVERWRITE"),
        rename("/f", "/no/x", renameoptions="OVERWRITE"),
        rename("/f", "/g/x", renameoptions="OVERWRITE"),
        rename("/d", "/g", renameoptions="OVERWRITE"),
        rename("/g", "/d", renameoptions="OVERWRITE"),
        rename("/d", "/d/x", renameoptions="OVERWRITE"),
        rename("/empty", "/d", renameoptions="OVERWRITE"),
        rename("/f", "/x", renameoptions="BAD"),
        rename("/f", "/g", renameoptions="OVERWRITE"),
        rename("/d", "/empty", renameoptions="overwrite"),
        rename("/g", "/h", renameoptions="NONE"),
        get("", "LISTSTATUS"),
    ],
    "deleting": [
        *TREE,
        delete("/nothing"),
        delete("/d"),
        delete("/d", recursive="xx"),
        delete("/empty"),
        delete("/d", recursive="TRUE"),
        delete("/f"),
        get("", "LISTSTATUS"),
    ],
    "saying": [
        *TREE,
        put("/f", "SETPERMISSION", permission="0600"),
        get("/f", "GETFILESTATUS"),
        put("/f", "SETPERMISSION", permission="99"),
        put("/nothing", "SETPERMISSION", permission="600"),
        put("/nothing", "SETOWNER", owner="x"),
        put("/f", "SETOWNER"),
        put("/f", "SETTIMES", modificationtime=1000, accesstime=2000),
        get("/f", "GETFILESTATUS"),
        put("/f", "SETTIMES"),
        put("/f", "SETTIMES", modificationtime=-1),
        put("/nothing", "SETTIMES", modificationtime=1000),
        put("/f", "SETREPLICATION", replication=1),
        get("/f", "GETFILESTATUS"),
        put("/f", "SETREPLICATION", replication=0),
        put("/d", "SETREPLICATION", replication=1),
        put("/nothing", "SETREPLICATION", replication=1),
        rename("/f", "/g"),
        get("/g", "GETFILESTATUS"),
        create("/g", b"new", overwrite="true", permission="755"),
        get("/g", "GETFILESTATUS"),
    ],
    "acls": [
        *TREE,
        get("/f", "GETACLSTATUS"),
        put("/f", "SETACL", aclspec="user::rwx,user:bob:r-x,group::r--,other::---"),
        get("/f", "GETACLSTATUS"),
        get("/f", "GETFILESTATUS"),
        put("/f", "MODIFYACLENTRIES", aclspec="group:lab:rwx"),
        get("/f", "GETACLSTATUS"),
        put("/f", "REMOVEACLENTRIES", aclspec="group:lab:"),
        get("/f", "GETACLSTATUS"),
        put("/f", "REMOVEACL"),
        get("/f", "GETACLSTATUS"),
        put("/d", "SETACL", aclspec="user::rwx,group::r-x,other::---,default:user:bob:rwx"),
        put("/d", "REMOVEDEFAULTACL"),
        get("/d", "GETACLSTATUS"),
        put("/f", "SETACL", aclspec="bad"),
        put("/f", "SETACL", aclspec="user::rwx"),
        put("/nothing", "REMOVEACL"),
        get("/nothing", "GETACLSTATUS"),
    ],
    "no such calls": [
        create("/f"),
        get("/f", "NOSUCH"),
        get("/f", "MKDIRS"),
        put("/f", "OPEN"),
        put("/f", "NOSUCH"),
        ("POST", "/f", {"op": "NOSUCH"}, None),
        ("DELETE", "/f", {"op": "NOSUCH"}, None),
        get("/f", ""),
        get("/f", "gethomedirectory"),
        get("/f", "CHECKACCESS", fsaction="r--"),
        get("/nothing", "CHECKACCESS", fsaction="r--"),
    ],
}

# What must be equal, and not only of the same type.
EQUAL = {
    *("boolean", "exception", "javaClassName", "pathSuffix", "type", "length", "permission", "entries", "stickyBit"),
    *("directoryCount", "fileCount", "quota", "spaceQuota", "algorithm", "bytes"),
}
TOLD_ONCE_SET = ("modificationTime", "accessTime")


class Side:
    def __init__(self, url: str, user: str, folder: str) -> None:
        self._url = url
        self._user = user
        self.folder = folder
        self._pool = urllib3.PoolManager(retries=False, timeout=60.0)
        self.ask(put("", "MKDIRS"))

    def ask(self, request: Request) -> tuple[int, Any]:
        """The status and the body of the last answer, behind a redirect if there is one."""
        method, path, query, body = request
        told = {name: str(value).replace("{}", self.folder) for name, value in query.items()}
        words = urlencode({"user.name": self._user, **told})
        address = f"{self._url}/webhdfs/v1{quote(self.folder + path)}?{words}"
        headers = {"Content-Type": "application/octet-stream"}
        answer = self._pool.request(method, address, headers=headers, redirect=False)
        if body is not None and answer.status not in (307, 400, 403, 404):
            pytest.fail(f"{request} must be sent on: {answer.status}")
        if answer.status == 307:
            answer = self._pool.request(method, answer.headers["Location"], body=body, headers=headers, redirect=False)
        kind = answer.headers.get("Content-Type", "").partition(";")[0]
        return answer.status, json.loads(answer.data) if kind == "application/json" and answer.data else answer.data


def shape(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: shape(inner, key) for key, inner in value.items() if key not in ("childrenNum", "aclBit")}
    if isinstance(value, list):
        # In HDFS, names with bytes above 127 come first.
        ordered = sorted(value, key=lambda one: str(one.get("pathSuffix"))) if name == "FileStatus" else value
        return [shape(inner, name) for inner in ordered]
    if name in EQUAL or isinstance(value, bytes) or (name in TOLD_ONCE_SET and value <= 2000):
        return value
    return type(value).__name__


@pytest.mark.parametrize("story", STORIES)
def test_our_answer_is_that_of_hdfs(story: str, hdfs_cluster: Hdfs, webhdfs_face: WebHdfsFace) -> None:
    name = secrets.token_hex(6)
    theirs = Side(hdfs_cluster.url, THEIRS, f"/stores/{name}")
    ours = Side(webhdfs_face.url, OURS, f"/user/{OURS}/{name}")
    for request in STORIES[story]:
        (their_status, their_body), (our_status, our_body) = theirs.ask(request), ours.ask(request)
        told = f"{request}: HDFS says {their_status} {their_body!r}, we say {our_status} {our_body!r}"
        assert (our_status, shape(our_body)) == (their_status, shape(their_body)), told
