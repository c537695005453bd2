"""The client that programs use, and the command itself: one method for every verb of the server.

    from paddlecloud import Client

    client = Client()
    job = client.submit("job", command="sh run.sh")
    for piece in client.logs(job.id, follow=True):
        print(piece.text, end="")
    client.download(client.wait(job.id).id, "results")

Every method raises the class of `paddlecloud.model.errors` that the server raised, or UnreachableError.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

from msgspec.structs import replace

from paddlecloud.model import paths, wire
from paddlecloud.model.errors import ConflictError, InvalidError, NotFoundError
from paddlecloud.model.job import Job, JobSpec, Moved
from paddlecloud.model.state import LIVE, JobState
from paddlecloud.model.views import Acceptance, JobDetail, JobPage
from paddlecloud.sdk import profile as profiles
from paddlecloud.sdk.http import Http, warn
from paddlecloud.sdk.profile import Profile
from paddlecloud.sdk.spec import Asked, check_texts, job_spec
from paddlecloud.sdk.sse import Event

if TYPE_CHECKING:
    # Imported by the methods that use them: a question about a job should not wait for what moves files.
    from paddlecloud.model.accounts import QuotaUse
    from paddlecloud.model.finding import Finding
    from paddlecloud.model.log import LogPiece
    from paddlecloud.model.service import Cluster, Queue
    from paddlecloud.model.space import Collection, Space
    from paddlecloud.model.transfers import FileEntry
    from paddlecloud.sdk import transfer
    from paddlecloud.sdk.accounts import Accounts
    from paddlecloud.sdk.bundle import Bundle
    from paddlecloud.sdk.pfs import Pfs
    from paddlecloud.sdk.registry import Registries
    from paddlecloud.sdk.storage import Storage

_ID_PREFIX = re.compile(r"(?:job-)?([0-9a-f]{4,32})")
_PAGE = 500
_NEWEST = 2000  # jobs among which the beginning of an id is looked for
_NAMESAKES = 20


class Client:
    """A server, spoken to in one user's name; `accounts` holds the calls about users, keys and tokens,
    `pfs` those about files, `registries` those about registry secrets, `storage` those about buckets of one's own.

    Without a profile it takes the one that the command takes (`paddlecloud config` shows it). With nothing
    configured that is this user's embedded server, which `paddlecloud up` starts.
    """

    def __init__(self, profile: Profile | None = None) -> None:
        self.profile = profile or profiles.load()
        if not self.profile.server:
            raise profiles.no_server(self.profile)
        self.http = Http(self.profile)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the connections back."""
        self.http.close()

    @cached_property
    def accounts(self) -> Accounts:
        from paddlecloud.sdk.accounts import Accounts

        return Accounts(self.http)

    @cached_property
    def pfs(self) -> Pfs:
        from paddlecloud.sdk.pfs import Pfs

        return Pfs(self.http)

    @cached_property
    def registries(self) -> Registries:
        from paddlecloud.sdk.registry import Registries

        return Registries(self.http)

    @cached_property
    def storage(self) -> Storage:
        from paddlecloud.sdk.storage import Storage

        return Storage(self.http)

    def submit(
        self,
        folder: str | Path | Bundle | None = None,
        spec: JobSpec | None = None,
        *,
        progress: transfer.Progress | None = None,
        idempotency_key: str | None = None,
        **asked: Unpack[Asked],
    ) -> Job:
        """Send `folder`, only what the server lacks of it, and submit a job that runs in it.

        Say what to run by a whole JobSpec, or by keywords, of which only `command` is needed:

        command         what to run: "sh run.sh"
        name            "tmp_job" if left out; names need not be unique
        cluster         "default", or a name that `clusters` lists
        queue           a name that `queues` lists: its cluster, its time limit and its priority
        nodes           number of trainers (1)
        cpus, memory, gpus   for each trainer: 2, "4Gi" or bytes, 1; what is left out, the cluster's default
        job_type        "gpu" or "cpu"; left out: gpu where the cluster has GPUs
        distribute      "NCCL2": several trainers talk to each other (unless told otherwise); "PSERVER": a pserver,
                        which runs the same command, stands beside each
        env             variables of the tasks
        wall_time       the longest run: "00:30:00", "2h" or seconds as an int
        priority        higher goes first (0)
        public_bcc, public_bos, bos_url   machines and storage of one's own, as the manual has them
        storage_key     the id of the key to that storage (`storage.add_key`)
        retry           how often it is started again if it fails, or a Retry that tells failures apart
        hang            after how long without log, CPU and GPU use it seems to hang: "10m", seconds, 0 for never, or
                        a Hang that also ends it then
        keep_on_failure what its tasks had in their working directories stays with the results if it fails
        requirements    the file of the folder that names its Python packages; left out, requirements.txt or
                        pyproject.toml if one is there; "none" for none
        python          "3.12", or a path: the Python that they are installed for
        setup           commands that each task runs first
        inputs          Inputs: files of the PFS or of HDFS that tasks find in their working directory
        slurm           options of sbatch that its cluster lets jobs set: {"constraint": "rack1"}
        slurm_env       trainers also get the variables of a Slurm step

        Returns the job's record, in state `submit`; `wait` waits for its end. The same `idempotency_key` with the
        same job gives the job that is there already, so that a program may repeat itself after a crash. A folder that
        is a Bundle (`bundle.scan`) has been read already.
        """
        from paddlecloud.sdk import bundle, transfer

        if (spec is None) == (not asked):
            raise InvalidError("say what to submit by keywords (command=…) or by a JobSpec, one of the two")
        spec = job_spec(asked) if spec is None else spec
        check_texts(spec)
        if folder is not None:
            if not isinstance(folder, bundle.Bundle):
                folder = bundle.scan(folder, limit_bytes=self.check(spec).upload_limit_bytes)
            spec = replace(spec, folder=folder.name, tree=transfer.upload(self.http, folder, progress))
        # The key makes a repeated submit the same job, whatever became of the first answer.
        key = idempotency_key or os.urandom(16).hex()
        try:
            return self._submit(spec, key)
        except InvalidError as error:
            if folder is None or error.field != "tree":
                raise
        # The server has let the folder go since it was sent: as the last job that used it ended, its time was up.
        transfer.upload(self.http, folder, progress)
        return self._submit(spec, key)

    def check(self, spec: JobSpec) -> Acceptance:
        """Ask the server whether it would take the job, before its folder is read and sent; raise what submit would."""
        check_texts(spec)
        return self.http.send(Acceptance, "POST", "/v1/jobs/check", wire.without_defaults(spec), repeatable=True)

    def resolve(self, ref: str, *, only: bool = False) -> str:
        """The id of the job that `ref` means: an id, the beginning of one (4 digits or more, with or without `job-`),
        or a name, which is the live job of that name or else the newest.

        With `only`, for what cannot be undone, a name that several live jobs have is refused.
        """
        if paths.is_job_id(ref):
            return ref
        if (found := _ID_PREFIX.fullmatch(ref)) and (ids := self._ids_from(f"job-{found[1]}")):
            if len(ids) > 1:
                raise ConflictError(f"{ref!r} begins {len(ids)} job ids: {', '.join(ids[:5])}; type more of it")
            return ids[0]
        named = self.list(name=ref, states=sorted(LIVE), limit=_NAMESAKES)
        if len(named) > 1:
            _tell_namesakes(ref, [job.id for job in named], only)
        named = named or self.list(name=ref, limit=1)
        if not named:
            raise NotFoundError(f"no job has the id or the name {ref!r}; `paddlecloud ls` lists yours")
        return named[0].id

    def get(self, job: str) -> JobDetail:
        """All there is to say about a job: its record, tasks, history, and, while it waits, its place in the queue."""
        return self.http.get(JobDetail, f"/v1/jobs/{self.resolve(job)}")

    def list(
        self,
        *,
        states: Iterable[JobState] = (),
        name: str | None = None,
        user: str | None = None,
        everyone: bool = False,
        limit: int | None = None,
    ) -> Sequence[Job]:
        """Jobs, newest first: yours, or with `everyone` all (for admins); `limit` is the most to be given."""
        query = {"state": ",".join(states) or None, "name": name, "user": user, "all": everyone or None}
        found: list[Job] = []
        cursor: str | None = None
        while limit is None or len(found) < limit:
            size = _PAGE if limit is None else min(_PAGE, limit - len(found))
            page = self.http.get(JobPage, "/v1/jobs", {**query, "cursor": cursor, "limit": size})
            found += page.items
            cursor = page.next_cursor
            if cursor is None:
                break
        return found

    def kill(self, job: str) -> Job:
        """Ask for a job to be stopped. It is `killing` until nothing of it runs; `wait` waits for that."""
        return self.http.send(Job, "POST", f"/v1/jobs/{self.resolve(job, only=True)}/kill", repeatable=True)

    def hide(self, job: str) -> None:
        """Take a job out of lists; all that is known of it stays, by its id."""
        self.http.request("POST", f"/v1/jobs/{self.resolve(job, only=True)}/hide", repeatable=True)

    def kill_and_hide(self, job: str) -> Job:
        """Stop a job, if it has not ended yet, and take it out of lists."""
        job = self.resolve(job, only=True)
        try:
            self.kill(job)
        except ConflictError:
            pass  # it has ended by itself
        self.hide(job)
        return self.get(job).job

    def wait(self, job: str, timeout: float | None = None) -> Job:
        """The record of a job once it has ended; after `timeout` seconds, the record as it is then."""
        job = self.resolve(job)
        deadline = None if timeout is None else time.monotonic() + timeout
        pause = 0.05
        while True:
            record = self.get(job).job
            left = None if deadline is None else deadline - time.monotonic()
            if record.state.final or (left is not None and left <= 0):
                return record
            if left is None:
                for _ in self.events(job, follow=True):
                    pass
            else:
                time.sleep(min(pause, left))
                pause = min(pause * 1.5, 1.0)

    def logs(
        self,
        job: str,
        *,
        follow: bool = False,
        task: str | None = None,
        tail: int | None = None,
        since: str | None = None,
    ) -> Iterator[LogPiece]:
        """Text of a job's logs, of all tasks or of one ("trainer-0"); with `follow` until the job has ended.

        `tail` begins with the last lines of each task; `since` ("10m") with what was written in that time.
        """
        from paddlecloud.model.log import LogPiece

        path = f"/v1/jobs/{self.resolve(job)}/logs"
        query = {"task": task, "tail": tail, "since": since, "follow": int(follow)}
        for event in self.http.follow(path, query, is_last=lambda event: event.name == "end"):
            if event.name == "log":
                yield wire.decode_answer(LogPiece, event.data)

    def events(self, job: str | None = None, *, follow: bool = False, after: int | None = None) -> Iterator[Moved]:
        """Changes of state, of one job up to its end or of all of yours; `follow` goes on as they happen.

        `after` is the `seq` of the last one you have seen. Without it, following all of yours begins now.
        """
        path = "/v1/events" if job is None else f"/v1/jobs/{self.resolve(job)}/events"
        query = {"follow": int(follow)}
        if not follow:
            yield from map(_moved, self.http.events(path, query, after=str(after or 0)))
            return
        begin = "" if after is None else str(after)

        def is_last(event: Event) -> bool:
            return job is not None and event.name == "moved" and _moved(event).to_state.final

        for event in self.http.follow(path, query, is_last=is_last, after=begin):
            if event.name == "moved":
                yield _moved(event)

    def files(self, job: str, prefix: str = "") -> Iterator[FileEntry]:
        """A job's results below `prefix` (`log`, `output/<job>/log`; "" is all): `output/<job>/rank-0/…`."""
        from paddlecloud.model.transfers import FilePage

        job = self.resolve(job)
        cursor: str | None = None
        while True:
            query = {"prefix": prefix or None, "cursor": cursor, "limit": _PAGE}
            page = self.http.get(FilePage, f"/v1/jobs/{job}/files", query)
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return

    def download(
        self,
        job: str,
        folder: str | Path,
        *,
        prefix: str = "",
        progress: transfer.Progress | None = None,
        resume: bool = True,
        update: bool = False,
    ) -> transfer.Downloaded:
        """Bring a job's results, or those below `prefix`, into a new folder, as `<folder>/<job>/rank-0/…`.

        With `resume` a folder may also be there from a download of the same job that was broken off; with `update` from
        any earlier one: what is new or has another size or time is fetched, and nothing is removed.
        """
        from paddlecloud.sdk import transfer

        found = self.get(job).job
        return transfer.download(
            self.http, found.id, prefix, Path(folder), progress, resume=resume, update=update, settled=found.state.final
        )

    def clusters(self) -> Sequence[Cluster]:
        """The clusters that a job may name, with what they have and what is free."""
        from paddlecloud.model.service import Cluster

        return self.http.get(list[Cluster], "/v1/clusters")

    def queues(self) -> Sequence[Queue]:
        """The queues that a job of yours may name, and what they take."""
        from paddlecloud.model.service import Queue

        return self.http.get(list[Queue], "/v1/queues")

    def doctor(self) -> Sequence[Finding]:
        """What is well with the server and its machine, and what is not; for admins."""
        from paddlecloud.model.finding import Finding

        return self.http.get(list[Finding], "/v1/doctor")

    def quota(self, user: str | None = None) -> QuotaUse:
        """What you may have and what you use; an admin may ask about another `user`."""
        from paddlecloud.model.accounts import QuotaUse

        return self.http.get(QuotaUse, "/v1/quota", {"user": user})

    def space(self, *, users: bool = False, now: bool = False) -> Space:
        """What uses the server's space: yours or, for an admin, everybody's, and by user; `now` counts anew."""
        from paddlecloud.model.space import Space

        return self.http.get(Space, "/v1/space", {"users": users or None, "now": now or None})

    def collect(self, *, dry_run: bool = False) -> Iterator[Collection]:
        """Have the server take away now what it has kept long enough (for admins), part by part; or only say what."""
        from paddlecloud.model.space import Collection, CollectionRequest

        more = True
        while more:
            asked = CollectionRequest(dry_run=dry_run)
            part = self.http.send(Collection, "POST", "/v1/space/collect", asked, repeatable=True)
            yield part
            more = part.more and bool(part.collected) and not dry_run

    def has_gpus(self, cluster: str) -> bool:
        """Whether a job on `cluster` would find GPUs there."""
        return any(
            one.capacity is not None and one.capacity.gpus > 0
            for one in self.clusters()
            if one.name == cluster or (cluster == "default" and one.default)
        )

    def _submit(self, spec: JobSpec, key: str) -> Job:
        sent, headers = wire.without_defaults(spec), {"Idempotency-Key": key}
        return self.http.send(Job, "POST", "/v1/jobs", sent, headers=headers, repeatable=True)

    def _ids_from(self, prefix: str) -> Sequence[str]:
        return [job.id for job in self.list(limit=_NEWEST) if job.id.startswith(prefix)]


def _tell_namesakes(name: str, ids: Sequence[str], refuse: bool) -> None:
    listed = ", ".join(ids[:5]) + (", …" if len(ids) > 5 else "")
    if refuse:
        raise ConflictError(f"{len(ids)} live jobs are called {name!r}: {listed}; name one by its id")
    warn(f"{len(ids)} live jobs are called {name!r}: this is the newest, {ids[0]}")


def _moved(event: Event) -> Moved:
    return wire.decode_answer(Moved, event.data)
