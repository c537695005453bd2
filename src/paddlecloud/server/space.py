"""What uses the space, counted from time to time and told at once: nobody's question walks through a million files.

What finished jobs have left was measured when they ended; uploads, task folders and what live jobs write is counted.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path

from paddlecloud.files.collect import JobFiles
from paddlecloud.files.counting import Counter
from paddlecloud.files.results import Results
from paddlecloud.files.trees import Trees
from paddlecloud.model import pfs
from paddlecloud.model.errors import UnreachableError
from paddlecloud.model.kept import Kept
from paddlecloud.model.retention import Rule
from paddlecloud.model.space import Disk, Share, Space, Used, UserShare
from paddlecloud.server.datadir import DataFolder
from paddlecloud.server.pace import Pace, TimeUpError
from paddlecloud.store.remains import Remains
from paddlecloud.store.retention import Forgetting

COUNT_SECONDS = 20.0
_FRESH = timedelta(seconds=5)
_MOST_USERS = 1000


class Part(StrEnum):
    """The lines of `paddlecloud df`, in their order."""

    RECORDS = "records"
    UPLOADS = "uploads"
    RESULTS = "results"
    LOGS = "logs"
    ENVIRONMENTS = "environments"  # virtual environments of jobs
    PFS = "pfs"  # homes and public files of the datacenters in the data folder
    SHARED = "shared"  # folders that are shared with groups
    TASKS = "tasks"
    BACKUPS = "backups"
    OTHER = "other"
    UNKNOWN = "unknown"  # results of jobs that no record knows, such as after an older backup was restored


_OF_USERS = (Part.UPLOADS, Part.RESULTS, Part.LOGS, Part.ENVIRONMENTS, Part.PFS)
_TOLD_IF_THERE = (Part.ENVIRONMENTS, Part.PFS, Part.SHARED, Part.BACKUPS, Part.OTHER, Part.UNKNOWN)
_BY_RULE = {
    Part.UPLOADS: Kept.UPLOADS,
    Part.RESULTS: Kept.RESULTS,
    Part.LOGS: Kept.LOGS,
    Part.ENVIRONMENTS: Kept.ENVIRONMENTS,
    Part.RECORDS: Kept.JOBS,
}


@dataclass(frozen=True, slots=True)
class _Figure:
    used: Used
    oldest_at: datetime | None = None

    def __add__(self, other: _Figure) -> _Figure:
        times = [at for at in (self.oldest_at, other.oldest_at) if at is not None]
        return _Figure(self.used + other.used, min(times, default=None))


_NOTHING = _Figure(Used())


@dataclass(slots=True)
class _Figures:
    """What one count found, by user; "" is what is nobody's in particular."""

    at: datetime
    found: dict[tuple[str, Part], _Figure] = field(default_factory=dict)

    def add(self, part: Part, used: Used, oldest_at: datetime | None = None, *, user: str = "") -> None:
        self.found[user, part] = self.found.get((user, part), _NOTHING) + _Figure(used, oldest_at)

    def total(self, part: Part, user: str | None) -> _Figure:
        """Of a user; None: of everybody together."""
        chosen = (figure for (whose, of), figure in self.found.items() if of is part and user in (None, whose))
        return sum(chosen, _NOTHING)

    def users(self) -> set[str]:
        return {whose for whose, _ in self.found if whose}


