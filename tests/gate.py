"""A door between a server and a store on loopback: it counts what passes, and can be shut after so many bytes."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Self
from urllib.parse import urlsplit

_PIECE_BYTES = 16384


class Gate:
    def __init__(self, endpoint: str) -> None:
        target = urlsplit(endpoint)
        self._target = (target.hostname or "", target.port or 0)
        self._changed = threading.Condition()
        self._allowed: int | None = None
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._port = self._listening.getsockname()[1]
        self.endpoint = f"http://127.0.0.1:{self._port}"
        self.passed_bytes = 0

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.go_away()

    def go_away(self) -> None:
        """Nobody listens any more."""
        self.open()
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)  # wakes who accepts, who would keep the port
        self._listening.close()

    def come_back(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", self._port))
        threading.Thread(target=self._accept, daemon=True).start()

    def shut_after(self, more_bytes: int) -> None:
        with self._changed:
            self._allowed = self.passed_bytes + more_bytes

    def open(self) -> None:
        with self._changed:
            self._allowed = None
            self._changed.notify_all()

    @property
    def is_shut(self) -> bool:
        return self._allowed is not None and self.passed_bytes >= self._allowed

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                threading.Thread(target=self._connect, args=(near,), daemon=True).start()

    def _connect(self, near: socket.socket) -> None:
        with near, socket.create_connection(self._target) as far:
            back = threading.Thread(target=self._pump, args=(far, near), daemon=True)
            back.start()
            self._pump(near, far)
            back.join()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(_PIECE_BYTES):
                with self._changed:
                    self._changed.wait_for(lambda: not self.is_shut)
                    self.passed_bytes += len(piece)
                sink.sendall(piece)
        for one in (source, sink):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
