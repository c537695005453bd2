"""A launch as the batch script that Slurm is given: a pure function, which golden tests compare.

sbatch                              from the launch
--job-name                          its handle, by which it is found again
--comment                           whose it is, and what they call it
--time                              its wall time, in whole minutes
--ntasks, --cpus-per-task, …        its tasks: one group for each number of GPUs that tasks ask for
--nodes                             as many as tasks, where each is to have its own
--partition, --qos, …               the cluster's options, then the queue's, then the job's
--no-requeue                        another attempt is ours to make
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paddlecloud.backends.base import Launch, RefusedError
from paddlecloud.model.job import Resources, TaskPlacement
from paddlecloud.runtime.allocation import ADDRESSES

# What is ours to say: who sets these could run something else, or hide it from us.
OURS = frozenset(
    "job-name comment output error input open-mode export export-file get-user-env chdir ntasks nodes array wrap "
    "requeue no-requeue wait test-only parsable cpus-per-task mem mem-per-cpu gpus-per-task time uid gid batch "
    "dependency begin deadline kill-on-invalid-dep signal clusters cluster-constraint jobid workdir quiet verbose "
    "version help usage".split()
)
_NAME = re.compile(r"[a-z][a-z-]{0,39}")
_VALUE = re.compile(r"[ -~]{0,200}")
_SET, _LEFT_OUT = ("", "true"), "false"
_MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Group:
    """Tasks that are asked for in the same words."""

    count: int
    cpus: int
    megabytes: int
    gpus: int
    own_nodes: bool = False  # each has a node of its own

    def options(self) -> list[str]:
        out = [f"--ntasks={self.count}", *([f"--nodes={self.count}"] if self.own_nodes else [])]
        if self.cpus:
            out.append(f"--cpus-per-task={self.cpus}")
        if self.megabytes:
            out.append(f"--mem-per-cpu={math.ceil(self.megabytes / max(self.cpus, 1))}M")
        if self.gpus:
            out.append(f"--gpus-per-task={self.gpus}")
        return out

    def step_options(self) -> list[str]:
        """Of srun, which takes over what its group has but for these."""
        out = [f"--ntasks={self.count}"]
        return out + ([f"--cpus-per-task={self.cpus}"] if self.cpus else [])


def check_option(name: str, value: str) -> str:
    """Why an option of sbatch cannot be had from outside; "": it can."""
    if not _NAME.fullmatch(name):
        return f"{name!r} is no long option of sbatch, such as partition"
    if name in OURS:
        return f"{name!r} is set by the server itself"
    if short := [one for one in sorted(OURS) if one.startswith(name)]:
        return f"{name!r} may be short for {short[0]!r}, which is set by the server itself"
    if not _VALUE.fullmatch(value) or '"' in value or "\\" in value:
        return f"{name} = {value!r} must be one line of plain letters"
    return ""


def in_order(launch: Launch) -> list[TaskPlacement]:
    """The tasks by their number in the step: the groups one after the other."""
    return [task for gpus in _gpu_counts(launch) for task in launch.placement.tasks if task.resources.gpus == gpus]


def groups(launch: Launch, *, own_nodes: bool = False) -> list[Group]:
    """Parts of a heterogeneous job never share a node, so tasks that differ in CPUs and memory alone are one part."""
    found = []
    for gpus in _gpu_counts(launch):
        asked = [task.resources for task in launch.placement.tasks if task.resources.gpus == gpus]
        found.append(Group(len(asked), _most_cpus(asked), _most_megabytes(asked), gpus, own_nodes))
    return found


def render(
    launch: Launch,
    *,
    options: Mapping[str, str],
    command: Sequence[str],
    output: str,
    wall_time_seconds: int | None,
    build_seconds: float = 0.0,
    prelude: Sequence[str] = (),
    own_nodes: bool = False,
) -> str:
    """The script; `command` starts the runtime on a node after the lines of `prelude`, `output` is where the script's
    own words go. `build_seconds` are what packages may take to be built before the job's own time begins."""
    parts = groups(launch, own_nodes=own_nodes)
    common = [
        f"--job-name={launch.handle}",
        f"--comment={_plain(f'{launch.user} {launch.name}')}",
        f"--output={_literal(output)}",
        "--no-requeue",
        # Nothing of the server's environment, nor its limits. NONE, or the name of a variable, would let slurmd start a
        # login shell for each job: on many a cluster that takes longer than the job.
        "--export-file=/dev/null",
        "--chdir=/",
        *([] if wall_time_seconds is None else [f"--time={math.ceil((wall_time_seconds + build_seconds) / 60)}"]),
    ]
    asked = [_option(name, value) for name, value in sorted(options.items()) if value.lower() != _LEFT_OUT]
    blocks = [[*common, *part.options(), *asked] for part in parts]
    lines = ["#!/bin/sh", *_directives(blocks[0])]
    for block in blocks[1:]:
        lines += ["#SBATCH hetjob", *_directives(block)]
    return "\n".join([*lines, *prelude, *_body(parts, shlex.join(command))]) + "\n"


