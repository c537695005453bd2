"""The queues that jobs may be submitted to: who may use each, how long jobs may run there, and where they go.

A queue is a name that an operator gives to a cluster with terms of its own. A job that names none has its cluster's.
"""

from __future__ import annotations

import builtins
import dataclasses
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from paddlecloud.model.errors import ForbiddenError, InvalidError
from paddlecloud.model.job import DEFAULT, NOTHING, Job, JobSpec, Resources
from paddlecloud.model.service import Queue
from paddlecloud.model.units import format_duration
from paddlecloud.scheduler.caps import counted
from paddlecloud.scheduler.queues import Cap, Terms
from paddlecloud.server.cluster_settings import QueueSettings
from paddlecloud.server.memberships import Memberships
from paddlecloud.server.settings import Settings
from paddlecloud.server.submission import Limits

_NAMED = 10  # in a sentence


class Queues:
    def __init__(self, settings: Settings, memberships: Memberships) -> None:
        self._queues = settings.queues
        self._memberships = memberships
        self.terms = {
            name: Terms(priority=queue.priority, options=queue.sbatch, cap=_cap(queue))
            for name, queue in settings.queues.items()
        }

    def list(self, user: str, placed: Iterable[Job] = ()) -> builtins.list[Queue]:
        """Those that a user may submit to, in the order of the config, with what their jobs use of those `placed`."""
        mine = [name for name in self._queues if self._is_open(name, user)]
        used: dict[str, Resources] = {}
        for job in placed if mine else ():
            if job.spec.queue and job.placement is not None:
                used[job.spec.queue] = used.get(job.spec.queue, NOTHING) + counted(job.placement.tasks)
        return [_shown(name, self._queues[name], used.get(name, NOTHING)) for name in mine]

    def _is_open(self, name: str, user: str) -> bool:
        """By the config, or by what a group of the user's was given."""
        queue = self._queues[name]
        if not queue.users and not queue.groups:
            return True
        if user in queue.users or name in self._memberships.queues(user):
            return True
        return bool(queue.groups) and not self._memberships.names(user).isdisjoint(queue.groups)

    def enter(self, user: str, spec: JobSpec) -> JobSpec:
        """The job with the cluster of the queue that it names; raise what keeps it out."""
        if not spec.queue:
            return spec
        queue = self._find(user, spec.queue)
        if spec.cluster not in (DEFAULT, queue.cluster):
            raise InvalidError(
                f"queue {spec.queue} is one of cluster {queue.cluster}, and the job names cluster {spec.cluster}: "
                "name one of the two",
                field="cluster",
            )
        limit, asked = _limit(queue), spec.wall_time_seconds
        if limit is not None and asked is not None and asked > limit:
            raise InvalidError(
                f"queue {spec.queue} takes jobs of {format_duration(limit)} at most, and {format_duration(asked)} is "
                f"asked for: {self._for_longer(user, asked)}",
                field="wall_time_seconds",
            )
        return replace(spec, cluster=queue.cluster)

    def limits(self, spec: JobSpec, limits: Limits) -> Limits:
        """The server's, with no more time for a job that asks for none than its queue gives."""
        if not spec.queue:
            return limits
        limit, cap = _limit(self._queues[spec.queue]), self.terms[spec.queue].cap
        seconds = min((most for most in (limits.wall_time_seconds, limit) if most is not None), default=None)
        return dataclasses.replace(limits, wall_time_seconds=seconds, cap=cap)

    def longest(self, name: str) -> int | None:
        """The longest run of a job in a queue, in seconds; None: any."""
        return _limit(self._queues[name]) if name in self._queues else None

    def _find(self, user: str, name: str) -> QueueSettings:
        found = self._queues.get(name)
        open_to = _listed([queue.name for queue in self.list(user)])
        there = f"you may use {open_to}" if open_to else "there is none for you: leave it out"
        if found is None:
            raise InvalidError(f"queue {name[:80]!r} is not configured on this server; {there}", field="queue")
        if not self._is_open(name, user):
            raise ForbiddenError(f"queue {name} is not open to {user}; {there}", field="queue")
        return found

    def _for_longer(self, user: str, seconds: int) -> str:
        mine = self.list(user)
        taking = [
            queue.name for queue in mine if queue.time_limit_seconds is None or queue.time_limit_seconds >= seconds
        ]
        if taking:
            return f"{_listed(taking)} would take it"
        most, longest = max((queue.time_limit_seconds or 0, queue.name) for queue in mine)
        return f"none of yours takes so long; {longest} takes the longest, {format_duration(most)}"


def _shown(name: str, queue: QueueSettings, used: Resources) -> Queue:
    return Queue(
        name=name,
        cluster=queue.cluster,
        time_limit_seconds=_limit(queue),
        priority=queue.priority,
        users=queue.users,
        groups=queue.groups,
        cpus=queue.cpus,
        memory_bytes=queue.memory,
        gpus=queue.gpus,
        used=used,
    )


def _cap(queue: QueueSettings) -> Cap | None:
    cap = Cap(cpus=queue.cpus, memory_bytes=queue.memory, gpus=queue.gpus)
    return None if cap == Cap() else cap


def _limit(queue: QueueSettings) -> int | None:
    return None if queue.time_limit is None else int(queue.time_limit.total_seconds())


def _listed(names: Sequence[str]) -> str:
    more = [f"{len(names) - _NAMED} more (paddlecloud queues)"] if len(names) > _NAMED else []
    return ", ".join([*names[:_NAMED], *more])
