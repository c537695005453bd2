"""What a job's own tasks may ask and send from other machines, by a token that is good for one attempt of it alone.

The token is a signature of the server's, so it needs no record, and it ends with the attempt. What a task tells of
itself goes into its folder, as if it ran on a machine that shares it: the backend need not know the difference.
"""

from __future__ import annotations

import hmac
import json
import os
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path

from msgspec.structs import replace

from paddlecloud.backends.base import InputAt
from paddlecloud.backends.orders import given
from paddlecloud.files.arriving import ArrivingFiles, ArrivingLogs
from paddlecloud.files.packed import packed, packed_share
from paddlecloud.model import paths
from paddlecloud.model.away import Claim, OutputLength, Run, TaskEnd, TaskNews
from paddlecloud.model.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError, UnauthenticatedError
from paddlecloud.model.inputs import shipped_name
from paddlecloud.model.job import Job
from paddlecloud.model.log import LogLength
from paddlecloud.runtime import taskfile
from paddlecloud.runtime.folder import Begun, Ended, SoFar, TaskFolder, claim, stop_file
from paddlecloud.runtime.inputs import InputError
from paddlecloud.runtime.node import TASKS
from paddlecloud.runtime.processes import Identity
from paddlecloud.server.jobs import task_names
from paddlecloud.store.jobs import Jobs
from paddlecloud.store.secrets import Cipher

TOKEN_PREFIX = "pcj_"
_PURPOSE = "tasks"
_CLAIM = "claim"
_DRAFTS = "arriving"
_CLAIM_BYTES = 200
_LATEST = 2.0**32
_REASON_LETTERS = 2000
_TAIL_LETTERS = 8192


def token_of(cipher: Cipher, handle: str) -> str:
    """What the tasks of an attempt identify themselves with."""
    return TOKEN_PREFIX + cipher.sign(handle, _PURPOSE)


class Shipping:
    def __init__(
        self,
        *,
        jobs: Jobs,
        logs: ArrivingLogs,
        files: ArrivingFiles,
        cipher: Cipher,
        tasks: Path,  # the folder with one for each cluster
        tree: Callable[[Job], Path | None],
        inputs: Callable[[Job], Sequence[InputAt]],
        wake: Callable[[], None],
        clock: Callable[[], datetime],
    ) -> None:
        self._jobs = jobs
        self._logs = logs
        self._files = files
        self._cipher = cipher
        self.tasks = tasks
        self._tree = tree
        self._inputs = inputs
        self._wake = wake
        self._clock = clock

    def token(self, job: Job) -> str:
        return token_of(self._cipher, job.handle)

    def identify(self, job_id: str, authorization: str) -> Job:
        """The job whose running attempt this is the token of."""
        scheme, _, token = authorization.strip().partition(" ")
        try:
            job = self._jobs.get(job_id)
        except NotFoundError:
            job = None
        if scheme.lower() != "bearer" or job is None or not _equal(token.strip(), self.token(job)):
            raise UnauthenticatedError(f"this is not the token of the tasks of {job_id!r}, in its last attempt")
        if not job.state.held:
            raise ConflictError(f"{job.id} is in {job.state.label}: its logs are closed")
        return job

    def claim(self, job: Job, run: Run) -> Claim:
        """Tell a node which task it runs, and what; only who asked first is told."""
        number, by = run.number, run.by
        if not by or len(by.encode("utf-8", "replace")) > _CLAIM_BYTES:
            raise InvalidError("by must name the run of the task, such as a job of Slurm", field="by")
        handle = self._handle(job)
        if os.path.exists(stop_file(str(handle))):
            raise ConflictError(f"{job.handle} is being stopped")
        try:
            names = (handle / TASKS).read_text().split("\n")
        except OSError:
            raise NotFoundError(f"{job.handle} is not on a cluster whose nodes ask here") from None
        if not 0 <= number < len(names):
            raise NotFoundError(f"{job.handle} has no task number {number}", field="number")
        started = by.partition(".")[0]
        if claim(str(handle), started) != started:
            raise ConflictError(f"{job.handle} runs already, and was started twice")
        folder = handle / names[number]
        if _claimant(folder / _CLAIM, by) != by:
            raise ConflictError(f"{names[number]} of {job.handle} was started before, and only once it runs")
        order = json.loads((folder / "task.json").read_bytes())
        return Claim(task=names[number], order=order, brings_tree=order["tree"] is not None)

    def tree(self, job: Job) -> Iterator[bytes]:
        """The job's files, as one stream."""
        folder = self._tree(job)
        if folder is None:
            raise NotFoundError(f"{job.id} has no files of its own")
        return packed(folder)

    def input(self, job: Job, task: str, number: int) -> Iterator[bytes]:
        """What of an input is for a task, as one stream."""
        self._check_task(job, task)
        if not 0 <= number < len(job.spec.inputs):
            raise NotFoundError(f"{job.id} has no input number {number}", field="number")
        at = self._inputs(job)[number]
        try:
            order = taskfile.read(TaskFolder(str(self._handle(job) / task)).task_file)
            return packed_share(order, given(at), shipped_name(at.input))
        except InputError as error:
            raise NotFoundError(str(error), field="number") from None
        except OSError:
            raise NotFoundError(f"{job.handle} is not on a cluster whose nodes ask here") from None

    def tell(self, job: Job, task: str, news: TaskNews) -> None:
        """Keep what became of a task."""
        self._check_task(job, task)
        _check_news(news)
        folder = TaskFolder(str(self._handle(job) / task))
        if not os.path.isdir(folder.path):
            raise NotFoundError(f"{job.handle} is not on a cluster whose nodes tell of it here")
        news = _within(news, job.created_at.timestamp(), self._clock().timestamp())
        so_far = SoFar(news.restarts, news.quiet_since, news.building, news.began)
        if so_far != folder.so_far and news.end is None:
            folder.write_so_far(so_far)
        if folder.begun is None and folder.ended is None:
            folder.write_begun(Begun(Identity("", 0, 0), news.started_at, ()))
        if news.end is not None and folder.ended is None:
            folder.write_ended(_ended(news, so_far))
        self._wake()

    def append_log(self, job: Job, task: str, offset: int, piece: bytes) -> LogLength:
        self._check_task(job, task)
        _check_offset(offset)
        return LogLength(length=self._logs.append(job, task, offset, piece))

    def append_output(
        self, job: Job, task: str, path: str, offset: int, piece: bytes, *, last: bool, executable: bool
    ) -> OutputLength:
        """A piece of a file that a task has left; with the last it is with the job's results."""
        self._check_task(job, task)
        _check_offset(offset)
        paths.check_relative(path)
        role, _, index = task.rpartition("-")
        kept = paths.kept_folder(job.attempt, task)
        if not path.startswith((f"{paths.rank_folder(role, int(index))}/", f"{paths.log_folder(task)}/", f"{kept}/")):
            raise ForbiddenError(f"{path} is not a place for what {task} leaves", field="path")
        drafts = self._handle(job) / _DRAFTS
        length = self._files.append(path, drafts, offset, piece)
        if last:
            self._files.complete(job, path, drafts, executable=executable)
        return OutputLength(length=length, whole=last)

    def _handle(self, job: Job) -> Path:
        return self.tasks / (job.placement.cluster if job.placement else "") / job.handle

    def _check_task(self, job: Job, task: str) -> None:
        if task not in task_names(job):
            raise NotFoundError(f"{job.id} has no task {task!r}", field="task")


