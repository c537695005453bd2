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
from typing import Any, Callable, Iterator, Mapping, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from paddlecloud.runtime import below
from paddlecloud.runtime.tasklog import append_line

T = TypeVar("T")

_PIECE_BYTES = 4 << 20
_TIMEOUT_SECONDS = 30.0
_LONGEST_PAUSE_SECONDS = 30.0
_QUIET_SECONDS = 5.0  # a file that was written to so lately may not be whole
_LEVELS = 128  # deeper ones no server takes
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PARTIAL_CHAIN = 0x80000  # ssl.VERIFY_X509_PARTIAL_CHAIN, which Python names since 3.10
_ESCAPED = 0xEF00


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
        certificate = environ.get("PADDLECLOUD_CERTIFICATE", "")
        self._trust = _trust(certificate) if self._url.scheme == "https" else None
        self._connection: http.client.HTTPConnection | None = None

    def ask(self, method: str, path: str, query: Mapping[str, Any] | None = None, body: bytes = b"") -> bytes:
        """What it answers, at once or not at all."""
        return self.take(method, path, lambda answer: answer.read(), query, body)

    def ask_json(self, method: str, path: str, query: Mapping[str, Any] | None = None, body: bytes = b"") -> Any:
        try:
            return json.loads(self.ask(method, path, query, body))
        except ValueError:  # someone else has answered, such as a proxy
            raise AwayError("what it answered makes no sense") from None

    def take(
        self,
        method: str,
        path: str,
        read: Callable[[http.client.HTTPResponse], T],
        query: Mapping[str, Any] | None = None,
        body: bytes = b"",
    ) -> T:
        """What `read` makes of the answer, which it may read bit by bit; an OSError of it is an answer in part."""
        target = f"{self._url.path.rstrip('/')}/v1/jobs/{quote(self._job)}/{path}"
        target += f"?{urlencode(query)}" if query else ""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/octet-stream"}
        try:
            connection = self._connected()
            connection.request(method, target, body, headers)
            answer = connection.getresponse()
            if answer.status < 400:
                made = read(answer)
                answer.read()  # else nothing more can be asked by this connection
                return made
            said = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.hang_up()
            raise AwayError(str(error) or type(error).__name__) from None
        if answer.status >= 500 or answer.status == 429:
            raise AwayError(f"it answered {answer.status}")
        raise RefusedError(_words(said) or f"it answered {answer.status}")

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

    def hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class LogCarrier:
    """The log of one task: what the node has of it, after what the server has of earlier attempts."""

    def __init__(self, server: Server, task: str, results: str, path: str) -> None:
        self._server = server
        self._task = task
        # Opened before the task runs: later there may be a link to the log of another's.
        self._fd = below.open_to_append(results, path)
        self._base: int | None = None
        self._sent = 0

    def note(self, text: str) -> None:
        """Add a line of our own."""
        append_line(self._fd, f"paddlecloud: {text}")

    def carry(self) -> None:
        """Send all that is new."""
        while piece := os.pread(self._fd, _PIECE_BYTES, self._sent):
            if self._base is None:
                self._base = self._put(0, b"")
            there = self._put(self._base + self._sent, piece)
            self._sent = there - self._base

    def _put(self, offset: int, piece: bytes) -> int:
        said = self._server.ask_json("PUT", f"tasks/{quote(self._task)}/log", {"offset": offset}, piece)
        return int(said["length"])


class FileCarrier:
    """The files that a task leaves below some folders of the job's results.

    The task may change these folders meanwhile, so no link in them is followed: it may lead to what is another's.
    """

    def __init__(self, server: Server, task: str, results: str, folders: list[str]) -> None:
        self._server = server
        self._task = task
        self._results = results
        self._folders = folders
        self._done: dict[str, tuple[int, int]] = {}  # path -> size and time of what was sent, or refused
        self.refused: list[str] = []  # what the server did not take, and why

    def carry(self, *, settled: bool, now: float) -> None:
        """Send what is new or has changed; not `settled`: what is being written is left for later."""
        for path, folder in self._found():
            try:
                fd = os.open(os.path.basename(path), _READ, dir_fd=folder)
            except OSError:
                continue  # gone meanwhile, or a link
            try:
                found = os.fstat(fd)
                seen = (found.st_size, found.st_mtime_ns)
                changing = not settled and now - found.st_mtime < _QUIET_SECONDS
                if not stat.S_ISREG(found.st_mode) or changing or self._done.get(path) == seen:
                    continue
                if self._send(fd, path, found):
                    self._done[path] = seen
            except RefusedError as error:
                self._done[path] = seen
                self.refused.append(f"{text_of(os.fsencode(path))} was not taken: {error}")
            finally:
                os.close(fd)

    def _found(self) -> Iterator[tuple[str, int]]:
        """Every name below the folders, as a path of the results, and the folder that it is in."""
        for folder in self._folders:
            try:
                top = below.open_folder(self._results, folder)
            except OSError:
                continue
            try:
                for above, names, files, here in os.fwalk(".", dir_fd=top):
                    if above.count("/") >= _LEVELS:
                        names.clear()
                    start = os.path.normpath(os.path.join(os.path.relpath(folder, self._results), above))
                    yield from ((f"{start}/{name}", here) for name in files)
            finally:
                os.close(top)

    def _send(self, fd: int, path: str, found: os.stat_result) -> bool:
        """Whether it is there now, whole; it may be cut meanwhile."""
        size, offset = found.st_size, 0
        while True:
            piece = os.pread(fd, min(_PIECE_BYTES, size - offset), offset)
            last = offset + len(piece) == size
            if not piece and not last:
                return False
            self._put(path, offset, piece, last, bool(found.st_mode & stat.S_IXUSR))
            offset += len(piece)
            if last:
                return True

    def _put(self, path: str, offset: int, piece: bytes, last: bool, executable: bool) -> None:
        query = {
            "path": text_of(os.fsencode(path)),
            "offset": offset,
            "last": str(last).lower(),
            "executable": str(executable).lower(),
        }
        self._server.ask("PUT", f"tasks/{quote(self._task)}/output", query, piece)


def text_of(raw: bytes) -> str:
    """A path as the server understands it, whatever bytes it has: what `paths.text_of` of the server makes of it."""

    def escape(character: str) -> str:
        if "\udc80" <= character <= "\udcff" or "\uef80" <= character <= "\uefff":
            return "".join(chr(_ESCAPED + byte) for byte in character.encode("utf-8", "surrogateescape"))
        return character

    return "".join(map(escape, raw.decode("utf-8", "surrogateescape")))


def _trust(certificate: str) -> ssl.SSLContext:
    """Those that all trust, and this one, whose chain may come without its root."""
    trust = ssl.create_default_context()
    if certificate:
        trust.load_verify_locations(cadata=certificate)
        trust.verify_flags |= _PARTIAL_CHAIN
    return trust


def _words(body: bytes) -> str:
    try:
        said = json.loads(body)
        return str(said.get("detail") or said.get("message") or "")
    except (ValueError, AttributeError):
        return ""
