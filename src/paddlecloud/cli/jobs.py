"""Verbs about jobs that are there already: ls, show, wait, kill, queue, events, clusters."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from paddlecloud.cli import explain, shell, show
from paddlecloud.cli.connect import connect
from paddlecloud.cli.exits import job_exit_code
from paddlecloud.cli.parser import Parser, Setup, add_output
from paddlecloud.cli.show import Column
from paddlecloud.model.errors import InvalidError
from paddlecloud.model.job import PSERVER, Job, Moved, Resources
from paddlecloud.model.state import LIVE, WAITING, JobState
from paddlecloud.model.units import format_duration, format_size, parse_duration

if TYPE_CHECKING:
    from paddlecloud.model.task import TaskReport
    from paddlecloud.model.views import Cluster, JobDetail

_LIMIT = 100


def ls(parser: Parser) -> None:
    parser.add_argument("path", nargs="?", metavar="JOB[:PATH]", help="list the results of a job instead of jobs")
    parser.add_argument("--state", action="append", metavar="STATE", help="only these, such as running; or live")
    parser.add_argument("--name", help="only jobs of this name")
    parser.add_argument("--user", help="only jobs of this user (for admins)")
    parser.add_argument("-A", "--all", action="store_true", help="jobs of all users (for admins)")
    parser.add_argument("-n", "--limit", type=int, default=_LIMIT, help=f"at most so many; 0: all ({_LIMIT})")
    add_output(parser)
    parser.set_defaults(run=_ls)


def show_(parser: Parser) -> None:
    _add_job(parser)
    add_output(parser)
    parser.set_defaults(run=_show)


def wait(parser: Parser) -> None:
    _add_job(parser)
    parser.add_argument("--timeout", metavar="TIME", help="wait at most so long (30m, 00:30:00); then exit with 101")
    add_exit_code(parser)
    add_output(parser)
    parser.set_defaults(run=_wait)


def kill(parser: Parser) -> None:
    parser.add_argument("jobs", nargs="+", metavar="JOB", help="id, the beginning of one, or a name")
    parser.add_argument("--wait", action="store_true", help="wait until nothing of them runs")
    add_output(parser)
    parser.set_defaults(run=_kill)


def queue(parser: Parser) -> None:
    parser.add_argument("-A", "--all", action="store_true", help="jobs of all users (for admins)")
    add_output(parser)
    parser.set_defaults(run=_queue)


def events(parser: Parser) -> None:
    parser.add_argument("job", nargs="?", metavar="JOB", help="of this job only")
    parser.add_argument("-f", "--follow", action="store_true", help="go on as they happen")
    parser.add_argument("--after", type=int, metavar="SEQ", help="only those after this number")
    add_output(parser)
    parser.set_defaults(run=_events)


def clusters(parser: Parser) -> None:
    add_output(parser)
    parser.set_defaults(run=_clusters)


VERBS: Mapping[str, Setup] = {
    "ls": ls,
    "show": show_,
    "wait": wait,
    "kill": kill,
    "queue": queue,
    "events": events,
    "clusters": clusters,
}


def add_exit_code(parser: Parser) -> None:
    parser.add_argument(
        "--exit-code", choices=("state", "job"), default="state", help="job: pass the failed task's own exit code on"
    )


def print_jobs(jobs: Sequence[Job], output: str, none: str) -> None:
    show.many(jobs, job_columns(shell.now()), output, lambda job: job.id, none)


def job_columns(now: datetime) -> list[Column[Job]]:
    return [
        Column("JOB", lambda job: job.id),
        Column("NAME", lambda job: job.spec.name),
        Column("STATE", lambda job: job.state.label, colour=lambda job: show.state_colour(job.state)),
        Column("TASKS", lambda job: str(job.spec.tasks), drop=2),
        Column("AGE", lambda job: show.short_time((now - job.created_at).total_seconds()), drop=1),
        Column("RAN", lambda job: _ran(job, now), drop=3),
        Column("USER", lambda job: job.user, wide=True),
        Column("CLUSTER", lambda job: job.placement.cluster if job.placement else job.spec.cluster, wide=True),
        Column("PRIORITY", lambda job: str(job.spec.priority), wide=True),
        Column("WHY", lambda job: job.queue_reason or job.error, drop=4),
    ]


def describe(detail: JobDetail, now: datetime) -> str:
    """A job as `show` prints it."""
    job = detail.job
    parts = [show.fields(_facts(detail, now))]
    if detail.tasks:
        parts.append(show.table(detail.tasks, _task_columns(now), width=shell.width(sys.stdout)))
    if detail.history:
        lines = [f"{show.local_time(moved.at)}  {_move_text(moved)}" for moved in detail.history]
        parts.append("\n".join(["history:", *(f"  {line}" for line in lines)]))
    if job.state.final:
        parts.append("\n".join(explain.ending(detail)))
    return "\n\n".join(parts)


def _ls(args: Namespace) -> None:
    if args.path is not None:
        from paddlecloud.cli.files import list_files

        list_files(args.path, args.output)
        return
    states = _states(args.state or ())
    limit = args.limit or None
    with connect() as client:
        jobs = client.list(states=states, name=args.name, user=args.user, everyone=args.all, limit=limit)
    print_jobs(jobs, args.output, "no jobs; the first one: paddlecloud run FOLDER -- sh run.sh")
    if len(jobs) == limit:
        shell.talk(f"the newest {limit}; -n 0 lists all")


def _show(args: Namespace) -> None:
    with connect() as client:
        detail = client.get(args.job)
    show.one(detail, args.output, detail.job.id, lambda one: describe(one, shell.now()))


def _wait(args: Namespace) -> int:
    seconds = None if args.timeout is None else parse_duration(args.timeout, "timeout")
    with connect() as client:
        detail = client.get(client.wait(args.job, timeout=seconds).id)
    if args.output in ("table", "wide"):
        print(f"{detail.job.id}  {show.state_text(detail.job.state, sys.stdout)}")
    else:
        show.one(detail, args.output, detail.job.id, lambda one: one.job.id)
    shell.talk("\n".join(explain.ending(detail)))
    return job_exit_code(detail, own=args.exit_code == "job")


def _kill(args: Namespace) -> None:
    with connect() as client:
        jobs = [client.kill(client.resolve(ref)) for ref in args.jobs]
        if args.wait:
            jobs = [client.wait(job.id) for job in jobs]
    if args.output == "table":
        for job in jobs:
            print(f"{job.id}  {show.state_text(job.state, sys.stdout)}")
    else:
        print_jobs(jobs, args.output, "")


def _queue(args: Namespace) -> None:
    now = shell.now()
    with connect() as client:
        waiting = [client.get(job.id) for job in client.list(states=sorted(WAITING), everyone=args.all)]
    waiting = [detail for detail in waiting if detail.job.state.waiting]
    waiting.sort(key=lambda one: one.forecast.position if one.forecast else sys.maxsize)
    columns: list[Column[JobDetail]] = [
        Column("POSITION", lambda one: str(one.forecast.position) if one.forecast else ""),
        Column("JOB", lambda one: one.job.id),
        Column("NAME", lambda one: one.job.spec.name, drop=3),
        Column("USER", lambda one: one.job.user, wide=not args.all, drop=2),
        Column("WAITS", lambda one: show.short_time((now - one.job.created_at).total_seconds()), drop=2),
        Column("STARTS", lambda one: explain.about(one.forecast, now) if one.forecast else ""),
        Column("WHY", lambda one: one.job.queue_reason or one.job.state.label),
    ]
    show.many(waiting, columns, args.output, lambda one: one.job.id, "no job waits")


def _events(args: Namespace) -> None:
    with connect() as client:
        found = client.events(args.job, follow=args.follow, after=args.after)
        if args.output == "table" or args.follow:
            for moved in found:
                _print_event(moved, args.output)
            return
        rows = list(found)
    columns: list[Column[Moved]] = [
        Column("SEQ", lambda moved: str(moved.seq)),
        Column("TIME", lambda moved: show.local_time(moved.at)),
        Column("JOB", lambda moved: moved.job),
        Column("USER", lambda moved: moved.user),
        Column("ATTEMPT", lambda moved: str(moved.attempt)),
        Column("FROM", lambda moved: moved.from_state.label if moved.from_state else ""),
        Column("TO", lambda moved: moved.to_state.label),
        Column("WHY", lambda moved: moved.why),
    ]
    show.many(rows, columns, args.output, lambda moved: moved.job, "nothing happened yet")


def _print_event(moved: Moved, output: str) -> None:
    """One event on one line, at once: a follower's reader is a person or a pipe."""
    if output in ("json", "yaml"):
        from paddlecloud.model import wire

        print(wire.encode(moved).decode(), flush=True)
    elif output == "name":
        print(moved.job, flush=True)
    else:
        print(f"{show.local_time(moved.at)}  {moved.job}  {_move_text(moved)}", flush=True)


