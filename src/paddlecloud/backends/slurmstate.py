"""What Slurm's words for a job mean to us: pure.

PENDING, CONFIGURING, REQUEUED, …    its tasks are starting, and wait for what Slurm says
the same, of one that had begun      it was put back into the queue: another attempt follows
RUNNING, COMPLETING, SUSPENDED, …    what the tasks' own folders say
COMPLETED, FAILED                    the same; a task that has left no word has failed, or was lost if it had begun
TIMEOUT, DEADLINE                    ended for its time
PREEMPTED, NODE_FAIL, BOOT_FAIL      ended for something that is not its fault: another attempt follows
CANCELLED                            killed, by who has cancelled it there
OUT_OF_MEMORY, …                     tasks that have left no word have failed of it

A task that was told to stop by Slurm has not ended by itself, whatever its exit code is: trainers save their model and
exit with 0. Which of these reports a handle gets is decided in slurmverdict.py.
"""

from __future__ import annotations

import signal
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from msgspec.structs import replace

from paddlecloud.model.state import StopReason
from paddlecloud.model.task import Report, TaskReport, TaskState

CANCELLED = "CANCELLED"
COMPLETING = "COMPLETING"
WAITING = frozenset(
    {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", "POWER_UP_NODE"}
)
ENDED = frozenset(
    {"COMPLETED", "FAILED", CANCELLED, "TIMEOUT", "DEADLINE", "PREEMPTED", "NODE_FAIL", "BOOT_FAIL"}
    | {"OUT_OF_MEMORY", "REVOKED", "SPECIAL_EXIT", "LAUNCH_FAILED"}
)
FORGOTTEN = "FORGOTTEN"  # ours: neither the controller nor the accounting knows it
_OUT_OF_TIME = frozenset({"TIMEOUT", "DEADLINE"})
_NODE_LOST = frozenset({"NODE_FAIL", "BOOT_FAIL"})
_BY_ITSELF = frozenset({"COMPLETED", "FAILED"})
_BY_CLUSTER = frozenset({signal.SIGTERM, signal.SIGKILL})
_DOUBT = timedelta(seconds=5)  # by then Slurm has said that it is the one who killed
# Slurm tells tasks to stop and says why only when the last of them is gone: after KillWait, or a partition's GraceTime.
_LONGEST_GRACE = timedelta(minutes=10)

_REASONS = {
    "None": "",
    "Priority": "others are before it",
    "Resources": "not enough is free",
    "Dependency": "it waits for another job",
    "JobHeldUser": "it is held by its user",
    "JobHeldAdmin": "it is held by an administrator",
    "PartitionDown": "its partition is down",
    "PartitionTimeLimit": "its time is more than its partition allows",
    "PartitionNodeLimit": "it asks for more nodes than its partition has",
    "ReqNodeNotAvail": "a node that it needs is not available",
    "QOSMaxJobsPerUserLimit": "as many jobs run as its QoS allows",
    "AssocGrpCpuLimit": "its account has as many CPUs as it may",
    "AssocGrpGRES": "its account has as many GPUs as it may",
    "BeginTime": "it may not begin yet",
    "Reservation": "it waits for its reservation",
    "Licenses": "it waits for a license",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A job as Slurm sees it; of one that waits, `start_at` is what Slurm expects."""

    id: int
    name: str = ""  # where Slurm was asked for it
    user: str = ""  # the account that submitted it
    state: str
    reason: str = ""
    start_at: datetime | None = None
    end_at: datetime | None = None  # of one that runs: when its time is over

    @property
    def ended(self) -> bool:
        return self.state in ENDED


def word(text: str) -> str:
    """The state in what Slurm prints: `CANCELLED by 1000` and `CANCELLED+` are one."""
    return text.split(" ", maxsplit=1)[0].rstrip("+") if text else ""


def combine(parts: Sequence[Seen]) -> Seen:
    """A heterogeneous job is one of several, and has ended when they have; the one that ended worst tells why."""
    first = min(parts, key=lambda part: part.id)
    if running := [part for part in parts if not part.ended]:
        waiting = [part for part in running if part.state in WAITING]
        return waiting[0] if waiting else running[0]
    worse = [part for part in parts if part.state != "COMPLETED"]
    return worse[0] if worse else first


def by_id(parts: Iterable[Seen | None]) -> dict[int, Seen]:
    """Jobs by their numbers: all parts of a heterogeneous one have the first one's."""
    found: dict[int, list[Seen]] = {}
    for part in parts:
        if part is not None:
            found.setdefault(part.id, []).append(part)
    return {job: combine(parts) for job, parts in found.items()}


def waiting(seen: Seen, tasks: Sequence[TaskReport], cluster: str) -> Report:
    first = seen.reason.partition(",")[0]
    known = _REASONS.get(first, seen.reason)
    said = f"{known} ({seen.reason})" if known and known != seen.reason else known
    why = f"in the queue of Slurm on {cluster}, job {seen.id}" + (f": {said}" if said else "")
    return Report(tasks=tuple(tasks), waits=why, about_at=seen.start_at)


def put_back(seen: Seen, tasks: Sequence[TaskReport], now: datetime) -> Report:
    """It waits again, though it had begun."""
    why = f"Slurm has put it back into its queue (job {seen.id}: {seen.state})"
    final = tuple(
        task if task.state.ended else replace(task, state=TaskState.LOST, reason=why, ended_at=now) for task in tasks
    )
    return Report(tasks=final, stop=StopReason.PREEMPTED, why=why)


def running(seen: Seen, tasks: Sequence[TaskReport], now: datetime, *, told: Collection[str] = ()) -> Report:
    """A task that was killed, or told to stop, while Slurm has not said what it did is not yet known to have ended.
    `told` are the names of those that were, and not at our own wish."""
    doubt: timedelta | None = _DOUBT
    told_doubt: timedelta | None = _DOUBT if all(task.state.ended for task in tasks) else _LONGEST_GRACE
    if seen.state == COMPLETING or (seen.end_at is not None and now >= seen.end_at):
        doubt = told_doubt = None  # for ever: Slurm is about to say it
    return Report(
        tasks=tuple(
            _in_doubt(task, now) if _doubtful(task, now, told_doubt if task.name in told else doubt, told) else task
            for task in tasks
        )
    )


def ending(tasks: Sequence[TaskReport], now: datetime, *, told: Collection[str] = ()) -> Report:
    """Slurm has ended it, and the ends of some tasks may still come: those that it killed wait for them."""
    return Report(tasks=tuple(_in_doubt(task, now) if _doubtful(task, now, None, told) else task for task in tasks))


def ended(
    seen: Seen, tasks: Sequence[TaskReport], now: datetime, *, stopped: bool, said: str, told: Collection[str] = ()
) -> Report:
    """`stopped`: at our own wish; `said`: the last words of the batch script."""
    stop, why = (None, "") if stopped else _stop(seen) or _vanished(seen, tasks, told)
    final = tuple(
        _final(task, seen, now, said, stopped=stopped, told=stop is not None and task.name in told) for task in tasks
    )
    if all(task.state is TaskState.SUCCEEDED for task in final):
        return Report(tasks=final)
    return Report(tasks=final, stop=stop, why=why)


def _stop(seen: Seen) -> tuple[StopReason, str] | None:
    if seen.state in _OUT_OF_TIME:
        return StopReason.WALL_TIME, f"ran longer than Slurm allows it (job {seen.id}: {seen.state})"
    if seen.state == "PREEMPTED":
        return StopReason.PREEMPTED, f"Slurm has taken its room for another job (job {seen.id}: PREEMPTED)"
    if seen.state in _NODE_LOST:
        return StopReason.NODE_LOST, f"a node of it has failed (job {seen.id}: {seen.state})"
    if seen.state == CANCELLED:
        return StopReason.ASKED, f"cancelled in Slurm (job {seen.id})"
    return None


def _vanished(seen: Seen, tasks: Sequence[TaskReport], told: Collection[str]) -> tuple[StopReason | None, str]:
    """A gang that ended with a task that vanished, and of which the others were killed: not by their own fault."""
    gone = [task.name for task in tasks if _left_no_word(task, seen)]
    failed = [task for task in tasks if task.state is TaskState.FAILED]
    if not gone or not all(_killed(task) or task.name in told for task in failed):
        return None, ""
    return StopReason.NODE_LOST, f"{', '.join(gone)} vanished (job {seen.id}: {seen.state})"


def _final(task: TaskReport, seen: Seen, now: datetime, said: str, *, stopped: bool, told: bool) -> TaskReport:
    memory = seen.state == "OUT_OF_MEMORY"
    if told and task.state is TaskState.SUCCEEDED:
        return replace(task, state=TaskState.FAILED, reason=f"told to stop by Slurm ({seen.state}), exit code 0")
    if task.state.ended:
        killed = task.signal == signal.SIGKILL or task.exit_code == 128 + signal.SIGKILL
        return replace(task, reason=_out_of_memory(seen)) if memory and killed else task
    lost = seen.state in _NODE_LOST or seen.state in ("PREEMPTED", "REVOKED", FORGOTTEN)
    lost = lost or (not stopped and _left_no_word(task, seen))
    return replace(
        task,
        state=TaskState.LOST if lost else TaskState.FAILED,
        reason=_out_of_memory(seen) if memory else _without_word(seen, said),
        ended_at=task.ended_at or seen.end_at or now,
    )


def _out_of_memory(seen: Seen) -> str:
    return f"out of memory (Slurm job {seen.id})"


def _without_word(seen: Seen, said: str) -> str:
    what = {"CANCELLED": "was cancelled in Slurm", "TIMEOUT": "ran out of Slurm's time"}.get(seen.state)
    words = f"job {seen.id} {what or f'ended in Slurm as {seen.state}'}"
    return f"{words}: {said}" if said and not what else words


def _left_no_word(task: TaskReport, seen: Seen) -> bool:
    """It had begun, and neither it nor Slurm says how it ended: its node, or what watched it, died."""
    return task.state is TaskState.RUNNING and seen.state in _BY_ITSELF


def _doubtful(task: TaskReport, now: datetime, doubt: timedelta | None, told: Collection[str]) -> bool:
    """Whether Slurm may still say that it ended the task. `doubt`: how long after its end; None: for ever."""
    if not task.state.ended or not (task.name in told or _killed(task)):
        return False
    return doubt is None or task.ended_at is None or now - task.ended_at < doubt


def _killed(task: TaskReport) -> bool:
    number = task.signal if task.exit_code is None else task.exit_code - 128  # so a shell tells it of its child
    return task.state is TaskState.FAILED and number in _BY_CLUSTER


def _in_doubt(task: TaskReport, now: datetime) -> TaskReport:
    return TaskReport(name=task.name, state=TaskState.RUNNING, started_at=task.started_at or now)
