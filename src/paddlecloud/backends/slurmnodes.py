"""What the nodes of a Slurm cluster have, and what of it is idle, as Slurm tells it."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from paddlecloud.model.job import Resources, total

# Of sinfo, each in a column wide enough: none of these has a blank in it.
FORMAT = "NodeList:80,Partition:80,StateLong:40,CPUsState:40,Memory:20,AllocMem:20,Gres:120,GresUsed:200"
_KEPT_SECONDS = 5.0
_DOWN = ("down", "drain", "fail", "unknown", "error", "power", "maint", "reboot", "not_resp", "inval")
_GPUS = re.compile(r"\bgpu(?::[^:,()]+)?:(\d+)")
_MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node in one of its partitions."""

    name: str
    partition: str
    is_default: bool  # the partition takes the jobs that name none
    up: bool
    has: Resources
    idle: Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """A partition: how many nodes it has in all, and what those that are up have."""

    partition: str
    nodes: int
    capacity: Resources
    free: Resources


class Rooms:
    """Asks for the nodes again when the last answer is some seconds old."""

    def __init__(self, nodes: Callable[[], Sequence[Node]], options: Mapping[str, str]) -> None:
        self._ask = nodes
        self._options = options
        self._asking = threading.Lock()
        self._nodes: Sequence[Node] = ()
        self._until = 0.0

    def of(self, options: Mapping[str, str]) -> Room | None:
        """Where a job with these options, and those of the cluster, runs; None: Slurm tells of no such partition."""
        with self._asking:
            if time.monotonic() >= self._until:
                self._nodes = self._ask()
                self._until = time.monotonic() + _KEPT_SECONDS
            nodes = self._nodes
        return room(nodes, {**self._options, **options}.get("partition"))


def room(nodes: Sequence[Node], partition: str | None) -> Room | None:
    """A partition, by default the one of jobs that name none; of several, divided by commas, the first is meant."""
    wanted = partition.partition(",")[0] if partition else next((one.partition for one in nodes if one.is_default), "")
    found = [one for one in nodes if one.partition == wanted]
    if not found:
        return None
    up = [one for one in found if one.up]
    return Room(
        partition=wanted,
        nodes=len(found),
        capacity=total(one.has for one in up),
        free=total(one.idle for one in up),
    )


def read(text: str) -> Iterator[Node]:
    """The lines of sinfo."""
    for line in text.splitlines():
        parts = line.split()
        if len(parts) != 8 or parts[3].count("/") != 3:
            continue
        name, partition, state, cpus, memory, taken, gres, used = parts
        _, idle, _, whole = (int(number) for number in cpus.split("/"))
        megabytes, gpus = int(memory), count_gpus(gres)
        yield Node(
            name=name,
            partition=partition.rstrip("*"),
            is_default=partition.endswith("*"),
            up=is_up(state),
            has=Resources(cpus=float(whole), memory_bytes=megabytes * _MEGABYTE, gpus=gpus),
            idle=Resources(
                cpus=float(idle),
                memory_bytes=max(0, megabytes - int(taken)) * _MEGABYTE,
                gpus=max(0, gpus - count_gpus(used)),
            ),
        )


def is_up(state: str) -> bool:
    """Whether jobs start there; a `*` behind the state: it does not answer."""
    return not state.lower().startswith(_DOWN) and not state.endswith("*")


def count_gpus(gres: str) -> int:
    return sum(int(number) for number in _GPUS.findall(gres))
