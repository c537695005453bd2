"""Verbs about where jobs run: clusters, and the queues that lead to them."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from paddlecloud.cli import shell, show
from paddlecloud.cli.connect import connect
from paddlecloud.cli.parser import Parser, Setup, add_output
from paddlecloud.cli.show import Column
from paddlecloud.model.units import format_duration, format_size

if TYPE_CHECKING:
    from paddlecloud.model.job import Resources
    from paddlecloud.model.service import Cluster, Queue


def clusters(parser: Parser) -> None:
    add_output(parser)
    parser.set_defaults(run=_clusters)


def queues(parser: Parser) -> None:
    add_output(parser)
    parser.set_defaults(run=_queues)


VERBS: Mapping[str, Setup] = {"clusters": clusters, "queues": queues}


def _clusters(args: Namespace) -> None:
    with connect() as client:
        found = client.clusters()
    show.many(found, cluster_columns(), args.output, lambda one: one.name)
    if args.output in ("table", "wide"):
        shell.talk(*(f"{one.name} does not answer: {one.down}" for one in found if one.down is not None))
    if args.output in ("table", "wide") and (named := [one.name for one in found if one.memory_limit == "process"]):
        shell.talk(
            f"{', '.join(named)}: the memory limit holds per process only, and a task above it as a whole is ended "
            "about a second later; the operator can delegate a cgroup to the server (see paddlecloud doctor)"
        )


def cluster_columns() -> list[Column[Cluster]]:
    return [
        Column("NAME", lambda one: one.name),
        Column("STATE", lambda one: "up" if one.down is None else "down"),
        Column("BACKEND", lambda one: one.backend, drop=3),
        Column("DEFAULT", lambda one: "yes" if one.default else "", drop=2),
        Column("POLICY", lambda one: one.policy, drop=1),
        Column("CPUS", lambda one: _of(one, lambda amount: f"{amount.cpus:g}")),
        Column("MEMORY", lambda one: _of(one, lambda amount: format_size(amount.memory_bytes))),
        Column("GPUS", lambda one: _of(one, lambda amount: str(amount.gpus))),
        Column("MEMORY LIMIT", lambda one: f"per {one.memory_limit}" if one.memory_limit else "", drop=4),
    ]


def _queues(args: Namespace) -> None:
    with connect() as client:
        found = client.queues()
    show.many(
        found, columns_of_queues(found), args.output, lambda one: one.name, "no queues: name a cluster, or nothing"
    )


def _of(cluster: Cluster, amount: Callable[[Resources], str]) -> str:
    """How much of one kind of resource is free, of how much."""
    if cluster.capacity is None:
        return "?"
    if cluster.free is None:
        return amount(cluster.capacity)
    return f"{amount(cluster.free)} of {amount(cluster.capacity)} free"


def columns_of_queues(queues: Sequence[Queue]) -> list[Column[Queue]]:
    capped = [Column("AT A TIME", _at_a_time, drop=4)] if any(map(_at_a_time, queues)) else []
    return [
        Column("NAME", lambda one: one.name),
        Column("CLUSTER", lambda one: one.cluster, drop=2),
        Column("LIMIT", _longest),
        Column("PRIORITY", lambda one: f"{one.priority:+d}" if one.priority else "0", drop=1),
        *capped,
        Column("USERS", _who, drop=3),
    ]


def _at_a_time(queue: Queue) -> str:
    """What its jobs use of the most that they may."""
    used = queue.used
    words = [
        "" if queue.cpus is None else f"{used.cpus:g} of {queue.cpus:g} CPUs",
        "" if queue.memory_bytes is None else f"{format_size(used.memory_bytes)} of {format_size(queue.memory_bytes)}",
        "" if queue.gpus is None else f"{used.gpus} of {queue.gpus} GPUs",
    ]
    return ", ".join(word for word in words if word)


def _who(queue: Queue) -> str:
    return ", ".join([*queue.users, *(f"group {name}" for name in queue.groups)]) or "everyone"


def _longest(queue: Queue) -> str:
    limit = queue.time_limit_seconds
    return "as its cluster" if limit is None else format_duration(limit)
