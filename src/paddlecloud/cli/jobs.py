"""Verbs about jobs that are there already: ls, show, wait, kill, queue, events."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from paddlecloud.cli import explain, shell, show
from paddlecloud.cli.connect import connect, last_job
from paddlecloud.cli.describe import describe, move_text, ran
from paddlecloud.cli.exits import OTHER, exit_code, job_exit_code
from paddlecloud.cli.parser import Parser, Setup, add_job, add_output, count
from paddlecloud.cli.printable import printable_json
from paddlecloud.cli.show import Column
from paddlecloud.cli.watch import see_placed
from paddlecloud.model.errors import InvalidError, PaddleCloudError, UnauthenticatedError, UnreachableError
from paddlecloud.model.job import Job, Moved
from paddlecloud.model.state import LIVE, WAITING, JobState
from paddlecloud.sdk.spec import duration

if TYPE_CHECKING:
    from paddlecloud.model.views import JobDetail
    from paddlecloud.sdk.client import Client

T = TypeVar("T")

_LIMIT = 100
_SHORT_NAME = 16
_LEAST_WHY = 40
_LOOK_SECONDS = 1.0
_NO_JOBS = "no jobs; the first one: paddlecloud run FOLDER -- sh run.sh"


def ls(parser: Parser) -> None:
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help="list files of the PFS (/pfs/…), or results of a job (JOB[:PATH])"
    )
    parser.add_argument("-r", "--recursive", action="store_true", help="with a path of the PFS: all that is below it")
    parser.add_argument("--state", action="append", metavar="STATE", help="only these, such as running; or live")
    parser.add_argument("--name", help="only jobs of this name")
    parser.add_argument("--user", help="only jobs of this user (for admins)")
    parser.add_argument("-A", "--all", action="store_true", help="jobs of all users (for admins)")
    parser.add_argument("-n", "--limit", type=count, help=f"at most so many; 0: all ({_LIMIT} jobs, all files)")
    parser.add_argument("-w", "--watch", action="store_true", help="go on: jobs that come or change are listed again")
    add_output(parser)
    parser.set_defaults(run=_ls)


def show_(parser: Parser) -> None:
    add_job(parser)
    add_output(parser)
    parser.set_defaults(run=_show)


def wait(parser: Parser) -> None:
    _add_jobs(parser, "*")
    parser.add_argument("--timeout", metavar="TIME", help="wait at most so long (30m, 00:30:00); then exit with 101")
    parser.epilog = "of several jobs the highest exit code is given"
    add_exit_code(parser)
    add_output(parser)
    parser.set_defaults(run=_wait)


def kill(parser: Parser) -> None:
    _add_jobs(parser, "+")
    parser.add_argument("--wait", action="store_true", help="wait until nothing of them runs")
    parser.add_argument(
        "--rm", "-rm", action="store_true", help="take them out of lists too, also those that have ended"
    )
    add_output(parser)
    parser.set_defaults(run=_kill)


def queue(parser: Parser) -> None:
    parser.add_argument("-A", "--all", action="store_true", help="jobs of all users (for admins)")
    add_output(parser)
    parser.set_defaults(run=_queue)


def events(parser: Parser) -> None:
    parser.add_argument("job", nargs="?", metavar="JOB", help="of this job only")
    parser.add_argument("-f", "--follow", action="store_true", help="go on as they happen")
    parser.add_argument("--after", type=count, metavar="SEQ", help="only those after this number")
    add_output(parser)
    parser.set_defaults(run=_events)


VERBS: Mapping[str, Setup] = {
    "ls": ls,
    "show": show_,
    "wait": wait,
    "kill": kill,
    "queue": queue,
    "events": events,
}


def add_exit_code(parser: Parser) -> None:
    parser.add_argument(
        "--exit-code", choices=("state", "job"), default="state", help="job: pass the failed task's own exit code on"
    )


def print_jobs(jobs: Sequence[Job], output: str, none: str, *, headed: bool = True) -> None:
    show.many(jobs, job_columns(shell.now()), output, lambda job: job.id, none, headed=headed)


def job_columns(now: datetime) -> list[Column[Job]]:
    return [
        Column("JOB", lambda job: job.id, short=lambda job: short_id(job.id)),
        Column("NAME", lambda job: job.spec.name, short=lambda job: show.cut(job.spec.name, _SHORT_NAME)),
        Column("STATE", lambda job: job.state.label, colour=lambda job: show.state_colour(job.state)),
        Column("TASKS", lambda job: str(job.spec.tasks), drop=2),
        Column("AGE", lambda job: show.short_time((now - job.created_at).total_seconds()), drop=1),
        Column("RAN", lambda job: ran(job, now), drop=3),
        Column("USER", lambda job: job.user, wide=True),
        Column("CLUSTER", lambda job: job.placement.cluster if job.placement else job.spec.cluster, wide=True),
        Column("QUEUE", lambda job: job.spec.queue, wide=True),
        Column("PRIORITY", lambda job: str(job.spec.priority), wide=True),
        Column(
            "WHY",
            lambda job: explain.why(job, None, now),
            short=lambda job: explain.why(job, None, now).replace(" failed first: ", ": ", 1),
            least=_LEAST_WHY,
        ),
    ]


def short_id(job: str) -> str:
    """The beginning of a job's id, as other commands take it."""
    return job[: len("job-") + 8]


