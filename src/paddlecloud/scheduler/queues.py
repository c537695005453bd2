"""What a queue does for the jobs in it, when they wait and when they start: pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from paddlecloud.model.job import JobSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """`options` are for the cluster, in its own language, such as sbatch's."""

    priority: int = 0
    options: Mapping[str, str] = field(default_factory=dict)


Queues = Mapping[str, Terms]
NONE = Terms()


def priority_of(spec: JobSpec, queues: Queues) -> int:
    """The job's own with its queue's: higher goes first."""
    return spec.priority + queues.get(spec.queue, NONE).priority


def options_of(spec: JobSpec, queues: Queues) -> dict[str, str]:
    """What the cluster is asked for: the queue's options, then those that the job was allowed to set itself."""
    return {**queues.get(spec.queue, NONE).options, **spec.slurm}


def why_closed(spec: JobSpec, queues: Queues) -> str:
    """Why a job cannot be placed whatever room there is; "": it can."""
    if not spec.queue or spec.queue in queues:
        return ""
    return f"queue {spec.queue} is no longer configured on this server: ask its operator, or kill the job"