class SpaceService:
    def __init__(
        self,
        *,
        folder: DataFolder,
        results: Results,
        files: JobFiles,
        trees: Trees,
        remains: Remains,
        records: Forgetting,
        measure: Callable[[], None],
        rules: Mapping[Kept, Rule],
        pace: Pace,
        clock: Callable[[], datetime],
    ) -> None:
        self._folder = folder
        self._results = results
        self._files = files
        self._trees = trees
        self._remains = remains
        self._records = records
        self._measure = measure
        self._rules = rules
        self._pace = pace
        self._clock = clock
        self._figures: _Figures | None = None

    def tell(self, user: str | None, *, users: bool = False, again: bool = False) -> Space:
        """The figures of a user, or of everybody, as last counted; `again`: counted now, if that does not take long."""
        figures = self._counted(again)
        return Space(
            counted_at=figures.at,
            user=user,
            shares=tuple(self._shares(figures, user)),
            disks=() if user is not None else _disks(self._folder),
            users=_largest_users(figures) if users else (),
        )

    def count(self, *, seconds: float | None = None) -> None:
        """Count anew, in so many seconds at most; TimeUpError leaves the figures as they were."""
        figures = _Figures(self._clock())
        with self._pace.within(seconds):
            self._count_jobs(figures)
            self._count_uploads(figures)
            self._count_environments(figures)
            self._count_pfs(figures)
            self._count_rest(figures)
        self._figures = figures

    def _counted(self, again: bool) -> _Figures:
        figures = self._figures
        if figures is not None and not (again and self._clock() - figures.at > _FRESH):
            return figures
        try:
            self.count(seconds=COUNT_SECONDS)
        except TimeUpError:
            pass
        if self._figures is None:
            raise UnreachableError("what uses the space is being counted for the first time: ask again in a minute")
        return self._figures

    def _count_jobs(self, figures: _Figures) -> None:
        self._measure()
        for (user, kind), (used, oldest_at) in self._remains.used().items():
            figures.add(Part(kind.value), used, oldest_at, user=user)
        there = self._results.all()
        owned = self._remains.owned({name for _, name in there})
        for parent, name in there:
            job = owned.get(name)
            if job is None or self._results.parent(job.user, name) != parent:
                figures.add(Part.UNKNOWN, Counter(str(parent), self._pace).count(name))
            elif not job.measured:
                for kind, used in self._files.count(job.user, name).items():
                    figures.add(Part(kind.value), used, job.started_at, user=job.user)

    def _count_environments(self, figures: _Figures) -> None:
        for user in _names(self._folder.environments):
            figures.add(Part.ENVIRONMENTS, Counter(str(self._folder.environments), self._pace).count(user), user=user)

    def _count_uploads(self, figures: _Figures) -> None:
        for user in self._trees.users():
            used = Counter(str(self._folder.files), self._pace).count(user)
            oldest_at = min((tree.asked_at for tree in self._trees.of(user)), default=None)
            figures.add(Part.UPLOADS, used, oldest_at, user=user)
        # What live jobs have from buckets of their users' own is to them what others have sent.
        brought = _names(self._folder.buckets)
        owned = self._remains.owned(brought)
        for name in brought:
            used = Counter(str(self._folder.buckets), self._pace).count(name)
            figures.add(Part.UPLOADS, used, user=owned[name].user if name in owned else "")

    def _count_pfs(self, figures: _Figures) -> None:
        for name in _names(self._folder.pfs):
            datacenter = self._folder.pfs / name
            homes = datacenter / pfs.HOME
            for user in _names(homes):
                figures.add(Part.PFS, Counter(str(homes), self._pace).count(user), user=user)
            for folder in _names(datacenter / pfs.SHARED):
                figures.add(Part.SHARED, Counter(str(datacenter / pfs.SHARED), self._pace).count(folder))
            for other in _names(datacenter) - {pfs.HOME, pfs.SHARED}:
                figures.add(Part.PFS, Counter(str(datacenter), self._pace).count(other))
            if not datacenter.is_dir():
                figures.add(Part.PFS, Counter(str(self._folder.pfs), self._pace).count(name))

    def _count_rest(self, figures: _Figures) -> None:
        """All else in the data folder, so that nothing that takes space is left out."""
        folder = self._folder
        for name in _names(folder.tasks):
            figures.add(Part.TASKS, Counter(str(folder.tasks), self._pace).count(name))
        elsewhere = (
            folder.files,
            folder.results,
            folder.marks,
            folder.tasks,
            folder.pfs,
            folder.buckets,
            folder.environments,
        )
        counted = {path.name for path in elsewhere}
        for name in _names(folder.root) - counted:
            is_record = name.startswith(folder.database.name)
            part = Part.RECORDS if is_record else Part.BACKUPS if name == Part.BACKUPS.value else Part.OTHER
            figures.add(part, Counter(str(folder.root), self._pace).count(name))
        figures.add(Part.RECORDS, Used(size_bytes=self._records.database_bytes()), self._records.oldest_job())

    def _shares(self, figures: _Figures, user: str | None) -> Iterable[Share]:
        for part in Part if user is None else _OF_USERS:
            figure = figures.total(part, user)
            if figure.used.files or part not in _TOLD_IF_THERE:
                yield Share(
                    kind=part.value,
                    used=figure.used,
                    oldest_at=figure.oldest_at,
                    keep_seconds=self._keep_seconds(part),
                    limit_bytes=self._rules[_BY_RULE[part]].size_bytes if part in _BY_RULE else None,
                )

    def _keep_seconds(self, part: Part) -> int | None:
        if part not in _BY_RULE:
            return None
        ages = [self._rules[_BY_RULE[part]].age]
        if part in (Part.RESULTS, Part.LOGS):
            ages.append(self._rules[Kept.JOBS].age)  # with their job they go too
        return min((int(age.total_seconds()) for age in ages if age is not None), default=None)


def _largest_users(figures: _Figures) -> tuple[UserShare, ...]:
    shares = [
        UserShare(user=user, **{part.value: figures.total(part, user).used for part in _OF_USERS})
        for user in figures.users()
    ]
    return tuple(sorted(shares, key=lambda share: (-share.size_bytes, share.user))[:_MOST_USERS])


def _disks(folder: DataFolder) -> tuple[Disk, ...]:
    """The disks of the data folder and of the folders in it that an operator may have put elsewhere."""
    found: dict[int, Disk] = {}
    for path in (folder.root, folder.results, folder.files, folder.pfs):
        if path.exists():
            room = os.statvfs(path)
            found.setdefault(
                path.stat().st_dev,
                Disk(
                    path=str(path),
                    size_bytes=room.f_blocks * room.f_frsize,
                    free_bytes=room.f_bavail * room.f_frsize,
                ),
            )
    return tuple(found.values())


def _names(folder: Path) -> set[str]:
    try:
        return set(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return set()
