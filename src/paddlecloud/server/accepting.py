"""Accepts connections, and limits how many are open in total and from one client address.

Invariant: half of the process's file descriptors stay free for its own files. A client that only connects, and sends
neither a handshake nor a request, must not stop the scheduler from opening a file or other clients from being served.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import resource
import socket
import ssl
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from paddlecloud.server.agreement import is_loopback
from paddlecloud.server.rates import network

log = logging.getLogger(__name__)

ADDRESS, TOTAL = "address", "total"  # which limit was reached
DEFAULT_OF_ADDRESS = 512
OPEN_FILES = 65536

_LOOPBACK = "this machine"
_ACCEPTS_AT_ONCE = 64  # then it is the turn of connections that are open
_LOG_SECONDS = 60.0
_RETRY_SECONDS = 0.5
_NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_REFUSAL = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 30\r\nContent-Length: 0\r\n\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """How many connections may be open at once; `local` is for each address of this machine, `all_local` for all."""

    total: int
    address: int
    local: int
    all_local: int


def connection_limits(address: int | None) -> ConnectionLimits:
    """The limits of this process; `address` is the setting, 0 for no limit, None for the default."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = OPEN_FILES if soft == resource.RLIM_INFINITY else soft
    # A connection may hold a file open too, such as a download.
    total = max(files // 2, 1)
    quarter = max(total // 4, 1)
    if address is None:
        address = min(DEFAULT_OF_ADDRESS, quarter)
    # Tasks of many users, and a proxy, have an address of this machine. Other machines keep a quarter for themselves.
    return ConnectionLimits(
        total=total,
        address=min(address or total, total),
        local=max(quarter, min(address, total)),
        all_local=max(total - quarter, 1),
    )


class Connections:
    """Counts open connections by client address. Belongs to the event loop: it has no lock."""

    def __init__(self, limits: ConnectionLimits, on_refusal: Callable[[str], None] = lambda _: None) -> None:
        self.limits = limits
        self.count = 0
        self._on_refusal = on_refusal
        self._of: Counter[str] = Counter()
        self._refused_since_log = 0
        self._logged_at: float | None = None

    def enter(self, address: str, now: float) -> Callable[[], None] | None:
        """Count one more; returns the function that ends it, or None if a limit is reached."""
        keys = _keys(address)
        if reached := self._reached(keys):
            self._refuse(keys[0], reached, now)
            return None
        self.count += 1
        self._of.update(keys)
        is_open = True

        def leave() -> None:
            nonlocal is_open
            if is_open:
                is_open = False
                self._leave(keys)

        return leave

    def _leave(self, keys: tuple[str, ...]) -> None:
        self.count -= 1
        for key in keys:
            self._of[key] -= 1
            if not self._of[key]:
                del self._of[key]

    def _reached(self, keys: tuple[str, ...]) -> str:
        limits = self.limits
        own = limits.local if _LOOPBACK in keys else limits.address
        if self._of[keys[0]] >= own or (self._of[_LOOPBACK] >= limits.all_local and _LOOPBACK in keys):
            return ADDRESS
        return TOTAL if self.count >= limits.total else ""

    def _refuse(self, address: str, reached: str, now: float) -> None:
        self._on_refusal(reached)
        self._refused_since_log += 1
        if self._logged_at is not None and now - self._logged_at < _LOG_SECONDS:
            return
        most, held = max(self._of.items(), key=lambda item: (item[0] != _LOOPBACK, item[1]))
        log.warning(
            "refused a connection from %s, which has %d open, by the limit for %s; %d are open, %d of them from %s; "
            "%d refused since the last such line",
            *(address, self._of[address], "one address (rates.connections)" if reached == ADDRESS else "all addresses"),
            *(self.count, held, most, self._refused_since_log),
        )
        self._logged_at = now
        self._refused_since_log = 0


class Listener:
    """Accepts from one socket. `make` gets the function that a connection calls when it is lost.

    The loop's own server accepts before it asks anybody, and tells nothing of a handshake that never ends.
    """

    def __init__(
        self,
        listening: socket.socket,
        make: Callable[[Callable[[], None]], asyncio.Protocol],
        connections: Connections,
        *,
        context: ssl.SSLContext | None = None,
        handshake_seconds: float | None = None,
        shutdown_seconds: float | None = None,
    ) -> None:
        self._listening = listening
        self._make = make
        self._connections = connections
        self._context = context
        self._handshake_seconds = handshake_seconds if context else None
        self._shutdown_seconds = shutdown_seconds if context else None
        self._loop = asyncio.get_running_loop()
        self._opening: set[asyncio.Task[None]] = set()
        self._closed = False
        self._retry: asyncio.TimerHandle | None = None
        listening.setblocking(False)
        self._resume()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._pause()
        for task in self._opening:
            task.cancel()

    async def wait_closed(self) -> None:
        """Open connections are waited for by whoever counts them."""

    def _resume(self) -> None:
        if not self._closed:
            self._loop.add_reader(self._listening, self._accept)

    def _pause(self) -> None:
        self._loop.remove_reader(self._listening)
        if self._retry is not None:
            self._retry.cancel()

    def _accept(self) -> None:
        for _ in range(_ACCEPTS_AT_ONCE):
            try:
                accepted, where = self._listening.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionError:
                continue
            except OSError as error:
                if error.errno not in _NO_DESCRIPTORS:
                    raise
                log.error("no connection can be accepted for a moment: %s", error.strerror)
                self._pause()
                self._retry = self._loop.call_later(_RETRY_SECONDS, self._resume)
                return
            leave = self._connections.enter(str(where[0]), self._loop.time())
            if leave is None:
                self._refuse(accepted)
            else:
                opening = self._loop.create_task(self._open(accepted, leave))
                self._opening.add(opening)
                opening.add_done_callback(self._opening.discard)

    def _refuse(self, accepted: socket.socket) -> None:
        with accepted, contextlib.suppress(OSError):
            if self._context is None:
                accepted.send(_REFUSAL, socket.MSG_DONTWAIT)

    async def _open(self, accepted: socket.socket, leave: Callable[[], None]) -> None:
        try:
            await self._loop.connect_accepted_socket(
                lambda: self._make(leave),
                accepted,
                ssl=self._context,
                ssl_handshake_timeout=self._handshake_seconds,
                ssl_shutdown_timeout=self._shutdown_seconds,
            )
        except BaseException as error:
            accepted.close()
            leave()
            # Clients fail handshakes, and a closing server cancels them: neither is a fault of the server's.
            if not isinstance(error, OSError | asyncio.CancelledError):
                raise


def _keys(address: str) -> tuple[str, ...]:
    """What a connection counts for: its address, and this machine if it is from here."""
    near = network(address)
    return (near, _LOOPBACK) if is_loopback(address.partition("%")[0]) else (near,)
