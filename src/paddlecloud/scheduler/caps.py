"""What the jobs of a queue use, whoever's they are, of the most that they may use at a time: pure.

A queue with a cap is to its jobs as a cluster of that size: the first that does not fit is promised its room, and later
ones of the queue may pass it if they end before that time or fit beside it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from msgspec.structs import replace

from paddlecloud.model.job import Job, Resources, TaskPlacement, total
from paddlecloud.scheduler.queues import Cap, Queues
from paddlecloud.scheduler.reservations import Reservation, reserve
from paddlecloud.scheduler.spans import ends_at


class Caps:
    """What is left of every queue that has a cap, while a plan is being made."""

    def __init__(self, queues: Queues, placed: Iterable[Job], now: datetime, *unlimited: timedelta) -> None:
        self._caps = {name: terms.cap for name, terms in queues.items() if terms.cap is not None}
        self._left = {name: cap.room for name, cap in self._caps.items()}
        self._ends: dict[str, list[tuple[datetime, Resources]]] = {name: [] for name in self._caps}
        self._reservations: dict[str, Reservation] = {}
        for job in placed if self._caps else ():
            if job.placement is not None and job.spec.queue in self._caps:
                self.take(job, counted(job.placement.tasks), ends_at(job, now, *unlimited))

    def __contains__(self, queue: str) -> bool:
        return queue in self._caps

    def left(self, queue: str) -> tuple[Cap, Resources, list[tuple[datetime, Resources]]]:
        """A queue's cap, what is left of it, and when what its jobs hold comes back."""
        return self._caps[queue], self._left[queue], list(self._ends[queue])

    def why_full(self, job: Job, need: Resources) -> str | None:
        """That what the queue's jobs use leaves no room for this one; None: there is some."""
        name, cap, left = job.spec.queue, self._caps[job.spec.queue], self._left[job.spec.queue]
        if need.fits(left):
            return None
        if not need.fits(cap.room):
            return too_large(name, cap, need)
        if name not in self._reservations:
            self._reservations[name] = reserve(job, need, left, self._ends[name])
        used = cap.describe(cap.room - left, of=True)
        return f"queue {name}: its jobs use {used} that they may at a time, and this one needs {cap.describe(need)}"

    def why_kept(self, job: Job, need: Resources, end: datetime) -> str | None:
        """That the room which is left is kept for a job before this one; None: it is not."""
        kept = self._reservations.get(job.spec.queue)
        if kept is None or kept.lets_pass(need, end):
            return None
        return f"the room it needs in queue {job.spec.queue} is kept for {kept.job}, which is before it"

    def take(self, job: Job, need: Resources, end: datetime) -> None:
        self._left[job.spec.queue] = self._left[job.spec.queue] - need
        self._ends[job.spec.queue].append((end, need))


def counted(tasks: Iterable[TaskPlacement]) -> Resources:
    """What tasks count for: a task that names no CPUs, on a cluster that does not tell what it gives it, for one."""
    return total(replace(task.resources, cpus=task.resources.cpus or 1.0) for task in tasks)


def too_large(queue: str, cap: Cap, need: Resources) -> str:
    return (
        f"queue {queue}: its jobs may use {cap.describe(cap.room)} at a time, and this one alone needs "
        f"{cap.describe(need)}: ask for less, or name another queue"
    )
