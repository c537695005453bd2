"""Events and logs as they happen: nothing lost, nothing twice, whichever piece a reader goes on from."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
import urllib3

from paddlecloud.model.user import Scope
from paddlecloud.server.streams import PIECE_BYTES, whole_characters
from tests.unit.server.running import Running
from tests.waiting import wait_until

Event = tuple[str, str, Any]  # kind, id, data


class Follower:
    """A stream read by a thread into `events`."""

    def __init__(self, server: Running, path: str, *, token: str | None = None, after: str = "") -> None:
        headers = {"Last-Event-ID": after} if after else {}
        self.answer = server.ask("GET", path, token=token, headers=headers, stream=True)
        assert self.answer.status == 200, self.answer.data
        assert self.answer.headers["content-type"].startswith("text/event-stream")
        self.events: list[Event] = []
        self.ended = False
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with suppress(urllib3.exceptions.HTTPError):  # what a close from outside leaves the reader with
            for event in parse(self.answer):
                self.events.append(event)
        self.ended = True

    def wait(self, count: int) -> None:
        wait_until(lambda: len(self.events) >= count, f"{count} events")

    def wait_for_end(self) -> None:
        wait_until(lambda: self.ended, "the stream ends")

    def close(self) -> None:
        self.answer.shutdown()
        self._thread.join()
        self.answer.close()


def parse(answer: urllib3.BaseHTTPResponse) -> Iterator[Event]:
    buffer = b""
    for piece in answer.stream(decode_content=False):
        *whole, buffer = (buffer + piece).split(b"\n\n")
        for block in whole:
            lines = dict(line.split(": ", 1) for line in block.decode().split("\n") if not line.startswith(":"))
            if "data" in lines:
                yield lines["event"], lines.get("id", ""), json.loads(lines["data"])


def read(server: Running, path: str, *, token: str | None = None, after: str = "") -> list[Event]:
    """A stream up to its end."""
    headers = {"Last-Event-ID": after} if after else {}
    answer = server.ask("GET", path, token=token, headers=headers, stream=True)
    assert answer.status == 200, answer.data
    return list(parse(answer))


def text_of(events: list[Event], task: str = "trainer-0") -> str:
    return "".join(data["text"] for kind, _, data in events if kind == "log" and data["task"] == task)


def test_a_followed_job_tells_each_move_as_it_happens_and_the_stream_ends_with_it(server: Running) -> None:
    job = server.submit()
    follower = Follower(server, f"/v1/jobs/{job}/events")
    follower.wait(3)
    assert not follower.ended
    server.finish(job)
    follower.wait_for_end()
    assert [data["to_state"] for _, _, data in follower.events] == ["submit", "schedule", "running", "success"]
    assert [identity for _, identity, _ in follower.events] == [str(data["seq"]) for _, _, data in follower.events]


def test_a_move_reaches_a_follower_at_once_and_not_at_the_next_look(server: Running) -> None:
    times = [math.inf]
    while min(times) >= 0.4 and len(times) <= 10:  # of which a busy machine may delay most
        job = server.run()
        follower = Follower(server, f"/v1/jobs/{job}/events")
        follower.wait(3)
        began = time.monotonic()
        server.ask("POST", f"/v1/jobs/{job}/kill")
        follower.wait(4)
        times.append(time.monotonic() - began)
        follower.wait_for_end()
    assert min(times) < 0.4


def test_a_stream_of_events_goes_on_after_the_last_one_seen(server: Running) -> None:
    job = server.run()
    server.finish(job)
    server.reaches(job, "success")
    whole = read(server, f"/v1/jobs/{job}/events")
    assert read(server, f"/v1/jobs/{job}/events", after=whole[1][1]) == whole[2:]
    assert read(server, f"/v1/jobs/{job}/events", after=whole[-1][1]) == []


def test_all_events_of_a_user_are_theirs_alone_and_an_admin_may_see_all(server: Running) -> None:
    mine, theirs = server.submit(), server.submit(token=server.bob)
    server.reaches(mine, "running")
    server.reaches(theirs, "running")

    def jobs(path: str, token: str) -> set[str]:
        return {data["job"] for _, _, data in read(server, path, token=token)}

    assert theirs not in jobs("/v1/events?follow=0", server.ann)
    assert mine in jobs("/v1/events?follow=0", server.ann)
    assert {mine, theirs} <= jobs("/v1/events?follow=0&all=1", server.root)


def test_followed_events_begin_now(server: Running) -> None:
    server.run()
    follower = Follower(server, "/v1/events")
    job = server.submit()
    follower.wait(1)
    assert follower.events[0][2]["job"] == job
    follower.close()


def test_a_stream_goes_on_from_nothing_but_its_own_ids(server: Running) -> None:
    job = server.submit()
    for path, after in (("events", "x"), ("events", "-1"), ("events", "9" * 19), ("logs", "x"), ("logs", "a:b")):
        answer = server.ask("GET", f"/v1/jobs/{job}/{path}", headers={"Last-Event-ID": after})
        assert (answer.status, answer.json()["field"]) == (422, "Last-Event-ID")


def test_a_log_is_followed_while_it_is_written_and_closed_with_the_jobs_state(server: Running) -> None:
    job = server.run(count=2)
    follower = Follower(server, f"/v1/jobs/{job}/logs")
    server.say(job, "trainer-0", b"one\n")
    server.say(job, "trainer-1", b"uno\n")
    follower.wait(2)
    assert (text_of(follower.events), text_of(follower.events, "trainer-1")) == ("one\n", "uno\n")
    server.say(job, "trainer-0", b"two\nthe end, without a newline")
    server.finish(job)
    follower.wait_for_end()
    assert text_of(follower.events) == "one\ntwo\nthe end, without a newline"
    assert follower.events[-1] == ("end", "", {"state": "success"})


def test_a_log_goes_on_from_any_piece_with_nothing_lost_or_twice(server: Running) -> None:
    job = server.run(count=2)
    whole = {task: "".join(f"{task} line {n}\n" for n in range(20_000)) for task in ("trainer-0", "trainer-1")}
    for task, text in whole.items():
        server.say(job, task, text.encode())
    server.finish(job)
    server.reaches(job, "success")
    pieces = read(server, f"/v1/jobs/{job}/logs?follow=0")
    assert len(pieces) > 10
    for at, (_, identity, _) in enumerate(pieces[:-1]):
        rest = read(server, f"/v1/jobs/{job}/logs?follow=0", after=identity) if at % 3 == 0 else pieces[at + 1 :]
        for task, text in whole.items():
            assert text_of(pieces[: at + 1], task) + text_of(rest, task) == text


def test_pieces_of_a_log_are_whole_lines_of_at_most_64_kib(server: Running) -> None:
    job = server.run()
    server.say(job, "trainer-0", b"".join(b"%d %s\n" % (n, b"x" * (n % 300)) for n in range(5000)))
    for kind, _, data in read(server, f"/v1/jobs/{job}/logs?follow=0"):
        if kind == "log":
            assert data["text"].endswith("\n")
            assert len(data["text"].encode()) <= PIECE_BYTES
    server.finish(job)


def test_a_line_longer_than_a_piece_and_bytes_that_are_no_text_arrive_all_the_same(server: Running) -> None:
    job = server.run()
    long = "长" * 100_000
    server.say(job, "trainer-0", long.encode() + b"\n\xff\xfe bytes\n")
    events = read(server, f"/v1/jobs/{job}/logs?follow=0")
    assert text_of(events) == long + "\n\ufffd\ufffd bytes\n"
    assert [data["offset"] for kind, _, data in events if kind == "log"][-1] == 300_000 + 10
    server.finish(job)


def test_an_unfinished_line_is_sent_when_no_more_of_it_comes(server: Running) -> None:
    job = server.run()
    follower = Follower(server, f"/v1/jobs/{job}/logs")
    server.say(job, "trainer-0", b"epoch 1: 50%")
    follower.wait(1)
    assert text_of(follower.events) == "epoch 1: 50%"
    server.say(job, "trainer-0", b"\repoch 1: 100%\n")
    follower.wait(2)
    assert text_of(follower.events) == "epoch 1: 50%\repoch 1: 100%\n"
    server.finish(job)
    follower.wait_for_end()


@pytest.mark.parametrize(("tail", "text"), [(0, ""), (1, "line 9\n"), (3, "line 7\nline 8\nline 9\n"), (1000, None)])
def test_a_tail_begins_with_the_last_lines(server: Running, tail: int, text: str | None) -> None:
    job = server.run()
    whole = "".join(f"line {n}\n" for n in range(10))
    server.say(job, "trainer-0", whole.encode())
    assert text_of(read(server, f"/v1/jobs/{job}/logs?follow=0&tail={tail}")) == (whole if text is None else text)
    server.finish(job)


def test_since_takes_a_length_or_a_moment_and_refuses_what_is_neither(server: Running) -> None:
    job = server.run()
    server.say(job, "trainer-0", b"just now\n")
    for since in ("10m", "00:10:00", "2020-01-01T00:00:00Z", "2020-01-01", "999999999d", "0001-01-01"):
        assert text_of(read(server, f"/v1/jobs/{job}/logs?follow=0&since={since}")) == "just now\n"
    assert text_of(read(server, f"/v1/jobs/{job}/logs?follow=0&since=2999-01-01T00:00:00Z")) == ""
    answer = server.ask("GET", f"/v1/jobs/{job}/logs?since=yesterday")
    assert (answer.status, answer.json()["field"]) == (422, "since")
    server.finish(job)


def test_one_tasks_log_is_asked_for_by_its_name_and_an_unknown_one_is_answered_with_the_known(server: Running) -> None:
    job = server.run(count=2)
    server.say(job, "trainer-0", b"zero\n")
    server.say(job, "trainer-1", b"one\n")
    events = read(server, f"/v1/jobs/{job}/logs?follow=0&task=trainer-1")
    assert {data["task"] for kind, _, data in events if kind == "log"} == {"trainer-1"}
    answer = server.ask("GET", f"/v1/jobs/{job}/logs?task=trainer-2")
    assert answer.status == 404
    assert "trainer-0, trainer-1" in answer.json()["detail"]
    for task in ("..%2f..%2fetc", "trainer-0%00", ".", "%2e%2e"):
        assert server.ask("GET", f"/v1/jobs/{job}/tasks/{task}/log").status in (404, 422)
    server.finish(job)


def test_a_log_that_is_a_link_to_elsewhere_is_not_followed(server: Running) -> None:
    job = server.run()
    (server.results(job) / "log").mkdir(exist_ok=True)
    (server.results(job) / "log" / "trainer-0.log").symlink_to("/etc/passwd")
    assert text_of(read(server, f"/v1/jobs/{job}/logs?follow=0")) == ""
    assert server.ask("GET", f"/v1/jobs/{job}/tasks/trainer-0/log").status == 404
    server.finish(job)


def test_a_log_that_is_not_followed_ends_where_it_ended_when_it_was_asked_for(server: Running) -> None:
    job = server.run()
    server.say(job, "trainer-0", (b"x" * 1023 + b"\n") * 40_000)  # more than the connection holds unread
    answer = server.ask("GET", f"/v1/jobs/{job}/logs?follow=0", stream=True)
    events = parse(answer)
    assert next(events)[0] == "log"
    server.say(job, "trainer-0", b"written since\n")
    rest = list(events)
    assert rest[-1][0] == "end"
    assert "written since" not in rest[-2][2]["text"]
    server.finish(job)


def test_no_task_of_many_waits_for_the_others_to_have_said_all(server: Running) -> None:
    job = server.run(count=20)
    for index in range(20):
        server.say(job, f"trainer-{index}", b"a line\n" * 50_000)
    tasks = [data["task"] for kind, _, data in read(server, f"/v1/jobs/{job}/logs?follow=0") if kind == "log"]
    assert tasks[:20] == [f"trainer-{index}" for index in range(20)]
    assert tasks[20:40] == tasks[:20]
    server.finish(job)


def test_a_stream_ends_soon_after_its_token_is_revoked(server: Running) -> None:
    job = server.run()
    token = server.token("ann", Scope.READ)
    follower = Follower(server, f"/v1/jobs/{job}/logs", token=token)
    other = Follower(server, f"/v1/jobs/{job}/logs")
    server.users.revoke_token(server.users.tokens("ann")[-1].id, "ann")

    def ended() -> bool:
        server.say(job, "trainer-0", b"secret\n")
        return follower.ended

    wait_until(ended, "the stream ends")
    assert follower.events[-1][0] == "log"
    assert not other.ended
    server.finish(job)
    other.wait_for_end()


def test_followers_hold_no_threads(server: Running) -> None:
    job = server.run()
    threads = threading.active_count()
    followers = [
        Follower(server, f"/v1/jobs/{job}/{what}", token=server.root) for what in ("events", "logs") for _ in range(60)
    ]
    # One thread of ours reads each; the server's pool has 40 at most, for moments.
    assert threading.active_count() - threads - len(followers) <= 40
    assert server.ask("GET", "/v1/me").status == 200
    server.say(job, "trainer-0", b"heard by all\n")
    server.finish(job)
    for follower in followers:
        follower.wait_for_end()
        assert follower.events[-1][2].get("to_state", follower.events[-1][2].get("state")) == "success"


def test_a_character_is_not_cut_in_two() -> None:
    for character in ("a", "é", "长", "😀"):
        raw = b"x" + character.encode()
        for cut in range(1, len(raw)):
            assert whole_characters(raw[:cut], complete=False) == 1
        assert whole_characters(raw, complete=False) == len(raw)
        assert whole_characters(raw[:-1], complete=True) == len(raw) - 1