def _ls(args: Namespace) -> None:
    if args.paths and args.watch:
        raise InvalidError("--watch follows jobs, not files: leave the path out", field="watch")
    if args.paths:
        from paddlecloud.cli import files

        files.ls(args.paths, args.output, recursive=args.recursive, limit=args.limit or None)
        return
    states = _states(args.state or ())
    limit = (_LIMIT if args.limit is None else args.limit) or None
    with connect() as client:
        jobs = client.list(states=states, name=args.name, user=args.user, everyone=args.all, limit=limit)
        filtered = args.state or args.name or args.user
        print_jobs(jobs, args.output, "no job matches" if filtered else _NO_JOBS)
        if len(jobs) == limit:
            shell.talk(f"the newest {limit}; -n 0 lists all")
        while args.watch:
            sys.stdout.flush()
            time.sleep(_LOOK_SECONDS)
            known = {job.id: _news(job) for job in jobs}
            jobs = client.list(states=states, name=args.name, user=args.user, everyone=args.all, limit=limit)
            changed = [job for job in reversed(jobs) if known.get(job.id) != _news(job)]
            if changed:
                print_jobs(changed, args.output, "", headed=not known)


def _news(job: Job) -> tuple[object, ...]:
    """What of a job is listed again when it changes: not its age, which always does."""
    return job.state, job.error, job.queue_reason, job.quiet_since, job.placement


def _show(args: Namespace) -> None:
    with connect() as client:
        detail = client.get(args.job or last_job(client))
    show.one(detail, args.output, detail.job.id, lambda one: describe(one, shell.now()))


def _wait(args: Namespace) -> int:
    seconds = None if args.timeout is None else duration(args.timeout, "--timeout")
    deadline = None if seconds is None else time.monotonic() + seconds
    with connect() as client:
        jobs, errors = each_job(args.jobs or [last_job(client)], lambda ref: client.get(ref).job.id)
        worst = _tell(errors)
        details = [_wait_for(client, job, deadline, args.output) for job in jobs]
    if args.output in ("json", "yaml") and len(args.jobs) > 1:
        show.many(details, (), args.output, lambda one: one.job.id)
    elif args.output not in ("table", "wide"):
        for detail in details:
            show.one(detail, args.output, detail.job.id, lambda one: one.job.id)
    return max([worst, *(job_exit_code(detail, own=args.exit_code == "job") for detail in details)])


def _wait_for(client: Client, job: str, deadline: float | None, output: str) -> JobDetail:
    """One of the jobs, told of as soon as it has ended: the others may go on for hours."""
    see_placed(client, job, deadline=deadline)
    left = None if deadline is None else max(0.0, deadline - time.monotonic())
    detail = client.get(client.wait(job, timeout=left).id)
    if output in ("table", "wide"):
        shell.say(f"{detail.job.id}  {show.state_text(detail.job.state, sys.stdout)}", flush=True)
    shell.talk(*explain.ending(detail))
    return detail


def _kill(args: Namespace) -> int:
    with connect() as client:
        jobs, errors = each_job(args.jobs, client.kill_and_hide if args.rm else client.kill)
        if args.wait:
            jobs = [client.wait(job.id) for job in jobs]
    if args.output == "table":
        for job in jobs:
            shell.say(f"{job.id}  {show.state_text(job.state, sys.stdout)}")
    else:
        print_jobs(jobs, args.output, "")
    return _tell(errors)


def each_job(refs: Sequence[str], work: Callable[[str], T]) -> tuple[list[T], list[PaddleCloudError]]:
    """What came of each of several jobs: one that is refused does not keep the others from being asked for."""
    done: list[T] = []
    errors: list[PaddleCloudError] = []
    for ref in refs:
        try:
            done.append(work(ref))
        except (UnreachableError, UnauthenticatedError):
            raise  # the next would fare no better
        except PaddleCloudError as error:
            errors.append(error)
    return done, errors


def _tell(errors: Sequence[PaddleCloudError]) -> int:
    """Say what went wrong; the exit code is theirs where all agree."""
    for error in errors:
        shell.talk(f"paddlecloud: {error.message}")
    codes = {exit_code(error) for error in errors}
    return OTHER if len(codes) > 1 else max(codes, default=0)


def _queue(args: Namespace) -> None:
    now = shell.now()
    with connect() as client:
        waiting = [client.get(job.id) for job in client.list(states=sorted(WAITING), everyone=args.all)]
    waiting = [detail for detail in waiting if detail.job.state.waiting]
    waiting.sort(key=lambda one: one.forecast.position if one.forecast else sys.maxsize)
    show.many(waiting, queue_columns(now, everyone=args.all), args.output, lambda one: one.job.id, "no job waits")


def queue_columns(now: datetime, *, everyone: bool) -> list[Column[JobDetail]]:
    return [
        Column("POSITION", lambda one: str(one.forecast.position) if one.forecast else ""),
        Column("JOB", lambda one: one.job.id, short=lambda one: short_id(one.job.id)),
        Column("NAME", lambda one: one.job.spec.name, drop=3),
        Column("USER", lambda one: one.job.user, wide=not everyone, drop=2),
        Column("WAITS", lambda one: show.short_time((now - one.job.created_at).total_seconds()), drop=2),
        Column("STARTS", lambda one: explain.at_the_latest(one.forecast, now) if one.forecast else "", drop=1),
        Column("WHY", lambda one: one.job.queue_reason or one.job.state.label, least=_LEAST_WHY),
    ]


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

        shell.say(printable_json(wire.encode(moved).decode()), flush=True)
    elif output == "name":
        shell.say(moved.job, flush=True)
    else:
        shell.say(f"{show.local_time(moved.at)}  {moved.job}  {move_text(moved)}", flush=True)


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


def _add_jobs(parser: Parser, nargs: str) -> None:
    last = " (your last job)" if nargs == "*" else ""
    parser.add_argument(
        "jobs", nargs=nargs, metavar="JOB", help=f"id, the beginning of one, or a name; several will do{last}"
    )