def _clusters(args: Namespace) -> None:
    with connect() as client:
        found = client.clusters()
    columns: list[Column[Cluster]] = [
        Column("NAME", lambda one: one.name),
        Column("BACKEND", lambda one: one.backend, drop=3),
        Column("DEFAULT", lambda one: "yes" if one.default else "", drop=2),
        Column("POLICY", lambda one: one.policy, drop=1),
        Column("CPUS", lambda one: _of(one, lambda amount: f"{amount.cpus:g}")),
        Column("MEMORY", lambda one: _of(one, lambda amount: format_size(amount.memory_bytes))),
        Column("GPUS", lambda one: _of(one, lambda amount: str(amount.gpus))),
    ]
    show.many(found, columns, args.output, lambda one: one.name)


def _of(cluster: Cluster, amount: Callable[[Resources], str]) -> str:
    """`free/all` of one kind of resource."""
    if cluster.capacity is None:
        return "?"
    return f"{amount(cluster.free)}/{amount(cluster.capacity)}" if cluster.free else amount(cluster.capacity)


def _states(words: tuple[str, ...] | list[str]) -> list[JobState]:
    found: set[JobState] = set()
    for word in (part for text in words for part in text.split(",")):
        word = word.strip().replace(" ", "_")
        if word == "live":
            found |= LIVE
        elif word in set(JobState):
            found.add(JobState(word))
        else:
            raise InvalidError(f"state {word!r} is not known: it is live, {', '.join(JobState)}", field="state")
    return sorted(found)


