"""A job as `show` prints it: its facts, its tasks, its history, and how it ended."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import TYPE_CHECKING

from paddlecloud.cli import explain, shell, show
from paddlecloud.cli.printable import printable
from paddlecloud.cli.show import Column, counted
from paddlecloud.model.job import PSERVER, Job, Moved, Resources, RoleSpec
from paddlecloud.model.units import describe_counts, format_duration, format_size

if TYPE_CHECKING:
    from paddlecloud.model.task import TaskReport
    from paddlecloud.model.views import JobDetail

_DEFAULT_SHARE = "the default share"


def describe(detail: JobDetail, now: datetime) -> str:
    job = detail.job
    colour = show.state_colour(job.state) if shell.has_colour(sys.stdout) else ""
    parts = [show.fields(_facts(detail, now), colours={"state": colour})]
    if detail.tasks:
        parts.append(show.table(detail.tasks, _task_columns(detail, now), width=shell.width(sys.stdout)))
    if detail.history:
        lines = [f"{show.local_time(moved.at)}  {move_text(moved)}" for moved in detail.history]
        parts.append("\n".join(["history:", *(f"  {printable(line)}" for line in lines)]))
    if job.state.final:
        parts.append("\n".join(map(printable, explain.ending(detail))))
    return "\n\n".join(parts)


def move_text(moved: Moved) -> str:
    begin = f"{moved.from_state.label} -> " if moved.from_state else ""
    return f"{begin}{moved.to_state.label}" + (f"  {moved.why}" if moved.why else "")


def ran(job: Job, now: datetime) -> str:
    return _span(job.started_at, job.finished_at, now)


def _facts(detail: JobDetail, now: datetime) -> list[tuple[str, str]]:
    job, spec = detail.job, detail.job.spec
    trainer = next((role for role in spec.roles if role.name != PSERVER), spec.roles[0])
    return [
        ("job", job.id),
        ("name", spec.name),
        ("state", job.state.label),
        ("why", explain.why(job, detail.forecast, now)),
        ("user", job.user),
        ("cluster", job.placement.cluster if job.placement else spec.cluster),
        ("queue", spec.queue),
        ("type", " ".join(filter(None, [spec.job_type, spec.distribute]))),
        ("image", spec.image),
        ("command", trainer.command),
        ("inputs", ", ".join(one.source for one in spec.inputs)),
        ("tasks", describe_counts({role.name: role.count for role in spec.roles})),
        ("each", _shares(job)),
        ("priority", str(spec.priority) if spec.priority else ""),
        ("attempt", str(job.attempt) if job.attempt > 1 else ""),
        ("submitted", show.local_time(job.created_at)),
        ("started", show.local_time(job.started_at)),
        ("finished", show.local_time(job.finished_at)),
        ("ran", ran(job, now)),
        ("limit", _limit(job)),
        *((removed.kind.value, removed.words) for removed in detail.removed),
        ("sending", detail.sending),
        ("notes", "\n".join(detail.notes)),
    ]


def _limit(job: Job) -> str:
    limit, asked = job.wall_time_seconds, job.spec.wall_time_seconds
    if limit is None or limit == asked:
        return "" if limit is None else format_duration(limit)
    wanted = "" if asked is None else f"; {format_duration(asked)} was asked for"
    return f"{format_duration(limit)} (all that was left of the day's minutes{wanted})"


def _shares(job: Job) -> str:
    """What a task of each role got or, while it waits, asks for."""
    shares = {role.name: _share(job, role) for role in job.spec.roles}
    if len(set(shares.values())) == 1:
        return next(iter(shares.values()))
    return "; ".join(f"{name} {share}" for name, share in shares.items())


def _share(job: Job, role: RoleSpec) -> str:
    placed = job.placement.tasks if job.placement else ()
    got = next((task.resources for task in placed if task.role == role.name), role.resources)
    if got is None:
        return _DEFAULT_SHARE
    return _amount(got) + (f" ({_DEFAULT_SHARE})" if role.resources is None else "")


def _amount(amount: Resources) -> str:
    words = [counted(amount.cpus, "CPU")]
    if amount.memory_bytes:
        words.append(format_size(amount.memory_bytes))
    if amount.gpus:
        words.append(counted(amount.gpus, "GPU"))
    return ", ".join(words)


def _task_columns(detail: JobDetail, now: datetime) -> list[Column[TaskReport]]:
    stopped = {task.name for task in detail.tasks if explain.was_stopped(detail, task)}
    return [
        Column("TASK", lambda task: task.name),
        Column("STATE", lambda task: "stopped" if task.name in stopped else task.state.value),
        Column("RAN", lambda task: _span(task.started_at, task.ended_at, now), drop=1),
        Column("RESTARTS", lambda task: str(task.restarts), drop=2),
        Column("OUTCOME", lambda task: task.outcome if task.state.ended and task.name not in stopped else ""),
    ]


def _span(start: datetime | None, end: datetime | None, now: datetime) -> str:
    return "" if start is None else show.short_time(((end or now) - start).total_seconds())
