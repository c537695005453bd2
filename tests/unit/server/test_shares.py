"""One user's flood waits in that user's own line, and nobody else waits for it."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import pytest
import urllib3

from paddlecloud.model.errors import QuotaError
from paddlecloud.server.shares import Share, Shares
from tests.unit.server.running import Running
from tests.waiting import wait_until

POOL = 40  # the threads that all requests share


def test_whoever_wants_more_than_their_share_waits_in_order_and_others_do_not() -> None:
    async def story() -> list[str]:
        share, told = Share(2), list[str]()

        async def work(name: str, user: str, amount: int, done: asyncio.Event) -> None:
            async with share.take(user, amount):
                told.append(name)
                await done.wait()

        now, later = asyncio.Event(), asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(work("first", "ann", 1, now))
            tasks.create_task(work("whole", "ann", 5, later))
            tasks.create_task(work("small", "ann", 1, later))
            tasks.create_task(work("other", "bob", 2, later))
            await asyncio.sleep(0)
            assert told == ["first", "other"]
            now.set()
            await asyncio.sleep(0.01)
            assert told == ["first", "other", "whole"]
            later.set()
        return told

    assert asyncio.run(story()) == ["first", "other", "whole", "small"]


def test_whoever_stops_waiting_holds_nobody_up() -> None:
    async def story() -> None:
        share = Share(1)

        async def work() -> None:
            async with share.take("ann"):
                await asyncio.sleep(0)

        async with share.take("ann"):
            waiting = [asyncio.create_task(work()) for _ in range(3)]
            await asyncio.sleep(0)
            waiting[0].cancel()
        waiting[1].cancel()  # it was granted its turn a moment ago
        await asyncio.wait_for(waiting[2], 5)
        assert (await asyncio.gather(*waiting, return_exceptions=True))[2] is None
        async with asyncio.timeout(5), share.take("ann"):
            pass

    asyncio.run(story())


def test_a_user_has_so_many_streams_and_a_closed_one_makes_room() -> None:
    shares = Shares(streams=2)
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(shares.stream("ann"))
        with pytest.raises(QuotaError, match="ann has 2 streams"), shares.stream("ann"):
            pass
        with shares.stream("bob"):
            pass
    with shares.stream("ann"):
        pass


def test_digests_of_endless_files_take_nobodys_threads_and_end_with_their_reader(server: Running) -> None:
    job = server.run()
    folder = server.results(job) / "rank-0"
    folder.mkdir(parents=True)
    (folder / "endless").touch()
    os.truncate(folder / "endless", 2**42)

    def ask() -> None:
        wanted = {"Authorization": f"Bearer {server.ann}", "Want-Repr-Digest": "sha-256=1", "Range": "bytes=0-0"}
        with suppress(urllib3.exceptions.HTTPError):
            urllib3.request(
                "GET", f"{server.url}/v1/jobs/{job}/files/rank-0/endless", headers=wanted, timeout=1.0, retries=False
            )

    with ThreadPoolExecutor(POOL + 5) as threads:
        asked = [threads.submit(ask) for _ in range(POOL + 5)]
        for _ in range(5):
            began = time.monotonic()
            assert server.ask("GET", "/v1/me", token=server.bob).status == 200
            assert time.monotonic() - began < 20
        for one in asked:
            one.result()
    small = folder / "small"
    small.write_bytes(b"abc")
    answer = server.ask("GET", f"/v1/jobs/{job}/files/rank-0/small", headers={"Want-Repr-Digest": "sha-256=1"})
    assert answer.headers["repr-digest"].startswith("sha-256=:ungWv48B")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_logins_take_their_own_threads(server: Running) -> None:
    def log_in(number: int) -> int:
        wrong = b'{"name": "nobody-%d", "password": "wrong wrong"}' % number
        return urllib3.request("POST", f"{server.url}/v1/login", body=wrong, timeout=240.0).status

    with ThreadPoolExecutor(POOL + 20) as threads:
        asked = [threads.submit(log_in, number) for number in range(POOL + 20)]
        wait_until(lambda: any(one.done() for one in asked), "the flood has begun")
        assert server.ask("GET", "/v1/me").status == 200
        assert sum(one.done() for one in asked) < 20, "whoever is known went before the flood"
        assert {one.result() for one in asked} == {401}


def test_the_bodies_of_one_user_are_held_within_their_share(server: Running) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    taken: list[int] = []

    def send(connection: socket.socket) -> None:
        piece = bytes(2**20)
        sent = 0
        with suppress(TimeoutError):
            for _ in range(63):
                connection.sendall(piece)
                sent += 1
        taken.append(sent)

    with ExitStack() as stack:
        senders = []
        for _ in range(4):
            connection = stack.enter_context(socket.create_connection((host, int(port)), timeout=1.0))
            head = f"POST /v1/trees HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.ann}\r\n"
            connection.sendall(f"{head}Content-Length: {64 * 2**20}\r\n\r\n".encode())
            senders.append(threading.Thread(target=send, args=(connection,)))
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        assert server.ask("GET", "/v1/me").status == 200
        assert sum(sent == 63 for sent in taken) <= 2, taken
    wait_until(
        lambda: server.ask("POST", "/v1/trees", {"entries": []}).status == 200, "what was broken off is given back"
    )