def _add_job(parser: Parser) -> None:
    parser.add_argument("job", metavar="JOB", help="id, the beginning of one (4 digits or more), or a name")


def _facts(detail: JobDetail, now: datetime) -> list[tuple[str, str]]:
    job, spec = detail.job, detail.job.spec
    trainer = next((role for role in spec.roles if role.name != PSERVER), spec.roles[0])
    limit = spec.wall_time_seconds
    return [
        ("job", job.id),
        ("name", spec.name),
        ("state", show.state_text(job.state, sys.stdout)),
        ("why", explain.why_waiting(job, detail.forecast, now) if job.state.waiting else job.error),
        ("user", job.user),
        ("cluster", job.placement.cluster if job.placement else spec.cluster),
        ("type", " ".join(filter(None, [spec.job_type, spec.distribute]))),
        ("command", trainer.command),
        ("tasks", ", ".join(f"{role.count} {role.name}" for role in spec.roles)),
        ("each", _amount(trainer.resources)),
        ("priority", str(spec.priority) if spec.priority else ""),
        ("attempt", str(job.attempt) if job.attempt > 1 else ""),
        ("submitted", show.local_time(job.created_at)),
        ("started", show.local_time(job.started_at)),
        ("finished", show.local_time(job.finished_at)),
        ("ran", _ran(job, now)),
        ("limit", format_duration(limit) if limit is not None else ""),
    ]


def _task_columns(now: datetime) -> list[Column[TaskReport]]:
    return [
        Column("TASK", lambda task: task.name),
        Column("STATE", lambda task: task.state.value),
        Column("RAN", lambda task: _span(task.started_at, task.ended_at, now), drop=1),
        Column("RESTARTS", lambda task: str(task.restarts), drop=2),
        Column("OUTCOME", lambda task: task.outcome if task.state.ended else ""),
    ]


def _ran(job: Job, now: datetime) -> str:
    return _span(job.started_at, job.finished_at, now)


def _span(start: datetime | None, end: datetime | None, now: datetime) -> str:
    return "" if start is None else show.short_time(((end or now) - start).total_seconds())


def _amount(amount: Resources | None) -> str:
    if amount is None:
        return ""
    words = [f"{amount.cpus:g} CPUs"]
    if amount.memory_bytes:
        words.append(format_size(amount.memory_bytes))
    if amount.gpus:
        words.append(f"{amount.gpus} GPUs")
    return ", ".join(words)


def _move_text(moved: Moved) -> str:
    begin = f"{moved.from_state.label} -> " if moved.from_state else ""
    return f"{begin}{moved.to_state.label}" + (f"  {moved.why}" if moved.why else "")
