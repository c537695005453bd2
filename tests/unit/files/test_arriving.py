"""Pieces of a log from elsewhere: there once however often they are sent, never with a gap, never through a link."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.files.arriving import ArrivingLogs
from paddlecloud.files.results import Results
from paddlecloud.model.errors import ConflictError, FullError, NotFoundError, TooLargeError
from tests.contract.records import a_job

JOB = a_job("ann")
FOLDER = f"ann/{JOB.id}"
TASK = "trainer-0"


@pytest.fixture
def logs(tmp_path: Path) -> ArrivingLogs:
    return ArrivingLogs(Results(tmp_path), spare_bytes=0)


def content(root: Path) -> bytes:
    return (root / FOLDER / "log" / f"{TASK}.log").read_bytes()


def test_a_piece_that_is_sent_again_is_there_once(logs: ArrivingLogs, tmp_path: Path) -> None:
    assert logs.append(JOB, TASK, 0, b"one\n") == 4
    assert logs.append(JOB, TASK, 0, b"one\n") == 4
    assert logs.append(JOB, TASK, 2, b"e\ntwo\n") == 8
    assert logs.append(JOB, TASK, 1, b"ne") == 8
    assert content(tmp_path) == b"one\ntwo\n"


def test_a_gap_is_refused_with_the_length_to_go_on_from(logs: ArrivingLogs, tmp_path: Path) -> None:
    logs.append(JOB, TASK, 0, b"one\n")
    with pytest.raises(ConflictError, match="has 4 bytes: continue at 4, not at 5"):
        logs.append(JOB, TASK, 5, b"x")
    assert content(tmp_path) == b"one\n"


@given(cuts=st.lists(st.tuples(st.integers(0, 300), st.integers(0, 80)), max_size=30))
def test_whatever_is_sent_in_whatever_order_the_log_is_a_beginning_of_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[tuple[int, int]]
) -> None:
    root = tmp_path_factory.mktemp("logs")
    logs = ArrivingLogs(Results(root), spare_bytes=0)
    written = bytes(number % 251 for number in range(400))
    length = 0
    for start, size in cuts:
        piece = written[start : start + size]
        if start > length:
            with pytest.raises(ConflictError):
                logs.append(JOB, TASK, start, piece)
        else:
            length = max(length, start + len(piece))
            assert logs.append(JOB, TASK, start, piece) == length
    if length:
        assert content(root) == written[:length]


def test_pieces_that_come_at_once_leave_no_gap_and_nothing_twice(logs: ArrivingLogs, tmp_path: Path) -> None:
    senders = [threading.Thread(target=logs.append, args=(JOB, TASK, 0, b"x" * size)) for size in range(1, 60)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    assert content(tmp_path) == b"x" * 59


@pytest.mark.parametrize("where", ["log", f"log/{TASK}.log"])
def test_a_link_that_a_job_left_is_not_written_through(logs: ArrivingLogs, tmp_path: Path, where: str) -> None:
    outside = tmp_path / "outside"
    (outside / "log").mkdir(parents=True)
    link = tmp_path / FOLDER / where
    link.parent.mkdir(parents=True)
    link.symlink_to(outside / where)
    with pytest.raises(NotFoundError):
        logs.append(JOB, TASK, 0, b"x")
    assert [path for path in outside.rglob("*") if path.is_file()] == []


def test_a_fifo_in_the_place_of_a_log_stops_nobody(logs: ArrivingLogs, tmp_path: Path) -> None:
    (tmp_path / FOLDER / "log").mkdir(parents=True)
    os.mkfifo(tmp_path / FOLDER / "log" / f"{TASK}.log")
    with pytest.raises(NotFoundError):
        logs.append(JOB, TASK, 0, b"x")


def test_a_log_over_its_limit_and_a_full_disk_leave_the_log_as_it_was(tmp_path: Path) -> None:
    short = ArrivingLogs(Results(tmp_path), spare_bytes=0, log_bytes=10)
    short.append(JOB, TASK, 0, b"12345678")
    with pytest.raises(TooLargeError):
        short.append(JOB, TASK, 8, b"90x")
    full = ArrivingLogs(Results(tmp_path), spare_bytes=2**60)
    with pytest.raises(FullError):
        full.append(JOB, TASK, 8, b"9")
    assert content(tmp_path) == b"12345678"
