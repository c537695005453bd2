"""Vectors of several trainers, averaged over TCP: the least that data-parallel training needs.

A trainer sends its vector to every address and gets the mean of all trainers' vectors back. With several addresses
(pservers) each averages its own share of the numbers.
"""

from __future__ import annotations

import socket
import struct
import time

_PATIENCE = 60.0
_LENGTH = struct.Struct("!I")


def listen(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_server((host, int(port)))


def serve(server: socket.socket, trainers: int) -> int:
    """Average until the trainers hang up; the number of vectors that were averaged."""
    connections = [_accept(server) for _ in range(trainers)]
    rounds = 0
    while True:
        vectors = [_receive(connection) for connection in connections]
        if not all(vectors):
            return rounds
        mean = [sum(column) / trainers for column in zip(*vectors)]
        for connection in connections:
            _send(connection, mean)
        rounds += 1


class Group:
    """The other trainers, as one of them sees them: their mean is all it asks for."""

    def __init__(self, addresses: list[str]) -> None:
        self._connections = [_connect(address) for address in addresses]

    def mean(self, vector: list[float]) -> list[float]:
        share = len(self._connections)
        for number, connection in enumerate(self._connections):
            _send(connection, vector[number::share])
        mean = [0.0] * len(vector)
        for number, connection in enumerate(self._connections):
            part = _receive(connection)
            if not part:
                raise ConnectionError("another trainer, or the pserver, has gone: this job cannot go on without it")
            mean[number::share] = part
        return mean

    def close(self) -> None:
        for connection in self._connections:
            connection.close()


def _accept(server: socket.socket) -> socket.socket:
    connection, _ = server.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _connect(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            connection = socket.create_connection((host, int(port)), timeout=_PATIENCE)
        except ConnectionRefusedError:
            # The other side starts at the same time as we do, and may not listen yet.
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection


def _send(connection: socket.socket, vector: list[float]) -> None:
    connection.sendall(_LENGTH.pack(len(vector)) + struct.pack(f"!{len(vector)}d", *vector))


def _receive(connection: socket.socket) -> list[float]:
    """The next vector; empty when the other side has hung up."""
    try:
        head = _receive_exactly(connection, _LENGTH.size)
        (length,) = _LENGTH.unpack(head)
        return list(struct.unpack(f"!{length}d", _receive_exactly(connection, 8 * length)))
    except (EOFError, ConnectionResetError):
        return []


def _receive_exactly(connection: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        piece = connection.recv(size - len(received))
        if not piece:
            raise EOFError
        received += piece
    return received
