"""`since` misses nothing that was written in that time, and brings little more."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from paddlecloud.files.results import Results
from paddlecloud.files.uploads import Uploads
from paddlecloud.model.job import Job, JobSpec, RoleSpec
from paddlecloud.server.marks import Marks
from paddlecloud.server.transfers import TransferLimits, Transfers

ID = "job-" + "a" * 32
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
JOB = Job(id=ID, user="ann", spec=JobSpec(roles=(RoleSpec(name="trainer", count=1, command="x"),)), created_at=BEGIN)


class Log:
    """A log that grows, with the marks that a server took of it."""

    def __init__(self, folder: Path) -> None:
        self.transfers = Transfers(
            Uploads(folder / "files"), Results(folder / "results"), TransferLimits(upload_bytes=1)
        )
        self.folder = folder
        self.marks = Marks(folder / "marks", self.transfers)
        self.path = folder / "results" / "ann" / ID / "log" / "trainer-0.log"
        self.path.parent.mkdir(parents=True)

    def at(self, seconds: int, text: str = "") -> None:
        """At this time something is written and a look is taken."""
        with self.path.open("a") as file:
            file.write(text)
        self.marks.look([JOB], BEGIN + timedelta(seconds=seconds))

    def since(self, seconds: int) -> str:
        offset = self.marks.offset(JOB, "trainer-0", BEGIN + timedelta(seconds=seconds))
        return self.path.read_text()[offset:]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    made = Log(tmp_path)
    made.at(0)
    made.at(5, "five\n")
    made.at(10)
    made.at(15, "fifteen\n")
    made.at(20, "twenty\n")
    return made


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-100, "five\nfifteen\ntwenty\n"),
        (0, "five\nfifteen\ntwenty\n"),
        (5, "fifteen\ntwenty\n"),
        (14, "fifteen\ntwenty\n"),
        (15, "twenty\n"),
        (20, ""),
    ],
)
def test_what_was_written_since_a_mark_is_found(log: Log, seconds: int, text: str) -> None:
    assert log.since(seconds) == text


def test_what_came_after_the_last_mark_is_found_too(log: Log) -> None:
    with log.path.open("a") as file:
        file.write("later\n")
    assert log.since(1000) == "later\n"


def test_a_log_that_was_last_written_before_then_has_nothing_new(log: Log) -> None:
    with log.path.open("a") as file:
        file.write("after the last mark\n")
    assert log.since(10**9) == ""


def test_marks_outlive_the_server_and_a_cut_one(log: Log) -> None:
    with (log.folder / "marks" / ID / "trainer-0").open("a") as file:
        file.write("17")
    log.marks = Marks(log.folder / "marks", log.transfers)
    assert log.since(15) == "twenty\n"
    log.at(25, "twenty-five\n")
    assert "twenty-five\n" in log.since(20)


def test_a_log_that_does_not_grow_is_marked_once(log: Log) -> None:
    before = (log.folder / "marks" / ID / "trainer-0").read_text()
    for seconds in range(100, 200):
        log.at(seconds)
    assert (log.folder / "marks" / ID / "trainer-0").read_text() == before


def test_a_log_that_is_not_there_yet_begins_at_its_beginning(log: Log) -> None:
    assert log.marks.offset(JOB, "trainer-1", BEGIN) == 0
