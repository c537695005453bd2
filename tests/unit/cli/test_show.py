"""How things look on a screen and in a pipe."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from msgspec.structs import replace

from paddlecloud.cli import explain, show
from paddlecloud.cli.describe import describe
from paddlecloud.cli.logs import Lines
from paddlecloud.cli.show import Column
from paddlecloud.model.job import Moved, Placement, Resources, RoleSpec, TaskPlacement
from paddlecloud.model.log import LogPiece
from paddlecloud.model.state import JobState, StopReason
from paddlecloud.model.task import TaskReport, TaskState
from paddlecloud.model.views import Forecast, JobDetail
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


def test_a_table_is_never_wider_than_the_screen_whatever_cannot_be_dropped() -> None:
    columns: list[Column[tuple[str, str, str]]] = [Column(head, lambda row: row[2]) for head in ("ONE", "TWO", "WHY")]
    for width in range(1, 80):
        lines = show.table(ROWS, columns, width=width).splitlines()
        assert max(map(show.columns_of, lines)) <= width


def test_a_chinese_character_takes_two_columns() -> None:
    rows = [("训练任务", "running", "说明说明说明说明"), ("fit", "queue", "x")]
    assert show.table(rows, COLUMNS).splitlines()[1:] == ["训练任务  running  说明说明说明说明", "fit       queue    x"]
    assert show.table(rows, COLUMNS, width=32).splitlines()[1] == "训练任务  running  说明说明说明…"
    assert show.columns_of("é́") == 1


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


def test_a_task_that_was_stopped_since_another_failed_is_not_called_failed() -> None:
    text = describe(replace(failed(), job=replace(failed().job, stop=StopReason.TASK_FAILED)), CREATED)
    rows = {line.split()[0]: line.split()[1] for line in text.splitlines() if line.startswith("trainer-")}
    assert rows == {"trainer-0": "stopped", "trainer-1": "failed"}
    assert "SIGTERM" not in text


def test_a_task_that_died_by_a_signal_of_its_own_is_called_failed() -> None:
    text = describe(failed(), CREATED)
    assert "killed by SIGTERM" in text


def test_show_tells_what_each_task_got_in_good_grammar() -> None:
    amount = Resources(cpus=1.0, memory_bytes=2**30, gpus=1)
    placed = TaskPlacement(role="trainer", index=0, resources=amount)
    job = a_job(placement=Placement(cluster="local", tasks=(placed,)))
    text = describe(JobDetail(job=job), CREATED)
    assert re.search(r"^each +1 CPU, 1.0 GiB, 1 GPU \(the default share\)$", text, re.MULTILINE)
    assert re.search(r"^tasks +1 trainer$", text, re.MULTILINE)
    roles = (RoleSpec(name="trainer", count=3, command="x", resources=Resources(cpus=2.0)),)
    waiting = a_job(state=JobState.QUEUE, placement=None, spec=replace(job.spec, roles=roles))
    text = describe(JobDetail(job=waiting), CREATED)
    assert re.search(r"^each +2 CPUs$", text, re.MULTILINE)
    assert re.search(r"^tasks +3 trainers$", text, re.MULTILINE)


def test_each_role_tells_its_own_share() -> None:
    roles = tuple(
        RoleSpec(name=name, count=2, command="x", resources=Resources(cpus=cpus))
        for name, cpus in (("pserver", 1.0), ("trainer", 4.0))
    )
    job = a_job(state=JobState.QUEUE, placement=None, spec=replace(a_job().spec, roles=roles))
    assert "pserver 1 CPU; trainer 4 CPUs" in describe(JobDetail(job=job), CREATED)


def test_a_task_out_of_memory_is_told_how_to_ask_for_more() -> None:
    detail = failed()
    full = replace(detail.tasks[1], reason="out of memory: used more than its limit of 64.0 MiB")
    assert "  paddlecloud submit … --memory SIZE" in "\n".join(explain.ending(replace(detail, tasks=(full,))))


def test_last_lines_that_were_just_seen_are_not_said_again() -> None:
    assert "no such file" not in "\n".join(explain.ending(failed(), log_seen=True))


def test_a_job_that_was_never_placed_is_not_told_to_show_itself() -> None:
    said = "\n".join(explain.ending(JobDetail(job=a_job(state=JobState.SCHEDULE_TIMEOUT, error="no room"))))
    assert "paddlecloud show" not in said


def test_a_waiting_job_says_its_place_when_and_why() -> None:
    now = datetime(2020, 5, 17, tzinfo=UTC)
    job = a_job(state=JobState.QUEUE, queue_reason="needs 2 CPUs")
    told = explain.why_waiting(job, Forecast(position=3, about_at=now + timedelta(minutes=12)), now)
    assert told == "2 jobs before it, starts within 12 min; needs 2 CPUs"
    assert explain.why_waiting(job, Forecast(position=1), now) == "first in the queue; needs 2 CPUs"
