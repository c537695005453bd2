"""The verb logs, and how pieces of several tasks' logs become lines on one screen."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TextIO

from paddlecloud.cli import explain, shell, show
from paddlecloud.cli.connect import connect, last_job
from paddlecloud.cli.parser import Parser, Setup, add_job, count
from paddlecloud.cli.watch import see_placed
from paddlecloud.model.errors import NotFoundError
from paddlecloud.model.paddlepaddle import worker_name

if TYPE_CHECKING:
    from paddlecloud.model.log import LogPiece

_LONGEST_LINE = 64 * 1024


def logs(parser: Parser) -> None:
    add_job(parser)
    parser.add_argument("-f", "--follow", action="store_true", help="go on until the job ends")
    parser.add_argument("--tail", "-n", type=count, metavar="N", help="begin with the last N lines of each task")
    parser.add_argument("--since", metavar="TIME", help="only what was written in this time (10m, 00:10:00)")
    parser.add_argument("-w", "--worker", metavar="NAME", help="of this task only: trainer-0, or as get workers has it")
    parser.add_argument("--no-prefix", action="store_true", help="do not say which task wrote a line")
    parser.set_defaults(run=_logs)


VERBS: Mapping[str, Setup] = {"logs": logs}


class Lines:
    """Whole lines of several tasks, each behind its task's name; a task's unfinished line waits for its rest."""

    def __init__(self, out: TextIO, *, prefixed: bool) -> None:
        self._out = out
        self._prefixed = prefixed
        self._coloured = shell.has_colour(out)
        self._rest: dict[str, str] = {}

    def write(self, pieces: Iterable[LogPiece]) -> None:
        try:
            for piece in pieces:
                self._write(piece)
        finally:
            self._flush()

    def _write(self, piece: LogPiece) -> None:
        if not self._prefixed:
            self._out.write(piece.text)
            self._out.flush()
            return
        *lines, rest = (self._rest.get(piece.task, "") + piece.text).split("\n")
        if len(rest) >= _LONGEST_LINE:
            lines.append(rest)
            rest = ""
        self._rest[piece.task] = rest
        prefix = self._prefix(piece.task)
        if lines:
            self._out.write("".join(f"{prefix}{line}\n" for line in lines))
            self._out.flush()

    def _flush(self) -> None:
        for task, rest in self._rest.items():
            if rest:
                self._out.write(f"{self._prefix(task)}{rest}\n")
        self._rest.clear()
        self._out.flush()

    def _prefix(self, task: str) -> str:
        if not self._coloured:
            return f"{task} | "
        number = list(self._rest).index(task) if task in self._rest else len(self._rest)
        return show.paint(f"{task} |", show.task_colour(number)) + " "


def _logs(args: Namespace) -> None:
    since = args.since
    with connect() as client:
        ref = args.job or last_job(client)
        detail = see_placed(client, ref) if args.follow else client.get(ref)
        job, tasks = detail.job, detail.log_tasks
        if args.worker:
            args.worker = next((task for task in tasks if worker_name(job, task) == args.worker), args.worker)
        if args.worker and tasks and args.worker not in tasks:
            raise NotFoundError(f"{job.id} has no task {args.worker!r}; it has {', '.join(tasks)}")
        if not tasks and not args.follow and not detail.removed:
            shell.talk(f"{job.id} has no log yet: {explain.state_line(detail, shell.now())}")
            return
        pieces = client.logs(job.id, follow=args.follow, task=args.worker, tail=args.tail, since=since)
        prefixed = job.spec.tasks > 1 and not args.worker and not args.no_prefix
        Lines(sys.stdout, prefixed=prefixed).write(pieces)