def _within(news: TaskNews, first: float, now: float) -> TaskNews:
    """The news with times that can be: clocks of nodes go wrong, and minutes are counted by them."""

    def clamped(time: float, least: float) -> float:
        return max(least, min(time, now))

    started_at = clamped(news.started_at, first)
    began = None if news.began is None else clamped(news.began, started_at)
    end = news.end
    if end is not None and end.ended_at is not None:
        end = replace(end, ended_at=clamped(end.ended_at, began or started_at))
    return replace(news, started_at=started_at, began=began, end=end)


def _check_news(news: TaskNews) -> None:
    """Whatever a task tells of itself is shown and counted with: it must be something that can be."""
    end = news.end or TaskEnd()
    for name, time in (
        ("started_at", news.started_at),
        ("quiet_since", news.quiet_since),
        ("began", news.began),
        ("end.ended_at", end.ended_at),
    ):
        if time is not None and not 0 <= time < _LATEST:
            raise InvalidError(f"{name} must be seconds since 1970", field=name)
    for name, number in (("end.exit_code", end.exit_code), ("end.signal", end.signal)):
        if number is not None and not 0 <= number < 256:
            raise InvalidError(f"{name} must be from 0 to 255", field=name)
    if not 0 <= news.restarts < 2**31:
        raise InvalidError("restarts must be 0 or above", field="restarts")
    if max(len(end.reason), len(news.building)) > _REASON_LETTERS or len(end.tail) > _TAIL_LETTERS:
        raise InvalidError("building, end.reason and end.tail may have a few lines, and no more", field="end")


def _ended(news: TaskNews, so_far: SoFar) -> Ended:
    end = news.end
    assert end is not None
    return Ended(
        exit_code=end.exit_code,
        signal=end.signal,
        reason=end.reason,
        started_at=so_far.started_at(news.started_at),
        ended_at=end.ended_at,
        tail=end.tail,
        lost=end.lost,
        told=end.told,
        restarts=news.restarts,
    )


def _claimant(path: Path, by: str) -> str:
    """Who has claimed the task: this one, if nobody has before."""
    try:
        with path.open("x") as file:
            file.write(by)
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        return path.read_text()
    return by


def _check_offset(offset: int) -> None:
    if not 0 <= offset < 2**63:
        raise InvalidError("offset must be the byte where the piece begins, 0 or above", field="offset")


def _equal(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(errors="replace"), expected.encode())
