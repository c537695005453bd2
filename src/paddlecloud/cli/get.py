"""Seed 001's verb get: jobs, workers, quota and registry, in its tables; programs get records without its oddities."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from paddlecloud.cli import show
from paddlecloud.cli.connect import connect
from paddlecloud.cli.paddlepaddle import Item, ask_old, items
from paddlecloud.cli.parser import Parser, Setup, add_output
from paddlecloud.cli.show import Column
from paddlecloud.model.errors import NotFoundError

if TYPE_CHECKING:
    from paddlecloud.model.registry import Registry

_NIL = "<nil>"
_RULE = "-----"
_TIMES = "Times are UTC; <nil> is none, or not yet."


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """A job by its name. Of one that is being killed nothing is counted any more; one without pservers has None."""

    name: str
    terminating: bool = False
    succeeded: int | None = None
    failed: int | None = None
    active: int | None = None
    start_time: str | None = None
    completion_time: str | None = None
    ps_ready: int | None = None
    ps_total: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRow:
    name: str
    status: str
    start_time: str | None
    exit_code: int | None
    message: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaRow:
    """What one may have of a cluster; None: not known or, of `max_parallelism`, no limit."""

    cluster: str
    memory: str | None
    cpu: float | None
    gpu: int
    max_parallelism: int | None


def get(parser: Parser) -> None:
    parser.branch(
        {
            "jobs": ("your jobs, one line for each name", _jobs_arguments),
            "workers": ("the trainers of a job", _workers_arguments),
            "quota": ("what you may have of each cluster", _quota_arguments),
            "registry": ("your registry secrets, without their passwords", _registry_arguments),
        },
        metavar="WHAT",
    )


VERBS: Mapping[str, Setup] = {"get": get}


def _jobs_arguments(parser: Parser) -> None:
    parser.epilog = "\n".join(
        [
            "SUCC, FAIL and ACTIVE count trainers, PS_READY and PS_TOTAL parameter servers. A job that was killed is",
            f"not shown; one that is being killed is Terminating. {_TIMES}",
        ]
    )
    _add(parser, _jobs)


def _workers_arguments(parser: Parser) -> None:
    parser.add_argument("job", metavar="JOB", help="the job's name, as get jobs shows it")
    parser.epilog = f"`paddlecloud logs -w NAME JOB` prints the log of one of them. {_TIMES}"
    _add(parser, _workers)


def _quota_arguments(parser: Parser) -> None:
    parser.epilog = (
        "One block for each cluster; -o wide names it. `paddlecloud quota` tells what of yours is in use, too."
    )
    _add(parser, _quota)


def _registry_arguments(parser: Parser) -> None:
    _add(parser, _registry)


def _add(parser: Parser, run: Callable[[Namespace], None]) -> None:
    add_output(parser)
    parser.set_defaults(run=run)


def _jobs(args: Namespace) -> None:
    with connect() as client:
        pservers = {_name(item): item["status"] for item in items(client, "/api/v1/pservers/")}
        answer = ask_old(client, "GET", "/api/v1/jobs/")
    rows = [*(_job(item, pservers) for item in answer["items"])]
    rows += [JobRow(name=name, terminating=True) for name in answer["terminating"]]
    numbers = {row.name: str(number) for number, row in enumerate(rows)}
    columns: list[Column[JobRow]] = [
        Column("NUM", lambda row: numbers[row.name]),
        Column("NAME", lambda row: row.name),
        Column("SUCC", lambda row: _nil(row.succeeded or None)),
        Column("FAIL", lambda row: _nil(row.failed or None)),
        Column("START", lambda row: _nil(row.start_time)),
        Column("COMP", lambda row: _nil(row.completion_time)),
        Column("ACTIVE", lambda row: "Terminating" if row.terminating else _nil(row.active or None)),
        Column("PS_READY", lambda row: _nil(row.ps_ready), drop=2),
        Column("PS_TOTAL", lambda row: _nil(row.ps_total), drop=3),
    ]
    show.many(rows, columns, args.output, lambda row: row.name, "no jobs")


def _job(item: Item, pservers: Mapping[str, Item]) -> JobRow:
    name, status = _name(item).removesuffix("-trainer"), item["status"]
    beside = pservers.get(f"{name}-pserver", {})
    return JobRow(
        name=name,
        succeeded=status["succeeded"] or 0,
        failed=status["failed"] or 0,
        active=status["active"] or 0,
        start_time=status["start_time"],
        completion_time=status["completion_time"],
        ps_ready=beside.get("ready_replicas"),
        ps_total=beside.get("replicas"),
    )


def _workers(args: Namespace) -> None:
    with connect() as client:
        found = items(client, "/api/v1/workers/", jobname=args.job)
    if not found:
        raise NotFoundError(f"no job {args.job!r} of yours; `paddlecloud get jobs` lists them", field="job")
    columns: list[Column[WorkerRow]] = [
        Column("NAME", lambda row: row.name),
        Column("STATUS", lambda row: row.status),
        Column("START", lambda row: _nil(row.start_time)),
        Column("EXIT_CODE", lambda row: _nil(row.exit_code), drop=2),
        Column("MSG", lambda row: _nil(row.message), drop=1),
    ]
    show.many([_worker(item) for item in found], columns, args.output, lambda row: row.name)


def _worker(item: Item) -> WorkerRow:
    status = item["status"]
    ended = status["container_statuses"][0]["state"]["terminated"] or {}
    return WorkerRow(
        name=_name(item),
        status=status["phase"],
        start_time=status["start_time"],
        exit_code=ended.get("exit_code"),
        message=ended.get("message"),
    )


def _quota(args: Namespace) -> None:
    with connect() as client:
        found = items(client, "/api/v1/quota/")
    if args.output in ("table", "wide"):
        _quota_table(found, args.output)
    else:
        show.many([_quota_row(item) for item in found], [], args.output, lambda row: row.cluster)


def _quota_row(item: Item) -> QuotaRow:
    hard = {name: None if text in ("unknown", "unlimited") else text for name, text in item["status"]["hard"].items()}
    cpu, instances = hard["requests.cpu"], hard["pods"]
    return QuotaRow(
        cluster=_name(item),
        memory=hard["requests.memory"],
        cpu=None if cpu is None else float(cpu),
        gpu=int(hard["alpha.kubernetes.io/nvidia-gpu"] or 0),
        max_parallelism=None if instances is None else int(instances),
    )


def _quota_table(found: Sequence[Item], output: str) -> None:
    """Seed 001's: a rule above each cluster's lines."""
    columns: list[Column[tuple[str, str, str]]] = [
        Column("RESOURCE", lambda row: row[0]),
        Column("LIMIT", lambda row: row[1]),
        Column("CLUSTER", lambda row: row[2], wide=True),
    ]
    show.many([row for item in found for row in _quota_lines(item)], columns, output, lambda row: row[0])


def _quota_lines(item: Item) -> Iterator[tuple[str, str, str]]:
    cluster, hard = _name(item), item["status"]["hard"]
    yield _RULE, _RULE, _RULE
    yield "Memory", hard["requests.memory"], cluster
    yield "CPU", hard["requests.cpu"], cluster
    yield "GPU", hard["alpha.kubernetes.io/nvidia-gpu"], cluster
    yield "MaxParallism", hard["pods"], cluster


def _registry(args: Namespace) -> None:
    with connect() as client:
        found = client.registries.list()
    numbers = {one.name: str(number) for number, one in enumerate(found)}
    columns: list[Column[Registry]] = [
        Column("ID", lambda one: numbers[one.name]),
        Column("NAME", lambda one: one.name),
        Column("DATA", lambda one: show.utc_time(one.created_at)),
        Column("SERVER", lambda one: one.server, wide=True),
        Column("USERNAME", lambda one: one.username, wide=True),
    ]
    show.many(found, columns, args.output, lambda one: one.name, "no registry secrets")


def _name(item: Item) -> str:
    return str(item["metadata"]["name"])


def _nil(value: object) -> str:
    return _NIL if value is None else str(value)
