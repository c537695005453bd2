"""The collection: takes away what the settings let go, kind by kind, while jobs run and requests are answered.

What goes is recorded as leaving before a file is touched, and a job's record goes last, so that a collection that is
killed at any moment leaves nothing that the next one would not finish, and nobody is told of files that are not there.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import islice

from paddlecloud.files.collect import JobFiles
from paddlecloud.model.audit import Action
from paddlecloud.model.errors import FullError
from paddlecloud.model.kept import LEFT_BY_JOBS, Kept
from paddlecloud.model.retention import RECENT, Going, Rule
from paddlecloud.model.space import Collected, Collection, Used
from paddlecloud.model.units import format_size
from paddlecloud.server.audit import HERE, AuditService, Origin
from paddlecloud.server.collectors import Collector
from paddlecloud.server.pace import Pace, TimeUpError
from paddlecloud.server.settings import RetentionSettings
from paddlecloud.store.remains import Remains

log = logging.getLogger(__name__)

_AT_ONCE = 100  # in one transaction


def rules(settings: RetentionSettings, *, recent: timedelta = RECENT) -> dict[Kept, Rule]:
    """What the settings say of each kind, in the order that they go: whole jobs first. What ended less than `recent`
    ago is not forgotten."""
    return {
        Kept.JOBS: Rule(kind=Kept.JOBS, age=settings.jobs, least_age=recent),
        Kept.RESULTS: Rule(kind=Kept.RESULTS, age=settings.results, size_bytes=settings.results_size),
        Kept.LOGS: Rule(kind=Kept.LOGS, age=settings.logs),
        Kept.UPLOADS: Rule(kind=Kept.UPLOADS, age=settings.uploads, size_bytes=settings.uploads_size),
        Kept.ENVIRONMENTS: Rule(
            kind=Kept.ENVIRONMENTS, age=settings.environments, size_bytes=settings.environments_size
        ),
        Kept.AUDIT: Rule(kind=Kept.AUDIT, age=settings.audit),
    }


class Retention:
    def __init__(
        self,
        *,
        rules: Mapping[Kept, Rule],
        collectors: Mapping[Kept, Collector],
        remains: Remains,
        files: JobFiles,
        audit: AuditService,
        pace: Pace,
    ) -> None:
        self._rules = rules
        self._collectors = collectors
        self._remains = remains
        self._files = files
        self._audit = audit
        self._pace = pace

    def run(
        self,
        now: datetime,
        *,
        dry_run: bool = False,
        seconds: float | None = None,
        user: str = "",
        origin: Origin = HERE,
    ) -> Collection:
        """Take away what may go, in so many seconds at most; a dry run only says what that is."""
        tally = _Tally()
        more = False
        try:
            with self._pace.within(seconds):
                self._collect(tally, now, dry_run)
        except TimeUpError:
            more = True
        if not dry_run:
            for one in tally.collected():
                what = f"{one.count} {one.kind.value}"
                self._audit.record(
                    Action.RETENTION,
                    origin,
                    user=user,
                    target=what,
                    detail=f"{one.by}; {format_size(one.used.size_bytes)}",
                )
                log.info("collected %s: %s, %s", what, one.by, format_size(one.used.size_bytes))
        return Collection(collected=tally.collected(), dry_run=dry_run, more=more)

    def measure(self) -> None:
        """Record what jobs have left that ended since the last time; to be called at our pace."""
        while ended := self._remains.unmeasured():
            self._remains.measure([(one, self._files.count(one.user, one.job)) for one in ended])
            self._pace.rest()

    def _collect(self, tally: _Tally, now: datetime, dry_run: bool) -> None:
        if not dry_run:
            for collector in self._collectors.values():
                with _even_if_full():
                    collector.finish()
        with _even_if_full():
            self.measure()
        for kind, rule in self._rules.items():
            if rule.limits:
                with _even_if_full():
                    self._collect_kind(kind, rule, tally, now, dry_run)

    def _collect_kind(self, kind: Kept, rule: Rule, tally: _Tally, now: datetime, dry_run: bool) -> None:
        for batch in _batches(self._going(kind, rule, now, tally)):
            tally.add(kind, batch if dry_run else self._collectors[kind].remove(batch, now))
            self._pace.rest()

    def _going(self, kind: Kept, rule: Rule, now: datetime, tally: _Tally) -> Iterator[Going]:
        """Without what a job has left that goes as a whole: that was counted with it."""
        for one in self._collectors[kind].going(rule, now):
            if kind not in LEFT_BY_JOBS or one.item.name not in tally.jobs:
                yield one


class _Tally:
    """What went, by kind and reason."""

    def __init__(self) -> None:
        self.jobs: set[str] = set()
        self._found: dict[tuple[Kept, str], tuple[int, Used]] = {}

    def add(self, kind: Kept, went: Sequence[Going]) -> None:
        for one in went:
            count, used = self._found.get((kind, one.why), (0, Used()))
            size = Used(size_bytes=one.item.size_bytes, files=one.item.files)
            self._found[kind, one.why] = count + one.item.count, used + size
            if kind is Kept.JOBS:
                self.jobs.add(one.item.name)

    def collected(self) -> tuple[Collected, ...]:
        return tuple(
            Collected(kind=kind, by=why, count=count, used=used) for (kind, why), (count, used) in self._found.items()
        )


def _batches(going: Iterator[Going]) -> Iterator[list[Going]]:
    while batch := list(islice(going, _AT_ONCE)):
        yield batch


@contextmanager
def _even_if_full() -> Iterator[None]:
    """What cannot be recorded on a full disk waits; what needs no record, such as uploads, makes room for it."""
    try:
        yield
    except FullError as error:
        log.warning("%s", error.message)
