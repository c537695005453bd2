"""The connections themselves, to servers that behave and to servers that do not."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from paddlecloud.sdk.connections import BrokenError, Connections
from tests.unit.sdk.answering import Answer, web
from tests.waiting import wait_until

HUNG_UP = -1
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


@contextmanager
def talking(*answers: Callable[[socket.socket], None]) -> Iterator[tuple[str, list[int]]]:
    """A server that does the next of `answers` to each connection; and by which connection it was asked, each time."""
    requests: list[int] = []

    def serve() -> None:
        for number, answer in enumerate(answers):
            connection, _ = listening.accept()
            with connection:
                while asked := connection.recv(65536):
                    assert asked.startswith(b"GET /base/x HTTP/1.1\r\n")
                    requests.append(number)
                    answer(connection)
                    if answer is not says_hello:
                        break
            if answer is hangs_up_after_hello:
                requests.append(HUNG_UP)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/base", requests
        thread.join()


def says_hello(connection: socket.socket) -> None:
    connection.sendall(OK)


def hangs_up_after_hello(connection: socket.socket) -> None:
    connection.sendall(OK)


def breaks_off(connection: socket.socket) -> None:
    connection.sendall(OK[:-2])


def says_nothing(connection: socket.socket) -> None:
    connection.recv(1)  # until the client gives up


def test_a_connection_is_used_again_once_its_answer_was_read() -> None:
    with talking(says_hello) as (server, requests):
        there = Connections(server)
        assert [there.request("GET", "/x").data for _ in range(3)] == [b"hello"] * 3
        there.close()
    assert requests == [0, 0, 0]


def test_two_answers_at_once_come_by_two_connections() -> None:
    with web(lambda asked: Answer(body=asked.path.encode())) as web_server:
        there = Connections(web_server.url)
        first, second = there.request("GET", "/1"), there.request("GET", "/2")
        assert (second.data, first.data) == (b"/2", b"/1")
        there.close()


def test_a_connection_that_the_server_has_closed_is_not_used_again() -> None:
    with talking(hangs_up_after_hello, says_hello) as (server, requests):
        there = Connections(server)
        assert there.request("GET", "/x").data == b"hello"
        wait_until(lambda: HUNG_UP in requests, "the server hangs up")
        assert there.request("GET", "/x").data == b"hello"
        there.close()
    assert requests == [0, HUNG_UP, 1]


def test_an_answer_that_is_closed_before_its_end_takes_its_connection_with_it() -> None:
    with talking(says_hello, says_hello) as (server, requests):
        there = Connections(server)
        there.request("GET", "/x").close()
        assert there.request("GET", "/x").data == b"hello"
        there.close()
    assert requests == [0, 1]


def test_an_answer_that_breaks_off_is_no_answer() -> None:
    with talking(breaks_off) as (server, _), pytest.raises(BrokenError, match="2 more expected"):
        Connections(server).request("GET", "/x").read()


def test_a_silence_ends_when_its_time_is_over() -> None:
    began = time.monotonic()
    with talking(says_nothing) as (server, _), pytest.raises(BrokenError, match="timed out"):
        Connections(server).request("GET", "/x", seconds=0.1)
    assert time.monotonic() - began < 20


def test_pieces_come_as_they_are_sent() -> None:
    sent = threading.Event()

    def says_half(connection: socket.socket) -> None:
        connection.sendall(OK[:-2])
        sent.wait(10)
        connection.sendall(OK[-2:])

    with talking(says_half) as (server, _):
        pieces = Connections(server).request("GET", "/x").stream()
        assert next(pieces) == b"hel"
        sent.set()
        assert b"".join(pieces) == b"lo"


def test_what_refuses_a_body_before_its_end_is_still_heard() -> None:
    def refuse(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(1024)
            connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            connection.shutdown(socket.SHUT_WR)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=refuse, args=(listening,))
        thread.start()
        there = Connections(f"http://127.0.0.1:{listening.getsockname()[1]}")
        assert there.request("PUT", "/x", body=bytes(8 * 2**20)).read().status == 413
        thread.join()
