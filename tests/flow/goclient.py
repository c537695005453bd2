"""The Go client of PaddlePaddle Cloud as it was recorded: its requests byte by byte, and what makes it fall over.

Written from the recorded protocol, since the old binaries cannot be had here. `PanicError` is raised where the real
client would end with a panic or a segmentation fault.
"""

from __future__ import annotations

import hashlib
import json
import re
import socket
from collections.abc import Iterator
from http.client import BadStatusLine, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus, urlencode, urlsplit

from tests.flow.releases import LAST, Release

BOUNDARY = "8d7b0e5709d756e21e971ff4d9ac3b20"
EMPTY = hashlib.md5(b"").hexdigest()


class PanicError(Exception):
    """The real client would be gone now."""


class RefusedError(Exception):
    """What the real client prints to stderr."""


class GoClient:
    """`slashes` is what a `/` at the end of the endpoint in the config leads to: `//api/v1/…`; `datacenter` is what its
    config calls the only one."""

    def __init__(
        self,
        url: str,
        user: str,
        password: str,
        *,
        slashes: str = "/",
        release: Release = LAST,
        datacenter: str = "local",
    ) -> None:
        self.release = release
        self.datacenter = datacenter
        parts = urlsplit(url)
        self._address = (parts.hostname or "", parts.port or 80)
        self._slashes = slashes
        self.user = user
        self._password = password
        self._token: str | None = None
        self._connection: socket.socket | None = None

    @property
    def home(self) -> str:
        return f"/pfs/{self.datacenter}/home/{self.user}"

    @property
    def token(self) -> str:
        if self._token is None:
            body = json.dumps({"password": self._password, "username": self.user}, separators=(",", ":")).encode()
            answer = self._json(self.send("POST", "api-token-auth/", body, authorized=False))
            if not isinstance(answer.get("token"), str):
                raise PanicError("interface conversion: interface {} is nil, not string")
            self._token = answer["token"]
        return self._token

    def send(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        kind: str = "application/json",
        authorized: bool = True,
    ) -> tuple[str, bytes]:
        """The status as the client compares it, `200 OK`, and the body."""
        lines = [
            f"{method} {self._slashes}{path} HTTP/1.1",
            f"Host: {self._address[0]}:{self._address[1]}",
            "User-Agent: Go-http-client/1.1",
        ]
        if body or method in ("POST", "DELETE"):
            lines.append(f"Content-Length: {len(body)}")
        if authorized:
            lines.append(f"Authorization: Token {self.token}")
        lines += [f"Content-Type: {kind}", "Accept-Encoding: gzip", "", ""]
        request = "\r\n".join(lines).encode() + body
        try:
            return self._answer(request)
        except (ConnectionError, BadStatusLine):
            self.close()  # the server has let go of a connection that rested: Go asks again by a new one
            return self._answer(request)

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _answer(self, request: bytes) -> tuple[str, bytes]:
        if self._connection is None:
            self._connection = socket.create_connection(self._address, timeout=60)
            self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection.sendall(request)
        answer = HTTPResponse(self._connection)
        answer.begin()
        found = f"{answer.status} {answer.reason}", answer.read()
        if answer.will_close:
            self.close()
        return found

    def submit(self, package: str, **asked: Any) -> None:
        """`package` is a folder here, or a path below /pfs."""
        job = {
            "name": "paddle-cluster-job",
            "jobPackage": package,
            "parallelism": 1,
            "cpu": 1,
            "gpu": 0,
            "memory": "1Gi",
            "pservers": 1,
            "pscpu": 1,
            "psmemory": "1Gi",
            "entry": "",
            "topology": "",
            "datacenter": self.datacenter,
            "passes": 1,
            "image": "",
            "registry": "",
            "faulttolerant": False,
            "maxInstance": 1,
            "minInstance": 1,
        } | asked
        job = {key: value for key, value in job.items() if key not in self.release.unsent}
        folder = Path(package)
        if folder.is_dir() and self.release.pfs is not None:
            for file in sorted(found for found in folder.rglob("*") if found.is_file()):
                remote = f"{self.home}/jobs/{job['name']}/{file.relative_to(folder)}"
                self.put_file(file.read_bytes(), str(file), remote)
        got = self.send("POST", "api/v1/jobs/", json.dumps(job, separators=(",", ":")).encode())
        if not self.release.reads_bodies:
            self._ok(got)
            return
        answer = self._json(got)
        if not isinstance(answer.get("msg"), str):
            raise PanicError("msg is not a string")
        if answer["msg"]:
            raise RefusedError(f"error submiting job: {answer['msg']}")

    def jobs(self) -> dict[str, dict[str, Any]]:
        """`get jobs`: by name, what its table shows."""
        pservers = self._json(self.send("GET", "api/v1/pservers/"))
        if not isinstance(pservers["items"], list):
            raise PanicError("items is not a list")
        ready = {item["metadata"]["name"]: item["status"] for item in pservers["items"]}
        answer = self._json(self.send("GET", "api/v1/jobs/"))
        found: dict[str, dict[str, Any]] = {}
        for item in answer["items"]:
            name = item["metadata"]["name"].rpartition("-")[0]
            of_pservers = ready.get(f"{name}-pserver", {})
            found[name] = {
                **{key: item["status"][key] for key in ("active", "succeeded", "failed")},
                "start": item["status"]["start_time"],
                "comp": item["status"]["completion_time"],
                "ps_ready": of_pservers.get("ready_replicas"),
                "ps_total": of_pservers.get("replicas"),
            }
        for name in answer.get("terminating", []):
            found[name] = {"active": "Terminating"}
        return found

    def workers(self, job: str) -> list[dict[str, Any]]:
        answer = self._json(self.send("GET", f"api/v1/workers/?{urlencode({'jobname': job})}"))
        found = []
        for item in answer["items"]:
            statuses = item["status"]["container_statuses"]
            if not statuses:
                raise PanicError("index out of range")
            terminated = statuses[0]["state"]["terminated"]
            found.append(
                {
                    "name": item["metadata"]["name"],
                    "status": item["status"]["phase"],
                    "start": item["status"]["start_time"],
                    "exit_code": None if terminated is None else terminated["exit_code"],
                    "message": None if terminated is None else terminated["message"],
                }
            )
        return found

    def quota(self) -> list[dict[str, str]]:
        found = self._json(self.send("GET", "api/v1/quota/"))["items"]
        for item in found:
            if not all(isinstance(value, str) for value in item["status"]["hard"].values()):
                raise PanicError("a hard limit is not a string")
        return [item["status"]["hard"] for item in found]

    def logs(self, job: str, n: int = 10, worker: str = "", *, slash: str = "") -> str:
        query = urlencode({"jobname": job, "n": n, "w": worker})
        answer = self._json(self.send("GET", f"api/v1/logs{slash}?{query}"))
        return str(answer["msg"])

    def kill(self, job: str) -> str:
        """The name is put between quotes as it is."""
        answer = self._json(self.send("DELETE", "api/v1/jobs/", f'{{"jobname": "{job}"}}'.encode()))
        if not isinstance(answer.get("code"), int):
            raise PanicError("code is missing")
        return "" if answer["code"] == 200 else str(answer["msg"])

    def registry(self, method: str, name: str, **secret: str) -> str:
        fields = {"name": f"pcloud-registry-{name}", "username": "", "password": "", "server": ""} | secret
        answer = self._json(self.send(method, "api/v1/registry/", json.dumps(fields).encode()))
        return str(answer["msg"])

    def registries(self) -> list[str]:
        answer = self._json(self.send("GET", "api/v1/registry/"))
        if isinstance(answer["msg"], str):
            raise PanicError("interface conversion: string is not map")
        items = [item["metadata"] for item in answer["msg"]["items"]]
        assert all(isinstance(item["creation_timestamp"], str) for item in items)
        return [item["name"].removeprefix("pcloud-registry-") for item in items]

    def put_file(self, content: bytes, local: str, remote: str) -> str:
        boundary = hashlib.sha256(content).hexdigest()[:60]
        head = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{local}"\r\n'
            "Content-Type: application/octet-stream\r\n\r\n"
        )
        body = head.encode() + content + f"\r\n--{boundary}--\r\n".encode()
        kind = f"multipart/form-data; boundary={boundary}"
        path = f"api/v1/file/?path={quote_plus(remote)}"
        return str(self._json(self.send("POST", path, body, kind=kind))["msg"])

    def get_file(self, remote: str) -> bytes:
        """Whatever comes with a 200 is kept as the file."""
        return self._ok(self.send("GET", f"api/v1/file/?path={quote_plus(remote)}"))

    def list_files(self, remote: str) -> list[str]:
        query = urlencode({"dc": self.datacenter, "path": remote})
        answer = self._json(self.send("GET", f"api/v1/filelist/?{query}"))
        if answer["msg"]:
            raise RefusedError(f"list file error: {answer['msg']}")
        found: list[str] = answer["items"]
        return found

    def ls(self, remote: str, *, recursive: bool = False) -> list[dict[str, Any]]:
        query = urlencode({"arg": remote, "method": "ls", "r": str(recursive).lower()})
        found: list[dict[str, Any]] = self._results(self.send("GET", f"{self.release.pfs}/files?{query}"))
        return found

    def stat(self, remote: str) -> dict[str, Any]:
        found: dict[str, Any] = self._results(
            self.send("GET", f"{self.release.pfs}/files?{urlencode({'method': 'stat', 'path': remote})}")
        )
        return found

    def mkdir(self, remote: str) -> Any:
        asked = {"method": "mkdir", "path": [remote]}
        return self._results(self.send("POST", f"{self.release.pfs}/files", _compact(asked)))

    def touch(self, remote: str, size: int) -> Any:
        asked = {"method": "touch", "filesize": size, "path": remote}
        return self._results(self.send("POST", f"{self.release.pfs}/files", _compact(asked)))

    def rm(self, remote: str, *, recursive: bool = False) -> Any:
        asked = {"method": "rm", "r": recursive, "path": [remote]}
        return self._results(self.send("DELETE", f"{self.release.pfs}/files", _compact(asked)))

    def chunk_meta(self, remote: str, size: int, offset: int | None = None) -> Any:
        """Without an offset as the first generation asks: of all chunks."""
        query = {"chunksize": size, "method": "GetChunkMeta", "path": remote}
        if offset is not None:
            query["offset"] = offset
        return self._results(self.send("GET", f"{self.release.pfs}/chunks?{urlencode(sorted(query.items()))}"))

    def put_chunk(self, remote: str, offset: int, content: bytes) -> None:
        name = urlencode({"chunksize": len(content), "offset": offset, "path": remote})
        head = (
            f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="chunk"; filename="{name}"\r\n'
            "Content-Type: application/octet-stream\r\n\r\n"
        )
        body = head.encode() + content + f"\r\n--{BOUNDARY}--\r\n".encode()
        kind = f"multipart/form-data; boundary={BOUNDARY}"
        self._results(self.send("POST", f"{self.release.pfs}/storage/chunks", body, kind=kind))

    def get_chunk(self, remote: str, offset: int, size: int) -> bytes:
        query = urlencode({"chunksize": size, "offset": offset, "path": remote})
        status, body = self.send("GET", f"{self.release.pfs}/storage/chunks?{query}")
        if status != "200 OK":
            raise RefusedError(f"http server returned non-200 status: {status}")
        head = re.match(
            rf'--{BOUNDARY}\r\nContent-Disposition: form-data; name="chunk"; filename="([^"]*)"\r\n'.encode(), body
        )
        if head is None:
            raise PanicError("a 200 that is not multipart")
        length = int(dict(pair.split("=") for pair in head[1].decode().split("&"))["chunksize"])
        start = body.index(b"\r\n\r\n") + 4
        content = body[start : start + length]
        if len(content) != length or body[start + length :] != f"\r\n--{BOUNDARY}--\r\n".encode():
            raise PanicError("unexpected EOF")
        return content

    def upload(self, content: bytes, remote: str, *, generation: int | None = None) -> int:
        """`cp` of a file to this path; how many chunks were sent."""
        generation = generation or self.release.generation
        size = 4 * 1024 * 1024 if generation == 2 else 2 * 1024 * 1024
        self.touch(remote, len(content))
        return (
            self._upload_second(content, remote, size) if generation == 2 else self._upload_first(content, remote, size)
        )

    def _upload_second(self, content: bytes, remote: str, size: int) -> int:
        sent = 0
        for offset in range(0, len(content) + 1, size):
            chunk = content[offset : offset + size]
            meta = self.chunk_meta(remote, size, offset)
            if not chunk:
                break
            if meta["checksum"] != hashlib.md5(chunk).hexdigest():
                self.put_chunk(remote, offset, chunk)
                sent += 1
        return sent

    def _upload_first(self, content: bytes, remote: str, size: int) -> int:
        there = {meta["offset"]: meta["checksum"] for meta in self.chunk_meta(remote, size) or []}
        sent = 0
        for offset in range(0, len(content), size):
            chunk = content[offset : offset + size]
            if there.get(offset) != hashlib.md5(chunk).hexdigest():
                self.put_chunk(remote, offset, chunk)
                sent += 1
        return sent

    def download(self, remote: str, here: bytes = b"") -> bytes:
        """`cp` of a file to here, where `here` is what the local file has already."""
        size = 4 * 1024 * 1024 if self.release.generation == 2 else 2 * 1024 * 1024
        length = self.ls(remote, recursive=True)[0]["Size"]
        found = bytearray(here.ljust(length, b"\0")[:length])
        for offset, meta in self._metas(remote, size, length):
            if meta["checksum"] != hashlib.md5(found[offset : offset + size]).hexdigest():
                found[offset : offset + meta["len"]] = self.get_chunk(remote, offset, meta["len"])
        return bytes(found)

    def _metas(self, remote: str, size: int, length: int) -> Iterator[tuple[int, dict[str, Any]]]:
        if self.release.generation == 1:
            yield from ((meta["offset"], meta) for meta in self.chunk_meta(remote, size) or [])
            return
        yield from ((offset, self.chunk_meta(remote, size, offset)) for offset in range(0, length, size))

    def _results(self, answer: tuple[str, bytes]) -> Any:
        found = self._json(answer)
        if found["err"]:
            raise RefusedError(found["err"])
        return found["results"]

    def _json(self, answer: tuple[str, bytes]) -> dict[str, Any]:
        found = json.loads(self._ok(answer))
        if not isinstance(found, dict):
            raise PanicError("not an object")
        return found

    def _ok(self, answer: tuple[str, bytes]) -> bytes:
        status, body = answer
        if status != "200 OK":
            raise RefusedError(f"server error: {status}")
        return body


def _compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
