"""What makes a job move: pure functions from a record, what a backend said and the time, to the next move.

`advance` and the others only propose a Move; `apply` checks it against the table and makes the next record.
`store.jobs` is the only caller of `apply`, so nothing changes a job without a row of history.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from paddlecloud.model import causes
from paddlecloud.model.clock import STEADY, Jumps
from paddlecloud.model.errors import ConflictError
from paddlecloud.model.job import Job, Placement, Retry
from paddlecloud.model.state import ENDS, MOVES, RETRIED, JobState, StopReason
from paddlecloud.model.task import Report, TaskReport, TaskState
from paddlecloud.model.units import describe_duration, format_duration


class Move(Struct, frozen=True, kw_only=True):
    """A proposed change of state: what, when and why. `placement` comes with `schedule`, `stop` with an end."""

    to: JobState
    at: datetime
    why: str
    placement: Placement | None = None
    stop: StopReason | None = None
    error: str = ""
    passes: str = ""  # with `queue`: the cluster that it tries no more, for what `why` says
    quiet_since: datetime | None = None  # with `running`: since when the job does nothing; None: it does something


_ENDLESS = frozenset({StopReason.TASK_FAILED, StopReason.RESTART_ME})
RESTART_ME = 101  # the exit code by which PaddlePaddle's elastic launcher asks for another attempt


def advance(
    job: Job, report: Report | None, now: datetime, *, attempts_limit: int, jumps: Jumps = STEADY
) -> Move | None:
    """The next move of a placed job, given what its backend answered; None in `report`: it holds nothing. `jumps` are
    those of the clock that `now` is from."""
    if job.state is JobState.SCHEDULE:
        return _not_built(job, report, now, attempts_limit) or _started(report, now)
    if job.state is JobState.RUNNING:
        ended = _ended(job, report, now, attempts_limit) or _over_wall_time(job, now, jumps)
        return ended or (None if report is None else _quiet(job, report, now))
    if job.state is JobState.KILLING:
        return _stopped(job, report, now, attempts_limit)
    return None


def overdue(job: Job, now: datetime, *, schedule_limit: timedelta, jumps: Jumps = STEADY) -> Move | None:
    """The end of a job that has waited too long for its turn, here or in the queue of its cluster."""
    if not (job.state.waiting or job.waits_there) or jumps.elapsed(job.waits_since, now) < schedule_limit:
        return None
    waited = describe_duration(schedule_limit.total_seconds())
    why = f"not placed within {waited}" + (f": {job.queue_reason}" if job.queue_reason else "")
    to = JobState.SCHEDULE_TIMEOUT if job.state.waiting else JobState.KILLING
    return Move(to=to, at=now, why=why, stop=StopReason.QUEUE_TIME, error=why)


def move_on(job: Job, report: Report, now: datetime, *, within: timedelta) -> Move | None:
    """What a job does that waits in the queue of its cluster when it is expected to start there too late; None: it
    stays."""
    if not report.waits or report.about_at is None or report.about_at <= now + within:
        return None
    cluster = job.placement.cluster if job.placement else ""
    why = f"{cluster} would start it at about {report.about_at:%Y-%m-%d %H:%M} UTC, and it may be sooner elsewhere"
    return Move(to=JobState.KILLING, at=now, why=why, stop=StopReason.MOVED_ON, error=why)


def kill(job: Job, now: datetime, *, by: str) -> Move | None:
    """The move that a kill asks for; None where the job is being stopped already."""
    why = f"killed by {by}"
    if job.state.final:
        raise ConflictError(f"{job.id} has ended already ({job.state.label})")
    if job.state is JobState.KILLING:
        return None
    to = JobState.KILLED if job.state.waiting else JobState.KILLING
    return Move(to=to, at=now, why=why, stop=StopReason.ASKED, error=why)


def apply(job: Job, move: Move) -> Job:
    """The record after the move, or ConflictError if the table has no such move."""
    if move.to not in MOVES[job.state]:
        raise ConflictError(f"{job.id} cannot go from {job.state.label} to {move.to.label}")
    changed = replace(job, state=move.to, version=job.version + 1, queue_reason="")
    if move.to is JobState.QUEUE:
        retries = job.retries if move.stop is None else {**job.retries, move.stop: job.retries.get(move.stop, 0) + 1}
        queued_at = move.at if job.state.held else job.queued_at
        again = replace(changed, retries=retries, queued_at=queued_at, queue_reason=move.why)
        if move.passes:
            again = replace(again, retries=job.retries, passed={**job.passed, move.passes: move.why})
        return replace(again, placement=None, stop=None, error="", running_since=None)
    if move.to is JobState.SCHEDULE:
        return replace(changed, attempt=job.attempt + 1, placement=move.placement)
    if move.to is JobState.RUNNING and job.state is JobState.RUNNING:
        return replace(changed, quiet_since=move.quiet_since)
    changed = replace(changed, quiet_since=None)
    if move.to is JobState.RUNNING:
        return replace(changed, started_at=job.started_at or move.at, running_since=move.at)
    if move.to is JobState.KILLING:
        return replace(changed, stop=move.stop, error=move.error)
    return replace(changed, stop=job.stop or move.stop, error=move.error, finished_at=move.at)


def first_failed(report: Report) -> TaskReport | None:
    """The task that failed first, by the time its end was seen on its node."""
    failed = [task for task in report.tasks if task.state is TaskState.FAILED]
    return min(failed, key=lambda task: (task.ended_at is None, task.ended_at), default=None)


def _not_built(job: Job, report: Report | None, now: datetime, attempts_limit: int) -> Move | None:
    """The end of a job of which a task failed before its program began: its packages could not be built."""
    if report is None or report.stop is not None:
        return None
    unbuilt = [task for task in report.tasks if task.state is TaskState.FAILED and task.started_at is None]
    if not unbuilt or _role_failed(job, report) is None:
        return None
    why = f"{unbuilt[0].name} failed first: {unbuilt[0].outcome}"
    if not report.ended:
        return Move(to=JobState.KILLING, at=now, why=why, stop=StopReason.TASK_FAILED, error=why)
    at = _last_end(report, now)
    return _again_or_failed(job, StopReason.TASK_FAILED, why, now, at, attempts_limit, report)


def _started(report: Report | None, now: datetime) -> Move | None:
    if report is None or not report.started:
        return None
    if report.stop is not None and report.started_at is None:
        return Move(to=JobState.KILLING, at=now, why=report.why, stop=report.stop, error=report.why)
    # A task may have ended between two looks: the job still shows `running`, from when it did.
    return Move(to=JobState.RUNNING, at=report.started_at or now, why=_tasks_started(len(report.tasks)))


def _tasks_started(count: int) -> str:
    return "its task started" if count == 1 else f"all {count} tasks started"


def _ended(job: Job, report: Report | None, now: datetime, attempts_limit: int) -> Move | None:
    if report is None:
        why = f"{job.handle} is gone from its cluster"
        return _again_or_failed(job, StopReason.NODE_LOST, why, now, now, attempts_limit)
    done = _why_done(job, report)
    stopped = None if report.stop is not None and done else _why_stopped(job, report)
    if stopped is not None:
        stop, why = stopped
        if not report.ended or ENDS[stop] not in MOVES[job.state]:
            return Move(to=JobState.KILLING, at=now, why=why, stop=stop, error=why)
        return _again_or_failed(job, stop, why, now, _last_end(report, now), attempts_limit, report)
    if done:
        if not report.ended:
            return Move(to=JobState.KILLING, at=now, why=done, stop=StopReason.DONE)
        return _again_or_done(job, done, now, _last_end(report, now))
    return None


def _why_stopped(job: Job, report: Report) -> tuple[StopReason, str] | None:
    if report.stop is not None:
        return report.stop, report.why
    if failed := _role_failed(job, report):
        asked = failed.exit_code == RESTART_ME
        line = "" if asked else causes.line_of(failed)
        how = f"{line} ({failed.outcome})" if line else failed.outcome
        why = f"{failed.name} {'asked to be started again' if asked else 'failed first'}: {how}"
        return StopReason.RESTART_ME if asked else StopReason.TASK_FAILED, why
    if lost := [task.name for task in report.tasks if task.state is TaskState.LOST]:
        return StopReason.NODE_LOST, f"{', '.join(lost)} vanished with its node"
    return None


def _again_or_done(job: Job, why: str, now: datetime, ended_at: datetime) -> Move:
    """The end of a job that has succeeded, unless it is to go on until it is killed."""
    if job.spec.retry.after_success:
        again = f"{why}; attempt {job.attempt + 1} follows, as it goes on until it is killed"
        return Move(to=JobState.QUEUE, at=now, why=again, stop=StopReason.DONE)
    return Move(to=ENDS[StopReason.DONE], at=ended_at, why=why, stop=StopReason.DONE)


def _again_or_failed(
    job: Job, stop: StopReason, why: str, now: datetime, ended_at: datetime, limit: int, report: Report | None = None
) -> Move:
    """Another attempt, or the end of a job that has had all of its attempts, or that another would not help."""
    if stop not in RETRIED:
        return Move(to=ENDS[stop], at=ended_at, why=why, stop=stop, error=why)
    allowed, used = retries_allowed(job.spec.retry, stop, limit), job.retries.get(stop, 0)
    if used < allowed and (hopeless := _hopeless(job, stop, report)):
        why = f"{why}; no attempt follows, since {hopeless}"
        return Move(to=ENDS[stop], at=ended_at, why=why, stop=stop, error=why)
    if job.spec.retry.endless and stop in _ENDLESS:
        again = f"{why}; attempt {job.attempt + 1} follows (retry {used + 1})"
        return Move(to=JobState.QUEUE, at=now, why=again, stop=stop)
    if used < allowed:
        again = f"{why}; attempt {job.attempt + 1} follows (retry {used + 1} of {allowed})"
        return Move(to=JobState.QUEUE, at=now, why=again, stop=stop)
    if used:
        why = f"{why}, after {used} of {allowed} retries"
    return Move(to=ENDS[stop], at=ended_at, why=why, stop=stop, error=why)


def _hopeless(job: Job, stop: StopReason, report: Report | None) -> str:
    """Why another attempt would fail as this one did, where the job asks to be spared that; "": it might not."""
    if not job.spec.retry.by_cause or stop is not StopReason.TASK_FAILED or report is None:
        return ""
    failed = first_failed(report)
    cause = None if failed is None else causes.of_task(failed)
    return cause.what if cause is not None and cause.class_ is causes.Class.PERMANENT else ""


def retries_allowed(retry: Retry, stop: StopReason, attempts_limit: int) -> int:
    """How often a job may be started again for this reason."""
    asked = {
        StopReason.TASK_FAILED: retry.user_error,
        StopReason.RESTART_ME: retry.restart_me,
        StopReason.NODE_LOST: retry.node_lost,
        StopReason.PREEMPTED: retry.preempted,
    }[stop]
    return attempts_limit - 1 if asked is None else asked


def _over_wall_time(job: Job, now: datetime, jumps: Jumps) -> Move | None:
    limit, asked = job.wall_time_seconds, job.spec.wall_time_seconds
    if limit is None or job.running_since is None:
        return None
    if jumps.elapsed(job.running_since, now) < timedelta(seconds=limit):
        return None
    why = f"ran longer than its wall_time {format_duration(limit)}"
    if limit != asked:
        of = "" if asked is None else f" of its wall_time {format_duration(asked)}"
        why = f"ran out of the day's minutes: when it started, {format_duration(limit)}{of} were left"
    return Move(to=JobState.KILLING, at=now, why=why, stop=StopReason.WALL_TIME, error=why)


def _quiet(job: Job, report: Report, now: datetime) -> Move | None:
    """What is to be done about a job that has begun to do nothing, or has stopped doing nothing."""
    since = _quiet_since(job, report)
    if since is None:
        again = "it does something again"
        return Move(to=JobState.RUNNING, at=now, why=again) if job.quiet_since else None
    why = f"no log line and no use of CPU or GPU since {since:%H:%M:%S} UTC: it seems to hang"
    if job.spec.hang.kill:
        return Move(to=JobState.KILLING, at=now, why=why, stop=StopReason.HUNG, error=why)
    return Move(to=JobState.RUNNING, at=now, why=why, quiet_since=since) if since != job.quiet_since else None


def _quiet_since(job: Job, report: Report) -> datetime | None:
    """Since when every task that the job waits for does nothing; None: one of them does something."""
    roles = [role.name for role in job.spec.roles if role.successes_needed or job.spec.first_role_ends]
    awaited = [task for name in roles for task in _of_role(report, name) if not task.state.ended]
    times = [task.quiet_since for task in awaited]
    return max((time for time in times if time), default=None) if all(times) else None


def _stopped(job: Job, report: Report | None, now: datetime, attempts_limit: int) -> Move | None:
    if report is not None and not report.ended:
        return None
    stop = job.stop or StopReason.ASKED
    at = now if report is None else _last_end(report, now)
    if stop in RETRIED:
        return _again_or_failed(job, stop, job.error or stop.value, now, at, attempts_limit, report)
    if stop is StopReason.DONE:
        return _again_or_done(job, "nothing of it runs any more", now, at)
    if stop is StopReason.MOVED_ON and job.placement is not None:
        return Move(to=ENDS[stop], at=now, why=job.error, passes=job.placement.cluster)
    return Move(to=ENDS[stop], at=at, why="nothing of it runs any more", stop=stop, error=job.error)


def _last_end(report: Report, now: datetime) -> datetime:
    """When the last task ended, where that is known of all: who looks late, as after a crash, bills nobody for it."""
    ends = [task.ended_at or now for task in report.tasks]
    return max(ends, default=now)


def _role_failed(job: Job, report: Report) -> TaskReport | None:
    for role in job.spec.roles:
        failed = [task for task in _of_role(report, role.name) if task.state is TaskState.FAILED]
        if role.min_failed is not None and len(failed) >= role.min_failed:
            return first_failed(report)
    return None


def _why_done(job: Job, report: Report) -> str:
    """What makes the job a success; "": nothing yet."""
    succeeded = {
        role.name: [task for task in _of_role(report, role.name) if task.state is TaskState.SUCCEEDED]
        for role in job.spec.roles
    }
    enough = [role for role in job.spec.roles if len(succeeded[role.name]) >= role.successes_needed]
    if not job.spec.first_role_ends:
        return "every task that it waits for succeeded" if len(enough) == len(job.spec.roles) else ""
    for role in enough:
        if needed := role.successes_needed:
            by_time = sorted(succeeded[role.name], key=lambda task: (task.ended_at is None, task.ended_at))
            return f"{by_time[needed - 1].name} succeeded, and so has {role.name} as a whole ({needed} of {role.count})"
    lost = any(task.state is TaskState.LOST for task in report.tasks)
    return "all of its tasks have ended" if report.ended and not lost else ""


def _of_role(report: Report, role: str) -> list[TaskReport]:
    return [task for task in report.tasks if task.name.rpartition("-")[0] == role]
