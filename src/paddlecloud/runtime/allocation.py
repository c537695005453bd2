"""Where a job's tasks are, on a cluster that chooses the nodes itself: in a task file `@3` is the address of the node
that the fourth task runs on, and what the cluster says in the environment tells which node that is.

Every task finds out by itself, so they meet also while the server is away.
"""

from __future__ import annotations

import re
from typing import Iterator, Mapping

from paddlecloud.runtime.taskfile import Role, TaskFile

GIVEN, SLURM = "", "slurm"
ADDRESSES = "PADDLECLOUD_ADDRESSES"  # set by the batch script: n1=10.0.0.1 n2=10.0.0.2 …
_ALONE = "127.0.0.1"  # where a task reaches itself, whatever its node is called
_LONGEST_LIST = 1 << 20
_GPUS = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
_GPU_NAMES = ("GPU-", "MIG-")


class AllocationError(Exception):
    """The cluster does not say where the tasks are."""


def number(environ: Mapping[str, str]) -> int:
    """Which of the step's tasks this is; without a step it is the only one."""
    return int(environ.get("SLURM_PROCID", "0"))


def job(environ: Mapping[str, str]) -> str:
    """The cluster's own number of the job; parts of a heterogeneous one all say the first one's."""
    return environ.get("SLURM_JOB_ID", "")


def settle(task: TaskFile, environ: Mapping[str, str]) -> TaskFile:
    """The task file with the addresses and GPUs that the allocation has given."""
    if task.allocation == GIVEN:
        return task
    at = nodes_of_tasks(environ)
    if len(at) == 1:
        at = [_ALONE]
    known = dict(pair.split("=", 1) for pair in environ.get(ADDRESSES, "").split() if "=" in pair)
    addresses = [known.get(node, node) for node in at]

    def named(text: str) -> str:
        if not text.startswith("@"):
            return text
        index, colon, port = text[1:].partition(":")
        if int(index) >= len(addresses):
            raise AllocationError(f"the allocation has {len(addresses)} tasks, and one more is looked for")
        address = addresses[int(index)]
        return (f"[{address}]" if colon and ":" in address else address) + colon + port

    gpus, as_named = _gpus(environ) if task.uses_gpus else ([], {})
    return task._replace(
        address=named(task.address),
        trainers=[named(endpoint) for endpoint in task.trainers],
        pservers=[named(endpoint) for endpoint in task.pservers],
        workers=[named(endpoint) for endpoint in task.workers],
        master=None if task.master is None else named(task.master),
        coordinator=None if task.coordinator is None else named(task.coordinator),
        roles=[_role(role, [named(address) for address in role.addresses]) for role in task.roles],
        gpus=gpus,
        env={**as_named, **task.env},
    )


def nodes_of_tasks(environ: Mapping[str, str]) -> list[str]:
    """The name of each task's node, by the task's number: tasks are dealt out in blocks."""
    if "SLURM_STEP_NODELIST" not in environ:
        return [environ.get("SLURMD_NODENAME", "localhost")]
    nodes = list(expand(environ["SLURM_STEP_NODELIST"]))
    counts = list(_counts(environ.get("SLURM_STEP_TASKS_PER_NODE", "1")))
    if len(nodes) != len(counts):
        raise AllocationError(f"Slurm names {len(nodes)} nodes, and tasks on {len(counts)}")
    tasks = dict(zip(nodes, counts))
    found = [node for node in _by_part(nodes, environ) for _ in range(tasks.get(node, 0))]
    here, own = environ.get("SLURMD_NODENAME"), number(environ)
    if own >= len(found) or (here and found[own] != here):
        raise AllocationError(f"Slurm has put task {own} on {here}, and not where it was to be")
    return found


def _by_part(nodes: list[str], environ: Mapping[str, str]) -> list[str]:
    """The nodes in the order of their tasks. Of a heterogeneous job Slurm names them sorted, though its tasks are
    numbered part by part; parts share no node."""
    found: list[str] = []
    while (part := environ.get(f"SLURM_JOB_NODELIST_HET_GROUP_{len(found)}")) is not None:
        found.append(part)
    return [node for part in found for node in expand(part)] or nodes


def expand(names: str) -> Iterator[str]:
    """Slurm's way to write many names, such as n[1-3,07-09],login, one by one."""
    for part in _split(names):
        yield from _expand_one(part)


def _split(names: str) -> Iterator[str]:
    """At the commas that are not in brackets."""
    depth, begin = 0, 0
    for at, letter in enumerate(names):
        depth += {"[": 1, "]": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            yield names[begin:at]
            begin = at + 1
    if names[begin:]:
        yield names[begin:]


def _expand_one(name: str) -> Iterator[str]:
    found = re.match(r"([^\[\]]*)\[([^\[\]]*)\](.*)", name)
    if found is None:
        yield name
        return
    before, ranges, after = found.groups()
    rest = list(_expand_one(after))
    for one in ranges.split(","):
        span = re.fullmatch(r"([0-9]+)(?:-([0-9]+))?", one)
        if span is None or int(span.group(2) or 0) - int(span.group(1)) > _LONGEST_LIST:
            raise AllocationError(f"{name!r} is no list of nodes")
        first, last = span.groups()
        for value in range(int(first), int(last or first) + 1):
            for end in rest:
                yield f"{before}{str(value).zfill(len(first))}{end}"


def _counts(text: str) -> Iterator[int]:
    """Slurm's 2(x3),1: how many tasks each node has."""
    for part in text.split(","):
        found = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part)
        if found is None:
            raise AllocationError(f"{text!r} does not say how many tasks the nodes have")
        for _ in range(int(found.group(2) or 1)):
            yield int(found.group(1))


def _role(role: Role, addresses: list[str]) -> Role:
    return role._replace(addresses=addresses)


def _gpus(environ: Mapping[str, str]) -> tuple[list[int], dict[str, str]]:
    """The GPUs of this task by their numbers. Where the cluster names them in another way, as parts of one (MIG), they
    are counted, and the variable stays as it is."""
    for name in _GPUS:
        if environ.get(name):
            words = [word for word in environ[name].split(",") if word.isdigit() or word.startswith(_GPU_NAMES)]
            if all(word.isdigit() for word in words):
                return [int(word) for word in words], {}
            return list(range(len(words))), {name: environ[name]}
    return [], {}
