"""Which process holds the client's end of a connection, and which connection it was."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from paddlecloud.server import inet_diag, peers
from paddlecloud.server.peers import Address, End, Peers

FAMILIES = [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
LOOKUPS = [Peers().end, peers.listed]
NO_TASKS: Callable[[], list[int]] = list
OPENED: list[str] = []

Lookup = Callable[[Address, Address], End | None]


@contextmanager
def connected(host: str = "127.0.0.1", family: int = socket.AF_INET) -> Iterator[tuple[int, socket.socket]]:
    """The pid of a child that holds a connection until it reads something, and the server's end."""
    with socket.create_server((host, 0), family=family) as listening:
        port = listening.getsockname()[1]
        script = f"import socket; s = socket.create_connection(({host!r}, {port})); s.recv(1)"
        with subprocess.Popen([sys.executable, "-c", script]) as child, listening.accept()[0] as line:
            yield child.pid, line
            line.sendall(b"x")


def ends(line: socket.socket) -> tuple[Address, Address]:
    """The addresses of the client and the server."""
    return line.getpeername()[:2], line.getsockname()[:2]


@pytest.mark.parametrize("lookup", LOOKUPS)
@pytest.mark.parametrize(("family", "host"), FAMILIES)
def test_a_connection_is_known_by_the_process_that_holds_it(lookup: Lookup, family: int, host: str) -> None:
    with connected(host, family) as (child, line):
        client, server = ends(line)
        found = lookup(client, server)
        assert found is not None
        assert Peers().is_below(found, "ann", [os.getpid()])
        assert not Peers().is_below(found, "ann", [child])
        assert not Peers().is_below(found, "ann", [])
        assert lookup((client[0], 1), server) is None
        # The server's own end is another socket.
        mirrored = lookup(server, client)
        assert mirrored is not None
        assert mirrored.inode == os.fstat(line.fileno()).st_ino != found.inode


def test_a_client_of_ipv4_is_found_from_a_server_of_both() -> None:
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as listening:
        with socket.create_connection(("127.0.0.1", listening.getsockname()[1])) as client:
            with listening.accept()[0] as line:
                assert line.getpeername()[0] == "::ffff:127.0.0.1"
                found = Peers().end(*ends(line))
                assert found is not None
                assert found.inode == os.fstat(client.fileno()).st_ino


@pytest.mark.parametrize("lookup", LOOKUPS)
@pytest.mark.parametrize("close", [lambda line: line.shutdown(socket.SHUT_WR), lambda line: line.close()])
def test_an_end_that_is_closing_is_not_found(lookup: Lookup, close: Callable[[socket.socket], None]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        with socket.create_connection(listening.getsockname()) as client, listening.accept()[0] as line:
            client_address, server = ends(line)
            assert lookup(client_address, server) is not None
            close(client)
            assert lookup(client_address, server) is None


def test_a_listening_socket_is_not_taken_for_a_connection() -> None:
    """The kernel falls back to it where there is no connection."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        assert inet_diag.find(listening.getsockname(), ("127.0.0.1", 9)) is not None
        assert Peers().end(listening.getsockname(), ("127.0.0.1", 9)) is None


def test_the_next_connection_of_a_port_has_another_cookie() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        cookies = []
        local = ("127.0.0.1", 0)
        for _ in range(2):
            with socket.socket() as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                client.bind(local)
                client.connect(listening.getsockname())
                local = client.getsockname()
                with listening.accept()[0] as line:
                    found = Peers().end(*ends(line))
                    assert found is not None
                    cookies.append(found.cookie)
        assert len(set(cookies)) == 2


def test_a_known_connection_is_not_looked_for_again_and_only_under_the_same_name() -> None:
    known = Peers()
    with connected() as (_, line):
        found = known.end(*ends(line))
        assert found is not None
        assert known.is_below(found, "ann", [os.getpid()])
        assert known.is_below(found, "ann", [])
        assert not known.is_below(found, "bob", [])
        assert not known.is_below(found._replace(cookie=None), "ann", [])


def test_who_is_outside_of_all_tasks_is_told_by_a_process_that_holds_the_connection() -> None:
    with connected() as (child, line):
        found = Peers().end(*ends(line))
        assert found is not None
        assert Peers().is_outside(found, NO_TASKS)
        assert Peers().is_outside(found, lambda: [child])  # it is the supervisor itself, not below it
        assert not Peers().is_outside(found, lambda: [os.getpid()])
        known = Peers()
        assert not known.is_known_outside(found)
        assert known.is_outside(found, NO_TASKS)
        assert known.is_known_outside(found)


def test_a_connection_that_waits_in_the_queue_of_a_socket_is_outside_of_nothing() -> None:
    """A task can hide its connection so while it stays open: no process holds it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = socket.create_connection(listening.getsockname())
        near, far = socket.socketpair()
        with listening.accept()[0] as line, near, far:
            found = Peers().end(*ends(line))
            assert found is not None
            assert Peers().is_outside(found, NO_TASKS)
            socket.send_fds(near, [b"x"], [client.fileno()])
            client.close()
            assert Peers().end(*ends(line)) == found
            assert not Peers().is_outside(found, NO_TASKS)


def test_a_look_up_reads_no_list_of_all_connections() -> None:
    sys.addaudithook(lambda event, args: OPENED.append(str(args[0])) if event == "open" else None)
    with connected() as (_, line):
        assert inet_diag.is_available()
        OPENED.clear()
        found = Peers().end(*ends(line))
        assert found is not None
        assert OPENED == []
        peers.listed(*ends(line))
        assert "/proc/net/tcp" in OPENED
