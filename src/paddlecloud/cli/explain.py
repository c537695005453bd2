"""Why a job waits, why it ended as it did, and what to type next: the words for one job."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from paddlecloud.cli import show
from paddlecloud.cli.printable import log_line
from paddlecloud.model.state import JobState
from paddlecloud.model.task import TaskState, signal_number
from paddlecloud.model.units import describe_duration

if TYPE_CHECKING:
    from paddlecloud.model.job import Job
    from paddlecloud.model.task import TaskReport
    from paddlecloud.model.views import Forecast, JobDetail

_TAIL_LINES = 20
_OUR_SIGNALS = (signal_number("TERM"), signal_number("KILL"))
_SHELL_SIGNAL = 128  # a shell reports its child's signal as an exit code above this


def why_waiting(job: Job, forecast: Forecast | None, now: datetime) -> str:
    """Its place in the queue, when it starts at the latest, and what it waits for."""
    words = [] if forecast is None else [place(forecast, now)]
    if job.queue_reason:
        words.append(job.queue_reason)
    return "; ".join(words)


def why(job: Job, forecast: Forecast | None, now: datetime) -> str:
    """Why a job is where it is: what it waits for, that it seems to hang, or what has ended it."""
    if job.state.waiting or job.building:
        return why_waiting(job, forecast, now)
    if job.quiet_since is not None:
        silent = describe_duration((now - job.quiet_since).total_seconds())
        return f"no log line and no use of CPU or GPU for {silent}: it seems to hang"
    return job.error


def state_line(detail: JobDetail, now: datetime) -> str:
    """A job's state in one line, with why it waits."""
    waits = detail.job.state.waiting or detail.job.building
    why = why_waiting(detail.job, detail.forecast, now) if waits else ""
    return f"{detail.job.state.label}: {why}" if why else detail.job.state.label


def place(forecast: Forecast, now: datetime) -> str:
    ahead = forecast.position - 1
    words = "first in the queue" if ahead == 0 else f"{show.counted(ahead, 'job')} before it"
    when = at_the_latest(forecast, now)
    return f"{words}, starts {when}" if when else words


def at_the_latest(forecast: Forecast, now: datetime) -> str:
    """By when a job starts if all others run for as long as they may: an upper bound."""
    if forecast.about_at is None:
        return ""
    seconds = (forecast.about_at - now).total_seconds()
    return "soon" if seconds < 5 else f"within {describe_duration(seconds)}"


def ending(detail: JobDetail, *, log_seen: bool = False) -> list[str]:
    """How a job ended; where a task failed: which came first, how, its last lines, and what to type next.

    `log_seen`: its log was followed to the end just now, so its last lines stand right above.
    """
    job = detail.job
    lines = [f"{job.id} {_verdict(job)}"]
    failed = first_failed(detail)
    if failed is not None and not log_seen:
        lines += _last_lines(failed)
    lines += _cause(detail)
    if job.state is not JobState.SUCCESS:
        lines += ["next:", *_next_after_failure(detail, failed)]
    return lines


def _cause(detail: JobDetail) -> list[str]:
    """Why a job failed, as far as its exit codes and last lines tell, and what to do about it."""
    from paddlecloud.model import causes
    from paddlecloud.model.remedies import remedies

    job = detail.job
    cluster = "" if job.placement is None else job.placement.cluster
    failed = job.state.final and job.state is not JobState.SUCCESS
    found = causes.of_job(job.stop, detail.tasks, cluster=cluster) if failed else None
    if found is None or found in (causes.STOPPED, causes.OTHER):
        return []
    return [
        f"it seems that {found.what}; what to do:",
        *(f"  - {one}" for one in remedies(found, job, detail.longest_seconds)),
    ]


def first_failed(detail: JobDetail) -> TaskReport | None:
    """The task that a failed job failed by."""
    from paddlecloud.model import lifecycle
    from paddlecloud.model.task import Report

    return lifecycle.first_failed(Report(tasks=detail.tasks)) if detail.job.state is JobState.FAILED else None


def was_stopped(detail: JobDetail, task: TaskReport) -> bool:
    """Whether a task that did not succeed ended by our own stop of its job, and so not by a fault of its own."""
    if detail.job.stop is None or task.state is not TaskState.FAILED or task.reason:
        return False
    first = first_failed(detail)
    number = task.signal if task.signal is not None else (task.exit_code or 0) - _SHELL_SIGNAL
    return number in _OUR_SIGNALS and (first is None or first.name != task.name)


def next_commands(job: Job) -> list[str]:
    """What one types after a submit."""
    return _typed(
        {
            f"logs -f {job.id}": "follow its log",
            f"show {job.id}": "its state, and why it waits",
            f"kill {job.id}": "stop it",
            f"cp {job.id} DIR": "bring its results here",
        }
    )


def detached(job: str) -> list[str]:
    typed = {f"logs -f {job}": "follow its log again", f"wait {job}": "wait for its end", f"kill {job}": "stop it"}
    return [f"detached from {job}, which goes on without you", *_typed(typed)]


def _verdict(job: Job) -> str:
    if job.state is JobState.SUCCESS:
        return f"succeeded{_took(job)}"
    if not job.state.final:
        return f"has not ended yet: {job.state.label}"
    words = {
        JobState.FAILED: "failed",
        JobState.KILLED: "was killed",
        JobState.TIMEOUT: "timed out",
        JobState.SCHEDULE_TIMEOUT: "was never placed (schedule timeout)",
    }[job.state]
    return f"{words}{_took(job)}" + (f": {job.error}" if job.error else "")


def _took(job: Job) -> str:
    if job.started_at is None or job.finished_at is None:
        return ""
    return f" after {show.short_time((job.finished_at - job.started_at).total_seconds())}"


def _last_lines(task: TaskReport) -> list[str]:
    if not task.tail.strip():
        return [f"{task.name} wrote nothing"]
    lines = task.tail.rstrip("\n").split("\n")[-_TAIL_LINES:]
    return [f"last lines of {task.name}:", *(f"  {task.name} | {log_line(line)}" for line in lines)]


def _next_after_failure(detail: JobDetail, failed: TaskReport | None) -> list[str]:
    from paddlecloud.model.openpai.submitted import FACE as OPENPAI
    from paddlecloud.model.remedies import may_run_longer

    job = detail.job
    has_flags = job.spec.face != OPENPAI  # what its file says instead is among the remedies
    if not job.state.final:
        return next_commands(job)[:3]
    if job.state is JobState.SCHEDULE_TIMEOUT:
        return _typed({"clusters": "what there is to ask for"})
    whose = f" -w {failed.name}" if failed is not None else ""
    typed = {f"logs {job.id}{whose}": "its whole log", f"cp {job.id} DIR": "what it left behind"}
    if job.state is JobState.TIMEOUT and job.wall_time_seconds != job.spec.wall_time_seconds:
        typed["quota"] = "how many minutes of a day you have, and when there are more"
    elif job.state is JobState.TIMEOUT and has_flags and may_run_longer(job, detail.longest_seconds):
        typed["submit … --time-limit TIME"] = "with more time (--wall_time)"
    if has_flags and failed is not None and failed.reason.startswith("out of memory"):
        typed["submit … --memory SIZE"] = "with more memory for each task (4Gi)"
    return _typed(typed)


def _typed(commands: Mapping[str, str]) -> list[str]:
    longest = max(map(len, commands))
    return [f"  paddlecloud {words:<{longest}}   {why}" for words, why in commands.items()]
