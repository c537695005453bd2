"""The port: taken before anything else is done, announced when it answers, and given back within seconds.

Whoever connects is a stranger until the head of a request has come, so that head, and the handshake before it, may
take little memory and time.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import resource
import signal
import socket
from collections.abc import Callable, Iterator
from types import FrameType

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from paddlecloud.model.errors import ConfigError
from paddlecloud.server.accepting import OPEN_FILES, Connections, Listener, connection_limits
from paddlecloud.server.certificate import Certificate
from paddlecloud.server.changes import Changes
from paddlecloud.server.services import Services
from paddlecloud.server.settings import DEFAULT_PORT, ServerSettings

_SHUTDOWN_SECONDS = 5
# Browsers use https alone for a year after one visit (RFC 6797). Other hosts of the domain are not ours to decide for.
_ONLY_ENCRYPTED = [("Strict-Transport-Security", "max-age=31536000")]
_KEEP_ALIVE_SECONDS = 75  # longer than clients wait between two calls
_BACKLOG = 2048
_HEAD_BYTES = 256 * 1024
_HEAD_SECONDS = 30.0
_HANDSHAKE_SECONDS = 10.0
_GOODBYE_SECONDS = 0.5  # within the time to shut down: a client that is not reading says none
_TICKS_BETWEEN_LOOKS = 20  # of uvicorn's ten in a second
_TCP_ESTABLISHED = 1  # the first byte of what the kernel says of a connection, TCP_INFO in tcp(7)


class Server(uvicorn.Server):
    """Says when it listens, takes up a renewed certificate, and ends every stream as soon as it is asked to end."""

    def __init__(
        self,
        app: FastAPI,
        *,
        certificate: Certificate | None = None,
        on_start: Callable[[], None] = lambda: None,
        handshake_seconds: float = _HANDSHAKE_SECONDS,
        head_seconds: float = _HEAD_SECONDS,
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=Connection,
                loop="uvloop",
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                headers=_ONLY_ENCRYPTED if certificate else [],
                timeout_keep_alive=_KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
            )
        )
        services: Services = app.state.services
        self._changes: Changes = services.changes
        self._connections = Connections(
            connection_limits(services.settings.rates.connections), services.metrics.refuse_connection
        )
        services.metrics.gauge("paddlecloud_connections", "Connections that are open.", lambda: self._connections.count)
        self._certificate = certificate
        self._on_start = on_start
        self._handshake_seconds = handshake_seconds
        self._head_seconds = head_seconds

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup([])
        for listening in sockets or []:
            self.servers.append(self._accept_from(listening))  # type: ignore[arg-type]
        self._on_start()

    async def on_tick(self, counter: int) -> bool:
        # First, since it sets the headers of all answers, and a request may already be there.
        ends = await super().on_tick(counter)
        if self._certificate is not None and counter % _TICKS_BETWEEN_LOOKS == 0:
            await asyncio.to_thread(self._certificate.renew)
        return ends

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._changes.close()
        super().handle_exit(sig, frame)

    def _accept_from(self, listening: socket.socket) -> Listener:
        return Listener(
            listening,
            self._connection,
            self._connections,
            context=self._certificate.context if self._certificate else None,
            handshake_seconds=self._handshake_seconds,
            shutdown_seconds=_GOODBYE_SECONDS,
        )

    def _connection(self, on_lost: Callable[[], None]) -> Connection:
        made = Connection(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)
        made.head_seconds = self._head_seconds
        made.on_lost = on_lost
        return made


class Connection(HttpToolsProtocol):
    """Ends a connection whose request line and headers are too long, or too long in coming; uvicorn takes any.

    A request finds in its state whether the connection that it came by is established.
    """

    _head_bytes = 0
    _in_head = False
    _deadline: asyncio.TimerHandle | None = None
    head_seconds = _HEAD_SECONDS
    on_lost: Callable[[], None]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_of_head()
        super().connection_lost(exc)
        self.on_lost()

    def data_received(self, data: bytes) -> None:
        began_before = self._in_head
        super().data_received(data)
        if began_before and self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > _HEAD_BYTES:
                self.send_400_response("The request line and headers are too long.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["state"]["is_established"] = self.is_established
        self._wait_for_head()
        self._in_head = True

    def on_headers_complete(self) -> None:
        self._end_of_head()
        super().on_headers_complete()

    def is_established(self) -> bool:
        """Whether neither side has begun to close it. For the event loop's thread: in another, the number of the socket
        may have gone to the next connection by the time that it is asked."""
        if self.transport.is_closing():
            return False
        line: socket.socket = self.transport.get_extra_info("socket")
        return line.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == _TCP_ESTABLISHED

    def _wait_for_head(self) -> None:
        self._end_of_head()
        self._deadline = self.loop.call_later(self.head_seconds, self.timeout_keep_alive_handler)

    def _end_of_head(self) -> None:
        self._in_head = False
        self._head_bytes = 0
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


@contextlib.contextmanager
def listen(server: ServerSettings, *, embedded: bool, again: int = 0) -> Iterator[socket.socket]:
    """The socket to serve from. It listens before anything else is done, so that a taken port changes nothing.

    An embedded server whose usual port is taken listens at the port that it had the last time, `again`, or at any:
    who follows a log goes on at the address that they know.
    """
    try:
        listening = _listen(server.host, server.port)
    except OSError as error:
        if not (embedded and server.port == DEFAULT_PORT and error.errno == errno.EADDRINUSE):
            raise _cannot_listen(server, error) from None
        listening = _listen_anywhere(server.host, again)
    with listening:
        yield listening


def address(listening: socket.socket, *, encrypted: bool = False) -> str:
    host, port = listening.getsockname()[:2]
    scheme = "https" if encrypted else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def allow_open_files() -> None:
    """As many connections as the system lets us have. Not above a bound: tasks inherit the number, and old programs
    close every file below it, one by one, when they start."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@contextlib.contextmanager
def quiet_signals() -> Iterator[None]:
    """uvicorn raises the signals that ended it once more; by then they have done their work."""
    before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def _listen_anywhere(host: str, preferred: int) -> socket.socket:
    try:
        return _listen(host, preferred)
    except OSError:
        return _listen(host, 0)


def _listen(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[
        0
    ]
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(where)
        listening.listen(_BACKLOG)
    except BaseException:
        listening.close()
        raise
    return listening


def _cannot_listen(server: ServerSettings, error: OSError) -> ConfigError:
    if error.errno == errno.EADDRINUSE:
        return ConfigError(
            f"port {server.port} on {server.host} is taken by another program: end that one, or set server.port to "
            "another (0 takes a free one)",
            field="server.port",
        )
    return ConfigError(
        f"cannot listen on {server.host} port {server.port}: {error.strerror}; change server.host or server.port",
        field="server.host",
    )
