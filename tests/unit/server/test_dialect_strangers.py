"""What those whom nobody knows may cost by the old addresses: wrong tokens, and readers of published files."""

from __future__ import annotations

import asyncio
import hashlib
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from paddlecloud.model.audit import Action
from paddlecloud.model.errors import UnauthenticatedError
from paddlecloud.model.pfs import Who
from paddlecloud.server.app import utc_now
from paddlecloud.server.audit import Origin
from paddlecloud.server.old_tokens import OldTokens
from paddlecloud.server.publications import READERS
from tests.unit.server.running import Running, running
from tests.waiting import wait_until

HOME = "/pfs/local/home/ann"


def by_token(server: Running, token: str) -> int:
    return server.ask("GET", "/api/v1/token2user/", headers={"Authorization": f"Token {token}"}).status


@contextmanager
def asked_of_records(threads: list[str]) -> Iterator[None]:
    """The threads that ask the records within, once for each question."""

    def note(*_: object) -> None:
        threads.append(threading.current_thread().name)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield
    finally:
        event.remove(Engine, "before_cursor_execute", note)


def test_a_wrong_token_asks_the_records_nothing_and_a_right_one_never_in_the_event_loop(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with running(tmp_path_factory.mktemp("tokens") / "data") as server:
        for number in range(50):
            server.add_user(f"user{number}")
        token = server.services.old_tokens.token_of(server.user("ann"))
        threads: list[str] = []
        with asked_of_records(threads):
            assert {by_token(server, f"{number:040d}") for number in range(20)} == {401}
            assert by_token(server, token) == 200
        assert "server" not in threads, "the event loop's own"
        assert len(threads) < 60, len(threads)


def test_wrong_tokens_are_counted_by_address_and_right_ones_go_on(server: Running) -> None:
    users = server.users
    token = server.services.old_tokens.token_of(server.user("bob"))
    statuses = [by_token(server, f"{number:040d}") for number in range(130)]
    assert set(statuses[:50]) == {401}
    assert statuses[-1] == 429
    assert by_token(server, token) == 200
    users.end_epoch("bob")
    assert by_token(server, token) == 429
    assert by_token(server, server.services.old_tokens.token_of(server.user("bob"))) == 200


def test_a_token_from_before_the_start_comes_in_and_all_are_made_once(server: Running) -> None:
    made: list[str] = []

    def sign(text: str, purpose: str) -> str:
        made.append(text)
        return hashlib.sha256(f"{purpose} {text}".encode()).hexdigest()

    def start() -> OldTokens:
        return OldTokens(server.users, sign, server.services.logins)

    async def whose(tokens: OldTokens, token: str) -> str:
        try:
            return (await tokens.identify(f"Token {token}", Origin(address="192.0.2.1"), utc_now())).user.name
        except UnauthenticatedError:
            return ""

    async def story() -> None:
        token, disabled = (start().token_of(server.user(name)) for name in ("ann", "bob"))
        server.users.change("bob", disabled=True)
        tokens = start()
        made.clear()
        assert [await whose(tokens, sent) for sent in ("wrong", token, disabled, "wrong too")] == ["", "ann", "", ""]
        assert len(made) <= len(server.users.list()) + 2, made
        server.users.change("bob", disabled=False)
        assert await whose(tokens, disabled) == "bob"

    asyncio.run(story())


def published(server: Running, name: str, size: int) -> str:
    """The address of a new file."""
    server.services.pfs.write(Who(user="ann"), f"{HOME}/{name}", [bytes(size)], size=size)
    answer = server.ask("POST", "/api/v1/publish/", {"path": f"{HOME}/{name}"}).json()
    assert answer["code"] == 200, answer
    return str(answer["url"])


def read_by_stranger(server: Running, url: str) -> int:
    return server.pool.request("GET", url).status


def open_answer(stack: ExitStack, url: str) -> socket.socket:
    """A connection whose answer has begun, and is not read."""
    parts = urlsplit(url)
    connection = stack.enter_context(socket.create_connection((parts.hostname or "", parts.port or 80), timeout=20))
    connection.sendall(f"GET {parts.path}?{parts.query} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    assert connection.recv(15) == b"HTTP/1.1 200 OK"
    return connection


def test_one_address_reads_so_many_published_files_at_once(server: Running) -> None:
    url = published(server, "large", 16 * 2**20)
    with ExitStack() as stack:
        readers = [open_answer(stack, url) for _ in range(READERS)]
        assert read_by_stranger(server, url) == 429
        readers[0].close()
        wait_until(lambda: read_by_stranger(server, url) == 200, "who has gone makes room")
    wait_until(lambda: read_by_stranger(server, url) == 200, "all have gone")


def test_publishing_is_on_record_and_can_be_ended(server: Running) -> None:
    url = published(server, "model", 5)
    path = f"{HOME}/model"
    assert read_by_stranger(server, url) == 200
    assert server.ask("DELETE", "/api/v1/publish/", {"path": path}, token=server.bob).json()["code"] == 500
    assert server.ask("DELETE", "/api/v1/publish/", {"path": f"{HOME}/x/../model"}).json() == {"code": 200, "msg": ""}
    assert read_by_stranger(server, url) == 404
    assert path not in [item["path"] for item in server.get("/api/v1/publish/")["items"]]
    assert "is not published" in server.ask("DELETE", "/api/v1/publish/", {"path": path}).json()["msg"]
    done = [
        (entry["action"], entry["user"], entry["target"])
        for entry in server.get("/v1/audit?action=file", server.root)["items"]
    ]
    assert done[:2] == [(Action.FILE_UNPUBLISH, "ann", path), (Action.FILE_PUBLISH, "ann", path)]


def test_what_a_disabled_user_has_published_is_read_by_nobody(server: Running) -> None:
    url = published(server, "theirs", 5)
    server.users.change("ann", disabled=True)
    assert read_by_stranger(server, url) == 404
    server.users.change("ann", disabled=False)
    assert read_by_stranger(server, url) == 200