def _body(parts: Sequence[Group], command: str) -> list[str]:
    path = f'export PATH="${{PATH:+$PATH:}}{_PATH}"'
    if len(parts) == 1 and parts[0].count == 1:
        return [path, f"exec {command}"]
    # What stands before the first of several parts is said of it alone.
    steps = " : ".join(
        " ".join([_STEP, *([f"--het-group={number}"] if len(parts) > 1 else []), *part.step_options(), command])
        for number, part in enumerate(parts)
    )
    of_parts = [f"$SLURM_JOB_NODELIST_HET_GROUP_{number}" for number in range(len(parts))]
    nodes = ",".join(of_parts) if len(parts) > 1 else "$SLURM_JOB_NODELIST"
    return [
        path,
        f"export {ADDRESSES}=\"$(scontrol -o show node \"{nodes}\" | sed -n '{_NODE_ADDRESS}' | tr '\\n' ' ')\"",
        f"exec srun {steps}",
    ]


_PATH = "/usr/local/bin:/usr/bin:/bin:/opt/slurm/bin"
_STEP = "--export=ALL --distribution=block --kill-on-bad-exit=0 --wait=0 --mpi=none"
_NODE_ADDRESS = r"s/^NodeName=\([^ ]*\) .*NodeAddr=\([^ ]*\) .*/\1=\2/p"


def _directives(options: Sequence[str]) -> list[str]:
    return [f"#SBATCH {_quoted(option)}" for option in options]


def _quoted(option: str) -> str:
    name, equals, value = option.partition("=")
    if not equals or not re.search(r"[^\w.,:=+/@%-]", value):
        return option
    escaped = re.sub(r'(["\\])', r"\\\1", value)
    return f'{name}="{escaped}"'


def _option(name: str, value: str) -> str:
    if why := check_option(name, value):
        raise RefusedError(f"Slurm option: {why}", field=f"slurm.{name}")
    return f"--{name}" if value.lower() in _SET else f"--{name}={value}"


def _literal(path: str) -> str:
    """A path as sbatch is told it, in whose words %j is a number, and a backslash changes what % means."""
    if "\n" in path or "\\" in path:
        raise RefusedError(f"Slurm cannot write to {path!r}: give the server a data folder without backslashes")
    return path.replace("%", "%%")


def _plain(text: str) -> str:
    return re.sub(r"[^\w .,:@/-]", "?", text, flags=re.ASCII)[:200]


def _gpu_counts(launch: Launch) -> list[int]:
    return sorted({task.resources.gpus for task in launch.placement.tasks}, reverse=True)


def _most_cpus(asked: Sequence[Resources]) -> int:
    return max(math.ceil(one.cpus) for one in asked)


def _most_megabytes(asked: Sequence[Resources]) -> int:
    return max(math.ceil(one.memory_bytes / _MEGABYTE) for one in asked)


def fetching(**known: str) -> list[str]:
    """What a node needs to know to fetch the runtime; not among the arguments, which all can see."""
    return [f"export PADDLECLOUD_{name.upper()}={shlex.quote(value)}" for name, value in known.items() if value]


def fetched(python: Sequence[str]) -> list[str]:
    """The command that starts the runtime on a node which fetches it."""
    return ["/bin/sh", "-c", f'exec {shlex.join(python)} -c "$PADDLECLOUD_START"']
