"""docs/lifecycle.md: the states of a job and every move between them, from model/state.py."""

from __future__ import annotations

from paddlecloud.model.state import ENDS, FINAL, HELD, MOVES, RETRIED, WAITING, JobState, StopReason
from tools.pages.markdown import code, document, table

TITLE = "The life of a job"

MEANINGS = {
    JobState.SUBMIT: "accepted, not looked at yet",
    JobState.QUEUE: "no room now; the record says why and, where known, when there will be",
    JobState.SCHEDULE: "placed; its tasks are being started, or its packages built, which `queue_reason` says",
    JobState.RUNNING: "all its tasks have started; a move to itself marks it as hanging, or no more",
    JobState.KILLING: "its tasks are being stopped; the reason decides how it ends",
    JobState.SUCCESS: "the tasks that decide its end succeeded",
    JobState.FAILED: "a task failed, and the record names the first; or no attempt was left",
    JobState.TIMEOUT: "it ran longer than its wall_time",
    JobState.SCHEDULE_TIMEOUT: "it waited longer than the server's `jobs.schedule_limit`",
    JobState.KILLED: "someone asked for its end",
}

REASONS = {
    StopReason.ASKED: "`kill` or `kill_job`",
    StopReason.DONE: "its trainers have ended well, and what is left, such as pservers, is stopped",
    StopReason.TASK_FAILED: "one task failed, and the others are stopped",
    StopReason.RESTART_ME: "a task asked for another attempt, by exit code 101",
    StopReason.NODE_LOST: "its tasks vanished with their machine",
    StopReason.PREEMPTED: "it makes room for another job",
    StopReason.WALL_TIME: "its wall_time has passed",
    StopReason.HUNG: "it did nothing for too long, and asked to be ended then",
    StopReason.QUEUE_TIME: "it waited too long",
    StopReason.MOVED_ON: "its cluster would start it late, and it goes to the next of the default list",
}

INTRODUCTION = """
Ten states, in the words of seed 002. They print as they are written there (`schedule timeout` with a space); in
records and on the wire the space is an underscore. `paddlecloud show JOB` prints the history: when, from, to and why.
"""

RULES = """
## What always holds
- A backend may hold something for a job exactly in {held}. In a final state nothing of it runs anywhere.
- One function writes a move, `Jobs.move` in `store/jobs.py`: it checks the table, compares the record's version, and
  adds the row of history, all in one transaction.
- "The backend answered and holds nothing" loses a running job, and its next attempt follows. "The backend does not
  answer" changes nothing.
- There is no recovery: a round after a crash is a round like any other.
"""


def page() -> str:
    return document(
        TITLE,
        "src/paddlecloud/model/state.py",
        INTRODUCTION,
        _diagram(),
        table(("state", "meaning", "kind", "may go to"), (_state(state) for state in JobState)),
        "## Why a job is stopped",
        table(
            ("reason", "when", "ends in"),
            ((code(reason), REASONS[reason], _end(reason)) for reason in StopReason),
        ),
        RULES.format(held=", ".join(code(state.label) for state in JobState if state in HELD)),
    )


def _end(reason: StopReason) -> str:
    again = f"{code(JobState.QUEUE.label)} while its `retry` allows, then " if reason in RETRIED else ""
    return again + code(ENDS[reason].label)


def _diagram() -> str:
    arrows = [f"    {state} --> {to}" for state in JobState for to in JobState if to in MOVES[state]]
    ends = [f"    {state} --> [*]" for state in JobState if state in FINAL]
    return "\n".join(["```mermaid", "stateDiagram-v2", f"    [*] --> {JobState.SUBMIT}", *arrows, *ends, "```"])


def _state(state: JobState) -> tuple[str, ...]:
    kind = "waiting" if state in WAITING else "held" if state in HELD else "final"
    return code(state.label), MEANINGS[state], kind, ", ".join(code(to.label) for to in JobState if to in MOVES[state])
