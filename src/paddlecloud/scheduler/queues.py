"""What a queue does for the jobs in it, when they wait and when they start: pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from paddlecloud.model.job import JobSpec, Resources
from paddlecloud.model.units import format_size

_PLENTY = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Cap:
    """The most that all jobs of a queue use at a time; None: as much as there is."""

    cpus: float | None = None
    memory_bytes: int | None = None
    gpus: int | None = None

    @property
    def room(self) -> Resources:
        return Resources(
            cpus=_PLENTY if self.cpus is None else self.cpus,
            memory_bytes=_PLENTY if self.memory_bytes is None else self.memory_bytes,
            gpus=_PLENTY if self.gpus is None else self.gpus,
        )

    def within(self, capacity: Resources) -> Resources:
        """What of a cluster the jobs of the queue may use."""
        most = self.room
        return Resources(
            cpus=min(most.cpus, capacity.cpus),
            memory_bytes=min(most.memory_bytes, capacity.memory_bytes),
            gpus=min(most.gpus, capacity.gpus),
        )

    def describe(self, amount: Resources, *, of: bool = False) -> str:
        """An amount in words, of what is capped alone; `of`: with what the cap is ("2 of 4 CPUs")."""
        most = self.room
        words = []
        if self.cpus is not None:
            words.append(f"{_part(f'{amount.cpus:g}', f'{most.cpus:g}', of)} CPU{_s(most if of else amount, 'cpus')}")
        if self.memory_bytes is not None:
            words.append(_part(format_size(amount.memory_bytes), format_size(most.memory_bytes), of))
        if self.gpus is not None:
            words.append(f"{_part(str(amount.gpus), str(most.gpus), of)} GPU{_s(most if of else amount, 'gpus')}")
        return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _part(amount: str, most: str, of: bool) -> str:
    return f"{amount} of {most}" if of else amount


def _s(amount: Resources, kind: str) -> str:
    return "" if getattr(amount, kind) == 1 else "s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """`options` are for the cluster, in its own language, such as sbatch's."""

    priority: int = 0
    options: Mapping[str, str] = field(default_factory=dict)
    cap: Cap | None = None


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
