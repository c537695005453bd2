"""The two threads that carry files between this server and elsewhere, each one job at a time.

One brings what waiting jobs need, from buckets of users' own and as inputs; the other sends what finished jobs have
left to such a bucket, and removes what was brought. What is done is recorded, and all may be done again, so a kill -9
at any moment costs no more than the time.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path

from paddlecloud.backends.base import InputAt, RefusedError
from paddlecloud.files import carry
from paddlecloud.files.bucket import Bucket
from paddlecloud.files.carry import Brought, Item
from paddlecloud.files.results import Results
from paddlecloud.model.bos import Place, parse_bos_url
from paddlecloud.model.errors import (
    ConflictError,
    FullError,
    InvalidError,
    NotFoundError,
    PaddleCloudError,
    UnreachableError,
)
from paddlecloud.model.job import Job
from paddlecloud.model.kept import Kept, Removed
from paddlecloud.model.units import format_size
from paddlecloud.server.audit import AuditService
from paddlecloud.server.buckets import BucketService, in_words, nothing_there, results_place
from paddlecloud.server.datadir import DataFolder
from paddlecloud.server.housekeeping import Housekeeping
from paddlecloud.server.inputs import FileSystems, InputService, Load
from paddlecloud.server.pfs import Pfs
from paddlecloud.server.settings import Settings
from paddlecloud.server.worker import GoneError, Still, Worker
from paddlecloud.store.buckets import Buckets, Errand, Stage
from paddlecloud.store.jobs import Jobs

log = logging.getLogger(__name__)

_LOOK_SECONDS = 2.0  # while there is something to do: that a job was cleaned rings no bell
_IDLE_SECONDS = 3600.0
_SPARE_BYTES = 64 * 1024 * 1024  # of the disk, which no file may take: records are written there too


class Carrier:
    def __init__(
        self,
        *,
        service: BucketService,
        inputs: InputService,
        records: Buckets,
        jobs: Jobs,
        results: Results,
        removed: Callable[[str], Sequence[Removed]],
        folder: Path,
        limit_bytes: int,
        inputs_bytes: int,
        spare_bytes: int = _SPARE_BYTES,
        wake: Callable[[], None],
        clock: Callable[[], datetime],
    ) -> None:
        self.service = service
        self.input_service = inputs
        self.checked = inputs.check
        self._inputs = inputs
        self._records = records
        self._jobs = jobs
        self._results = results
        self._removed = removed
        self._folder = folder
        self._limit_bytes = limit_bytes
        self._inputs_bytes = inputs_bytes
        self._spare_bytes = spare_bytes
        self._wake = wake
        self._clock = clock
        self._reasons: dict[str, str] = {}  # why jobs are not ready, as far as is known here; "": they are
        self._sweep_at = 0.0
        self._bringing = ""  # the job whose folder is being filled just now
        self._stopping = threading.Event()
        self._workers = (
            Worker("bring", self._bring_all, self._stopping),
            Worker("send", self._send_all, self._stopping),
        )

    def start(self) -> None:
        for worker in self._workers:
            worker.start()

    def stop(self) -> None:
        self._stopping.set()
        for worker in self._workers:
            worker.stop()

    def ready(self, job: Job) -> str:
        """Why a waiting job cannot be placed yet; "" if it can. It is by this that a new one is heard of."""
        if not job.spec.carried:
            return ""
        why = self._reasons.get(job.id)
        if why is None:
            for worker in self._workers:
                worker.ring()
            return _to_be_fetched(job.spec.bos_url or job.spec.inputs[0].source)
        return why

    def tree(self, job: Job) -> Path:
        """Where the files of a job are that is ready."""
        self._check_here(job)
        return Brought(self._folder, job.id).tree

    def inputs(self, job: Job) -> Sequence[InputAt]:
        """Where the inputs of a job are that is ready."""
        self._check_here(job)
        return self._inputs.here(job)

    def _check_here(self, job: Job) -> None:
        stage, why = self._records.stage(job.id)
        if stage is Stage.REFUSED:
            raise RefusedError(why)
        if stage is not Stage.HERE:
            source = job.spec.bos_url or job.spec.inputs[0].source
            raise RefusedError(f"its files from {source} are not here any more: submit it again")

    def _bring_all(self) -> float:
        """Bring all that can be; in how many seconds to look again."""
        errands = [errand for errand in self._records.outstanding() if not errand.over]
        known = {errand.job: errand for errand in errands}
        self._reasons = {job: why for job, why in self._reasons.items() if job in known}
        worker = self._workers[0]
        worker.forget_others(known)
        missing = [errand for errand in errands if errand.stage is Stage.FETCHING or self._is_lost(errand)]
        # Before the first is fetched, which may take long: whatever is here need not wait for that.
        self._reasons.update((errand.job, "") for errand in errands if errand not in missing)
        for errand in missing:
            self._reasons.setdefault(errand.job, _to_be_fetched(errand.url))
        for errand in missing:
            worker.attempt(errand.job, partial(self._bring, errand), self._say_later)
        return _LOOK_SECONDS if missing else _IDLE_SECONDS

    def _is_lost(self, errand: Errand) -> bool:
        """Whether the records know more than the disk, as when they were restored on another one."""
        return errand.stage is Stage.HERE and errand.waiting and not (self._folder / errand.job).is_dir()

    def _bring(self, errand: Errand) -> None:
        if not self._is_waiting(errand.job):
            return
        folder = Brought(self._folder, errand.job)
        self._bringing = errand.job
        try:
            stage, why = self._brought(errand)
        except FullError:
            folder.remove()
            raise FullError(f"the server has no room for the files from {errand.url}") from None
        except GoneError:
            return
        finally:
            self._bringing = ""
        self._records.reach(errand.job, stage, why)
        self._reasons[errand.job] = ""
        self._wake()

    def _brought(self, errand: Errand) -> tuple[Stage, str]:
        job = self._jobs.get(errand.job)
        try:
            loads = [*([self._files(errand)] if errand.storage_key else ()), *self._inputs.loads(job)]
            wanted = [(load, load.listed()) for load in loads]
            self._check_size([items for load, items in wanted if isinstance(load, Load)])
            os.makedirs(self._folder / errand.job, exist_ok=True)  # by which `_is_lost` knows that all is here
            still = Still(lambda: self._is_waiting(errand.job), self._stopping)
            told = self._telling(errand, sum(item.size for _, items in wanted for item in items), still)
            for load, items in wanted:
                _read(load, items, spare_bytes=self._spare_bytes, progress=told)
        except InvalidError as error:
            log.warning("the files of %s cannot be had: %s", errand.job, error.message)
            return Stage.REFUSED, error.message
        return Stage.HERE, ""

    def _files(self, errand: Errand) -> _Files:
        place = parse_bos_url(errand.url)
        return _Files(place, self._open(errand, place), Brought(self._folder, errand.job), self._limit_bytes)

    def _open(self, errand: Errand, place: Place) -> Bucket:
        try:
            _, login = self._records.key(errand.user, errand.storage_key)
        except NotFoundError:
            raise InvalidError(f"the server has the key to {place} no more: submit the job again") from None
        return self.service.open(place, login)

    def _check_size(self, inputs: Sequence[Sequence[Item]]) -> None:
        if (total := sum(item.size for items in inputs for item in items)) > self._inputs_bytes:
            raise InvalidError(
                f"the inputs of the job are {format_size(total)}, which is more than this server fetches for one, "
                f"{format_size(self._inputs_bytes)} (jobs.inputs_limit)"
            )

    def _telling(self, errand: Errand, total: int, still: Still) -> carry.Progress:
        lock = threading.Lock()
        done = 0

        def progress(more: int) -> None:
            nonlocal done
            still.check()
            with lock:
                done += more
                self._reasons[errand.job] = f"fetching {format_size(done)} of {format_size(total)} from {errand.url}"

        return progress

    def _is_waiting(self, job: str) -> bool:
        try:
            return self._jobs.get(job).state.waiting
        except NotFoundError:
            return False

    def _say_later(self, job: str, why: str) -> None:
        self._reasons[job] = why

    def _send_all(self) -> float:
        folders = self._folders()  # before the records: what is made later is of jobs that they may not tell of
        errands = self._records.outstanding()
        worker = self._workers[1]
        worker.forget_others({errand.job for errand in errands})
        for name in folders - {errand.job for errand in errands if not errand.over} - {self._bringing}:
            Brought(self._folder, name).remove()
        for errand in errands:
            if errand.over and errand.job != self._bringing:
                worker.attempt(errand.job, partial(self._send, errand), self._say_unsent)
        if time.monotonic() >= self._sweep_at:
            if forgotten := self._records.sweep(self._clock()):
                log.info("storage keys forgotten: %d", forgotten)
            self._sweep_at = time.monotonic() + _IDLE_SECONDS
        return _LOOK_SECONDS if errands else _IDLE_SECONDS

    def _folders(self) -> set[str]:
        try:
            return set(os.listdir(self._folder))
        except FileNotFoundError:
            return set()

    def _send(self, errand: Errand) -> None:
        if not errand.storage_key:
            self._records.reach(errand.job, Stage.SENT, errand.why)
            return
        job = self._jobs.get(errand.job)
        place = parse_bos_url(errand.url)
        try:
            why = self._sent(errand, job, place) if next(carry.left(self._results, job), None) else ""
        except GoneError:
            return
        except PaddleCloudError as error:
            raise in_words(error, place) from None
        if gone := [one for one in self._removed(job.id) if one.kind in (Kept.RESULTS, Kept.LOGS)]:
            why = "; ".join([f"{one.sentence(job.id)}, before all was in {place}" for one in gone])
        self._records.reach(job.id, Stage.SENT, why)
        self._sweep_at = 0.0
        log.info("the results of %s are in %s", job.id, results_place(job))

    def _sent(self, errand: Errand, job: Job, place: Place) -> str:
        """What is to be said of it for good."""
        still = Still(lambda: True, self._stopping)
        bucket = self._open(errand, place)
        refused = carry.send(bucket, place.folder, self._results, job, progress=lambda _: still.check())
        if not refused:
            return ""
        return f"{len(refused)} of its results have longer names than {place} takes, such as {refused[0][:80]!r}"

    def _say_unsent(self, job: str, why: str) -> None:
        words = f"its results are not in its bucket yet: {why}"
        if self._records.stage(job)[1] != words:
            self._records.reach(job, self._records.stage(job)[0], words)


def _to_be_fetched(url: str) -> str:
    return f"its files are still to be fetched from {url}"


def open_carrier(
    settings: Settings,
    folder: DataFolder,
    records: Buckets,
    jobs: Jobs,
    results: Results,
    house: Housekeeping,
    pfs: Pfs,
    audit: AuditService,
    wake: Callable[[], None],
    clock: Callable[[], datetime],
) -> Carrier:
    return Carrier(
        service=BucketService(records=records, endpoint=settings.pfs.bos_endpoint, audit=audit, clock=clock),
        inputs=InputService(pfs=pfs, folder=folder.buckets, hdfs=FileSystems(settings.hdfs).open),
        records=records,
        jobs=jobs,
        results=results,
        removed=house.remains.removed,
        folder=folder.buckets,
        limit_bytes=settings.jobs.upload_limit,
        inputs_bytes=settings.jobs.inputs_limit,
        wake=wake,
        clock=clock,
    )


class _Files:
    """The files of a job in a bucket of its user's own: the folder that it runs in."""

    def __init__(self, place: Place, bucket: Bucket, brought: Brought, limit_bytes: int) -> None:
        self.name = str(place)
        self.brought = brought
        self.source = bucket
        self._place = place
        self._limit_bytes = limit_bytes

    def listed(self) -> Sequence[Item]:
        place = self._place
        try:
            items = carry.wanted(carry.listed(self.source, place.folder))
        except InvalidError as error:
            raise InvalidError(f"{place} has a name in it that no disk takes: {error.message}") from None
        except PaddleCloudError as error:
            raise in_words(error, place) from None
        if not items:
            raise nothing_there(place)
        if (total := sum(item.size for item in items)) > self._limit_bytes:
            raise InvalidError(
                f"the files in {place} are {format_size(total)}; a job may bring {format_size(self._limit_bytes)} "
                "(jobs.upload_limit)"
            )
        return items

    def in_words(self, error: PaddleCloudError) -> PaddleCloudError:
        return in_words(error, self._place)


def _read(load: _Files | Load, items: Sequence[Item], *, spare_bytes: int, progress: carry.Progress) -> None:
    try:
        load.brought.bring(load.source, items, spare_bytes=spare_bytes, progress=progress)
    except (ConflictError, NotFoundError):
        raise UnreachableError(f"a file in {load.name} was changed while it was fetched") from None
    except (FullError, InvalidError):
        raise
    except PaddleCloudError as error:
        raise load.in_words(error) from None
