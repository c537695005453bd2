"""How things look on a screen and in a pipe."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest

from paddlecloud.cli import explain, show
from paddlecloud.cli.jobs import describe
from paddlecloud.cli.logs import Lines
from paddlecloud.cli.show import Column
from paddlecloud.model.job import Moved
from paddlecloud.model.state import JobState
from paddlecloud.model.task import TaskReport, TaskState
from paddlecloud.model.views import Forecast, JobDetail, LogPiece
from tests.unit.cli.records import CREATED, ID, a_job

ROWS = [("job-1", "running", "a reason that is long"), ("job-22", "queue", "")]
COLUMNS: list[Column[tuple[str, str, str]]] = [
    Column("JOB", lambda row: row[0]),
    Column("STATE", lambda row: row[1], drop=1, colour=lambda row: "32"),
    Column("WHY", lambda row: row[2], drop=2),
]


def test_a_table_has_upper_case_heads_and_no_borders() -> None:
    assert show.table(ROWS, COLUMNS) == ("JOB     STATE    WHY\njob-1   running  a reason that is long\njob-22  queue")


def test_a_narrow_screen_cuts_the_last_column_then_drops_columns_and_never_wraps_a_head() -> None:
    assert show.table(ROWS, COLUMNS, width=30).splitlines()[1] == "job-1   running  a reason tha…"
    assert show.table(ROWS, COLUMNS, width=20).splitlines()[0] == "JOB     STATE"
    assert show.table(ROWS, COLUMNS, width=8).splitlines() == ["JOB", "job-1", "job-22"]


def test_colour_does_not_move_the_columns() -> None:
    plain = show.table(ROWS, COLUMNS)
    coloured = show.table(ROWS, COLUMNS, coloured=True)
    assert "\x1b[32m" in coloured
    assert coloured.replace("\x1b[32m", "").replace("\x1b[0m", "").split() == plain.split()
    assert "\x1b" not in plain


def test_a_line_break_in_a_value_does_not_break_the_table() -> None:
    assert len(show.table([("a", "b", "two\nlines")], COLUMNS).splitlines()) == 2


@pytest.mark.parametrize(
    ("seconds", "text"), [(-3, "0s"), (45, "45s"), (119, "119s"), (120, "2m"), (7200, "2h"), (200_000, "2d")]
)
def test_ages_are_short(seconds: float, text: str) -> None:
    assert show.short_time(seconds) == text


def test_a_rank_stands_before_each_line_and_lines_stay_whole() -> None:
    out = StringIO()
    Lines(out, prefixed=True).write(
        [
            LogPiece(task="trainer-0", offset=5, text="one\ntw"),
            LogPiece(task="trainer-1", offset=4, text="eins\n"),
            LogPiece(task="trainer-0", offset=7, text="o\n\n"),
            LogPiece(task="trainer-1", offset=8, text="last"),
        ]
    )
    assert out.getvalue() == ("trainer-0 | one\ntrainer-1 | eins\ntrainer-0 | two\ntrainer-0 | \ntrainer-1 | last\n")


def test_without_a_prefix_a_log_passes_through_as_it_is() -> None:
    out = StringIO()
    Lines(out, prefixed=False).write(
        [LogPiece(task="trainer-0", offset=5, text="a\rb\n"), LogPiece(task="t", offset=6, text="x")]
    )
    assert out.getvalue() == "a\rb\nx"


def failed() -> JobDetail:
    early, late = CREATED + timedelta(seconds=30), CREATED + timedelta(seconds=31)
    return JobDetail(
        job=a_job(state=JobState.FAILED, error="trainer-1 failed first: exit code 3"),
        tasks=(
            TaskReport(name="trainer-0", state=TaskState.FAILED, signal=15, ended_at=late, tail="stopped\n"),
            TaskReport(name="trainer-1", state=TaskState.FAILED, exit_code=3, ended_at=early, tail="a\nno such file\n"),
        ),
        history=(
            Moved(
                seq=1,
                job=ID,
                user="u",
                attempt=0,
                at=CREATED,
                from_state=None,
                to_state=JobState.SUBMIT,
                why="submitted",
            ),
        ),
    )


def test_a_failed_job_is_told_by_the_task_that_failed_first_its_last_lines_and_what_to_type() -> None:
    lines = explain.ending(failed())
    assert lines[0] == f"{ID} failed after 5m: trainer-1 failed first: exit code 3"
    assert lines[1:4] == ["last lines of trainer-1:", "  trainer-1 | a", "  trainer-1 | no such file"]
    assert f"  paddlecloud logs {ID} -w trainer-1   its whole log" in lines


def test_show_tells_state_tasks_history_and_why() -> None:
    text = describe(failed(), CREATED + timedelta(hours=1))
    assert "TASK       STATE" in text
    assert "history:" in text
    assert "no such file" in text


def test_a_waiting_job_says_its_place_when_and_why() -> None:
    now = datetime(2020, 5, 17, tzinfo=UTC)
    job = a_job(state=JobState.QUEUE, queue_reason="needs 2 CPUs")
    told = explain.why_waiting(job, Forecast(position=3, about_at=now + timedelta(minutes=12)), now)
    assert told == "2 jobs before it, starts in about 12 min; needs 2 CPUs"
    assert explain.why_waiting(job, Forecast(position=1), now) == "first in the queue; needs 2 CPUs"
