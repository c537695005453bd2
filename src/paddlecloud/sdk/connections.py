"""A few open connections to one server, on the standard library alone: importing more would take a short command longer
than asking the server does."""

from __future__ import annotations

import hashlib
import select
import ssl
import weakref
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from threading import Lock
from typing import Self
from urllib.parse import urlsplit

_KEPT = 8
_CONNECT_SECONDS = 5.0
_READ_SECONDS = 60.0
_PIECE_BYTES = 64 * 1024


class BrokenError(Exception):
    """The server cannot be reached, or the connection broke before the answer was whole; `cause` is why."""

    def __init__(self, cause: OSError | HTTPException) -> None:
        super().__init__(getattr(cause, "strerror", None) or str(cause) or type(cause).__name__)
        self.cause = cause


class OtherCertificateError(ssl.SSLError):
    """The server shows another certificate than the one that was announced."""


class Connections:
    """Connections to `server`, opened as they are needed. Safe to share between threads."""

    def __init__(self, server: str, tls: ssl.SSLContext | None = None, fingerprint: str = "") -> None:
        parts = urlsplit(server)
        self._host, self._port, self._prefix = parts.hostname or "", parts.port, parts.path
        self._tls = tls
        self._fingerprint = fingerprint
        self._idle: list[HTTPConnection] = []
        self._lock = Lock()
        weakref.finalize(self, _close_all, self._idle)

    def request(
        self,
        method: str,
        target: str,
        *,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        seconds: float = _READ_SECONDS,
    ) -> Answer:
        """The answer as far as its headers; its body is still on its way. Each silence may last so many seconds."""
        connection = self._connected()
        try:
            connection.sock.settimeout(seconds)
            sent = {"User-Agent": "paddlecloud", **(headers or {})}
            with suppress(BrokenPipeError):  # it may hang up on a body that it has refused, and its answer says why
                connection.request(method, self._prefix + target, body or None, sent)
            return Answer(connection.getresponse(), connection, self)
        except (OSError, HTTPException) as error:
            connection.close()
            raise BrokenError(error) from error
        except BaseException:
            connection.close()
            raise

    def open(self, seconds: float) -> None:
        """Have a connection ready, if there is one within so many seconds."""
        try:
            self.take_back(self._connect(seconds))
        except (OSError, HTTPException) as error:
            raise BrokenError(error) from error

    def take_back(self, connection: HTTPConnection) -> None:
        with self._lock:
            if len(self._idle) < _KEPT:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        with self._lock:
            _close_all(self._idle)

    def _connected(self) -> HTTPConnection:
        while True:
            with self._lock:
                if not self._idle:
                    break
                connection = self._idle.pop()
            if not _is_readable(connection):
                return connection
            connection.close()  # nothing was asked: what there is to read is its end
        try:
            return self._connect()
        except (OSError, HTTPException) as error:
            raise BrokenError(error) from error

    def _connect(self, seconds: float = _CONNECT_SECONDS) -> HTTPConnection:
        if self._tls is None:
            connection = HTTPConnection(self._host, self._port, timeout=seconds)
        else:
            connection = HTTPSConnection(self._host, self._port, timeout=seconds, context=self._tls)
        connection.connect()
        if self._fingerprint and self._fingerprint != _fingerprint(connection):
            connection.close()
            raise OtherCertificateError("the certificate is not the one that was announced")
        return connection


class Answer:
    """What a server answers; the names of `headers` are in lower case.

    Read whole, it gives its connection back; closed before that, it breaks it.
    """

    def __init__(self, response: HTTPResponse, connection: HTTPConnection, pool: Connections) -> None:
        self.status = response.status
        self.reason = response.reason
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self._response = response
        self._connection = connection
        self._pool: Connections | None = pool
        self._data = b""
        self._whole = False

    @property
    def data(self) -> bytes:
        """The whole body."""
        self.read()
        return self._data

    def read(self) -> Self:
        """Wait for the whole body."""
        if not self._whole:
            self._data = b"".join(self.stream())
        return self

    def stream(self, size: int = _PIECE_BYTES) -> Iterator[bytes]:
        """Pieces as they come, of at most `size` bytes."""
        try:
            while piece := self._response.read1(size):
                yield piece
            if self._response.length:
                raise IncompleteRead(b"", self._response.length)
            self._whole = True
        except (OSError, HTTPException) as error:
            raise BrokenError(error) from error
        finally:
            self.close()

    def close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is None:
            return
        self._response.close()
        if self._whole and not self._response.will_close:
            pool.take_back(self._connection)
        else:
            self._connection.close()


def _close_all(connections: list[HTTPConnection]) -> None:
    while connections:
        connections.pop().close()


def _is_readable(connection: HTTPConnection) -> bool:
    waiting = select.poll()
    waiting.register(connection.sock, select.POLLIN)
    return bool(waiting.poll(0))


def _fingerprint(connection: HTTPConnection) -> str:
    shown = connection.sock.getpeercert(binary_form=True) if isinstance(connection.sock, ssl.SSLSocket) else None
    return hashlib.sha256(shown or b"").hexdigest()
