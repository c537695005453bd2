"""Carries a task's log, files and end from a node to the server, by HTTP; does nothing else.

Everything may be sent again: the server says how much it has. While it is away the node's disk keeps what is to be
sent, and the task runs on; its end is told when all before it has come, or when waiting for that has lasted too long.
"""

from __future__ import annotations

import http.client
import json
import os
import ssl
import stat
import time
from typing import Any, Callable, Mapping
from urllib.parse import quote, urlencode, urlsplit

_PIECE_BYTES = 4 << 20
_TIMEOUT_SECONDS = 30.0
_LONGEST_PAUSE_SECONDS = 30.0
_QUIET_SECONDS = 5.0  # a file that was written to so lately may not be whole


class RefusedError(Exception):
    """The server has answered that it does not want this."""


class AwayError(Exception):
    """The server does not answer."""


class Server:
    """The server as one attempt of a job sees it."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._url = urlsplit(environ["PADDLECLOUD_SERVER"])
        self._job = environ["PADDLECLOUD_JOB"]
        self._token = environ["PADDLECLOUD_TOKEN"]
        certificate = environ.get("PADDLECLOUD_CERTIFICATE")
        self._trust = ssl.create_default_context(cadata=certificate) if self._url.scheme == "https" else None
        self._connection: http.client.HTTPConnection | None = None

    def ask(self, method: str, path: str, query: Mapping[str, Any] | None = None, body: bytes = b"") -> bytes:
        """What it answers, at once or not at all."""
        return self.open(method, path, query, body).read()

    def open(
        self, method: str, path: str, query: Mapping[str, Any] | None = None, body: bytes = b""
    ) -> http.client.HTTPResponse:
        target = f"{self._url.path.rstrip('/')}/v1/jobs/{quote(self._job)}/{path}"
        target += f"?{urlencode(query)}" if query else ""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/octet-stream"}
        try:
            connection = self._connected()
            connection.request(method, target, body, headers)
            answer = connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            self._connection = None
            raise AwayError(str(error) or type(error).__name__) from None
        if answer.status >= 500 or answer.status == 429:
            answer.read()
            raise AwayError(f"it answered {answer.status}")
        if answer.status >= 400:
            raise RefusedError(_words(answer.read()) or f"it answered {answer.status}")
        return answer

    def insist(self, until: float, act: Callable[[], Any]) -> Any:
        """Try until it goes through, or raise AwayError when the time is over."""
        pause = 0.5
        while True:
            try:
                return act()
            except AwayError:
                if time.monotonic() + pause > until:
                    raise
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _connected(self) -> http.client.HTTPConnection:
        if self._connection is None:
            host, port = self._url.hostname or "", self._url.port
            if self._trust is not None:
                self._connection = http.client.HTTPSConnection(
                    host, port, timeout=_TIMEOUT_SECONDS, context=self._trust
                )
            else:
                self._connection = http.client.HTTPConnection(host, port, timeout=_TIMEOUT_SECONDS)
        return self._connection


class LogCarrier:
    """The log of one task: what the node has of it, after what the server has of earlier attempts."""

    def __init__(self, server: Server, task: str, path: str) -> None:
        self._server = server
        self._task = task
        self._path = path
        self._base: int | None = None
        self._sent = 0

    def carry(self) -> None:
        """Send all that is new."""
        while piece := self._next_piece():
            if self._base is None:
                self._base = self._put(0, b"")
            there = self._put(self._base + self._sent, piece)
            self._sent = there - self._base

    def _next_piece(self) -> bytes:
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return b""
        try:
            return os.pread(fd, _PIECE_BYTES, self._sent)
        finally:
            os.close(fd)

    def _put(self, offset: int, piece: bytes) -> int:
        said = self._server.ask("PUT", f"tasks/{quote(self._task)}/log", {"offset": offset}, piece)
        return int(json.loads(said)["length"])


class FileCarrier:
    """The files that a task leaves below some folders of the job's results."""

    def __init__(self, server: Server, task: str, results: str, folders: list[str]) -> None:
        self._server = server
        self._task = task
        self._results = results
        self._folders = folders
        self._sent: dict[str, tuple[int, int]] = {}  # path -> size and time of what was sent

    def carry(self, *, settled: bool, now: float) -> None:
        """Send what is new or has changed; not `settled`: what is being written is left for later."""
        for path, found in self._found():
            seen = (found.st_size, found.st_mtime_ns)
            if self._sent.get(path) == seen or (not settled and now - found.st_mtime < _QUIET_SECONDS):
                continue
            if self._send(path, bool(found.st_mode & stat.S_IXUSR)):
                self._sent[path] = seen

    def _found(self) -> list[tuple[str, os.stat_result]]:
        found = []
        for folder in self._folders:
            for above, _, names in os.walk(folder):
                for name in names:
                    path = os.path.join(above, name)
                    try:
                        about = os.lstat(path)
                    except FileNotFoundError:
                        continue
                    if stat.S_ISREG(about.st_mode):
                        found.append((path, about))
        return found

    def _send(self, path: str, executable: bool) -> bool:
        """Whether it is there now, whole; it may be gone, or cut meanwhile."""
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            size, offset = os.fstat(fd).st_size, 0
            while True:
                piece = os.pread(fd, min(_PIECE_BYTES, size - offset), offset)
                last = offset + len(piece) == size
                if not piece and not last:
                    return False
                self._put(path, offset, piece, last, executable)
                offset += len(piece)
                if last:
                    return True
        finally:
            os.close(fd)

    def _put(self, path: str, offset: int, piece: bytes, last: bool, executable: bool) -> None:
        query = {
            "path": os.path.relpath(path, self._results),
            "offset": offset,
            "last": str(last).lower(),
            "executable": str(executable).lower(),
        }
        self._server.ask("PUT", f"tasks/{quote(self._task)}/output", query, piece)


def _words(body: bytes) -> str:
    try:
        said = json.loads(body)
        return str(said.get("detail") or said.get("message") or "")
    except (ValueError, AttributeError):
        return ""
