"""A Slurm cluster as a backend: we hand over what our quotas let start, Slurm places and runs it.

start   <root>/<handle>/ appears by a rename, complete; then sbatch, whose job is named by the handle, so that one that
        was accepted although no answer came is found again; <handle>/slurm says which it is
report  one squeue for all, and each task's folder; sacct of those that Slurm has forgotten (slurmstate.py)
stop    <handle>/stop, durably, then SIGTERM to the tasks, scancel to what waits, or has not ended when its time is over
clean   <root>/<handle>/ is removed; what Slurm keeps running after that is cancelled (slurmleaving.py)
"""

from __future__ import annotations

import dataclasses
import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from msgspec.structs import replace

from paddlecloud.backends import shipped, slurmscript, slurmstate
from paddlecloud.backends.base import Launch, RefusedError
from paddlecloud.backends.orders import Here, render
from paddlecloud.backends.slurmaddresses import Addresses
from paddlecloud.backends.slurmcalls import Calls
from paddlecloud.backends.slurmcluster import Cluster
from paddlecloud.backends.slurmheld import ID, OUTPUT, Held, first_word
from paddlecloud.backends.slurmleaving import Leaving
from paddlecloud.backends.slurmnodes import Rooms
from paddlecloud.backends.slurmstate import FORGOTTEN, WAITING, Seen
from paddlecloud.backends.slurmverdict import Known, Verdict, judge
from paddlecloud.backends.trash import Trash
from paddlecloud.model.errors import ConflictError, NotFoundError, UnreachableError
from paddlecloud.model.inputs import shipped_name
from paddlecloud.model.job import Resources, TaskPlacement
from paddlecloud.model.task import Report, TaskReport, TaskState
from paddlecloud.model.views import Forecast
from paddlecloud.runtime import away, environments, lease, removal, taskfile
from paddlecloud.runtime.allocation import SLURM
from paddlecloud.runtime.folder import TaskFolder, stop_file, sync_folder, write_durably, write_synced
from paddlecloud.runtime.node import TASKS

log = logging.getLogger(__name__)

_LOOK_SECONDS = 1.0
_TOO_LONG = "time limit"  # in what Slurm says of a job that asks for more than its partition gives
_LOOKS_SHARE = 10  # of the time, one part in so many goes into asking Slurm at most
# How long the end of a task may be on its way after Slurm has told the end of the job; by then one that still runs on a
# node that Slurm cannot reach has ended itself.
_WORD_SECONDS = lease.REVOKED_SECONDS


class SlurmBackend:
    def __init__(
        self,
        root: Path,
        cluster: Cluster,
        calls: Calls,
        *,
        clock: Callable[[], datetime],
        allow_unisolated: Callable[[], bool] = lambda: True,
    ) -> None:
        self._root = root.absolute()
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for unfinished in self._root.glob(".new-*"):
            removal.remove(str(self._root), unfinished.name)
        self._trash = Trash(self._root)
        self._leaving = Leaving(self._root)
        self._cluster = cluster
        self._calls = calls
        self.rooms = Rooms(calls.nodes, cluster.options)
        self.addresses = Addresses(calls.addresses)
        self._clock = clock
        self._allow_unisolated = allow_unisolated
        self._runtime = shipped.put(self._root)
        self._held: dict[str, Held] = {}
        self._seen: Mapping[int, Seen] = {}
        self._named: Mapping[str, Sequence[Seen]] = {}  # one, or two where the answer to a submission was lost
        self._looked_at = 0.0
        self._look_again_at = 0.0
        self._looking = threading.Lock()  # who asks what there is to give out is another thread

    def capacity(self) -> Resources | None:
        """None, once Slurm has answered: what does not answer is given no jobs."""
        self._look()
        return None

    def start(self, launch: Launch) -> None:
        folder = self._folder(launch.handle)
        before = os.path.isdir(folder)
        if not before:
            self._write(launch, folder)
        held = self._hold(launch.handle)
        if held.id is not None or held.stopped:
            return
        account = self._cluster.accounts.get(launch.user)
        if before:
            self._look(fresh=True)
            if found := self._jobs_of(held):
                held.submitted(found[0].id, account)
                return
        held.submitted(self._submit(launch, folder, account), account)

    def report(self, handles: Collection[str]) -> Mapping[str, Report]:
        held = {}
        for handle in handles:
            try:
                held[handle] = self._hold(handle)
            except NotFoundError:
                continue
        if not held:
            return {}
        self._look()
        seen = {handle: self._find(one) for handle, one in held.items()}
        silent = [one for handle, one in held.items() if one.id and seen[handle] is None and not self._is_new(one)]
        past = self._past([one.id for one in silent if one.id and not one.all_ended])
        return {
            handle: slurmstate.ending(one.look(), self._clock(), told=one.told_tasks)
            if past is None and one in silent and not one.all_ended
            else self._judge(one, seen[handle] or (past or {}).get(one.id or 0))
            for handle, one in held.items()
        }

    def stop(self, handle: str) -> None:
        try:
            held = self._hold(handle)
        except NotFoundError:
            return
        if not held.stopped:
            write_durably(stop_file(held.folder), b"")
        self._look(fresh=not held.told)
        found = self._jobs_of(held)
        late = held.stopped_for(self._clock()) > self._cluster.grace_seconds + _WORD_SECONDS
        for seen in found:
            if not seen.ended and (seen.state in WAITING or late):
                self._calls.cancel(seen.id, held.account)
            elif not seen.ended and not held.told:
                self._calls.terminate(seen.id, held.account, batch=len(held.names) == 1)
        if not found and held.id is not None:
            self._calls.cancel(held.id, held.account)
        held.told = held.told or bool(found)

    def clean(self, handles: Collection[str]) -> None:
        ended = self.report(handles)
        for handle, report in ended.items():
            if not report.ended:
                raise ConflictError(f"{handle} has not ended; stop it, and clean it once nothing of it runs")
        for handle in ended:
            self._leave(handle)
            self._trash.put(handle)
            self._held.pop(handle, None)
        if ended:
            sync_folder(str(self._root))

    def forecast(self, handle: str) -> Forecast | None:
        """Its place among our jobs that wait there, in Slurm's order, when Slurm was asked last."""
        waiting = [seen for seen in self._seen.values() if seen.state in WAITING]
        found = [(place, seen.start_at) for place, seen in enumerate(waiting, start=1) if seen.name == handle]
        return Forecast(position=found[0][0], about_at=found[0][1]) if found else None

    def close(self) -> None:
        self._trash.close()

    def _folder(self, handle: str) -> str:
        if not handle or handle.startswith(".") or "/" in handle or "\0" in handle:
            raise RefusedError(f"{handle!r} cannot be the name of a handle", field="handle")
        return f"{self._root}/{handle}"

    def _hold(self, handle: str) -> Held:
        if handle not in self._held:
            self._held[handle] = Held(self._folder(handle))
        return self._held[handle]

    def _look(self, *, fresh: bool = False) -> None:
        """Ask Slurm for all jobs, the less often the longer it takes to say it."""
        with self._looking:
            self._look_now(fresh=fresh)

    def _look_now(self, *, fresh: bool) -> None:
        began = time.monotonic()
        if not fresh and began < self._look_again_at:
            return
        self._seen = self._calls.jobs()
        self._leaving.look(self._seen, self._calls.cancel)
        self._looked_at = began
        named: dict[str, list[Seen]] = {}
        for seen in self._seen.values():
            named.setdefault(seen.name, []).append(seen)
        self._named = named
        took = time.monotonic() - began
        self._look_again_at = time.monotonic() + max(_LOOK_SECONDS, took * _LOOKS_SHARE)

    def _jobs_of(self, held: Held) -> list[Seen]:
        """The jobs of a handle: who else has given a job its name has nothing to do with it."""
        account = held.account or self._calls.own
        return [seen for seen in self._named.get(held.handle, ()) if seen.user in ("", account)]

    def _find(self, held: Held) -> Seen | None:
        """What Slurm says of a handle; of two jobs, one that was accepted without a word to us, the one that runs it
        counts, and the other is ended."""
        found = self._jobs_of(held)
        if not found or (len(found) == 1 and held.id in (None, found[0].id)):
            return found[0] if found else None
        runs = held.claimed
        if runs is None:
            own = [seen for seen in found if held.id in (None, seen.id)]
            return own[0] if own else None
        for seen in found:
            if seen.id != runs and not seen.ended:
                log.warning("Slurm has two jobs of %s: %d is cancelled, %d runs it", held.handle, seen.id, runs)
                with suppress(UnreachableError):  # at the next look again
                    self._calls.cancel(seen.id, held.account)
        if held.id != runs:
            held.submitted(runs, held.account)
        return self._seen.get(runs)

    def _leave(self, handle: str) -> None:
        """Cancel what would begin after its folder is gone: another job of the handle, or the one that ran it, if it
        was put back; but not if it only waited when Slurm was asked last, before it began. What runs has time to end
        by itself."""
        held = self._hold(handle)
        put_back = self._looked_at > (held.begun_at or 0.0)
        for seen in self._jobs_of(held):
            if seen.state in WAITING and (put_back or seen.id != held.claimed):
                self._calls.cancel(seen.id, held.account)
            elif not seen.ended:
                self._leaving.add(seen.id, held.account)

    def _past(self, ids: Sequence[int]) -> Mapping[int, Seen] | None:
        """What the accounts say; None: they do not answer, which keeps nobody from telling of the others."""
        try:
            return self._calls.past(ids)
        except UnreachableError as error:
            log.warning("the accounts of Slurm on %s: %s", self._cluster.name, error)
            return None

    def _is_new(self, held: Held) -> bool:
        """Whether it was handed over after Slurm was asked the last time."""
        return held.submitted_at > self._looked_at

    def _judge(self, held: Held, seen: Seen | None) -> Report:
        now, tasks = self._clock(), held.look()
        if seen is None and held.id is not None and not self._is_new(held):
            seen = Seen(id=held.id, state=FORGOTTEN)
        known = Known(
            state=None if seen is None else seen.state,
            begun=held.begun_at is not None,
            seen_since=self._looked_at > (held.begun_at or 0.0),
            stopped=held.stopped,
            all_ended=all(task.state.ended for task in tasks),
        )
        known = dataclasses.replace(known, words_awaited=held.ended_for(known.ended) < _WORD_SECONDS)
        if known.ended and not known.all_ended:
            held.revoke()
        verdict = judge(known)
        told = () if known.stopped else held.told_tasks
        if seen is None or verdict is Verdict.NOT_SEEN:
            return self._not_seen_yet(held, tasks)
        if verdict is Verdict.WAITS:
            return held.waits(seen, lambda: slurmstate.waiting(seen, tasks, self._cluster.name))
        if verdict is Verdict.AS_TOLD:
            return Report(tasks=tuple(tasks))
        if verdict is Verdict.ENDING:
            return slurmstate.ending(tasks, now, told=told)
        if verdict is Verdict.PUT_BACK:
            return slurmstate.put_back(seen, tasks, now)
        if verdict is Verdict.OVER:
            return slurmstate.ended(seen, tasks, now, stopped=known.stopped, said=held.said(), told=told)
        return slurmstate.running(seen, tasks, now, told=told)

    def _not_seen_yet(self, held: Held, tasks: Sequence[TaskReport]) -> Report:
        if held.stopped and held.id is None:
            return Report(tasks=tuple(_stopped_before(task, self._clock()) for task in tasks))
        waits = "" if held.id is None else f"handed over to Slurm on {self._cluster.name}, job {held.id}"
        return Report(tasks=tuple(tasks), waits=waits)

    def _write(self, launch: Launch, folder: str) -> None:
        numbered = [replace(task, address=f"@{number}") for number, task in enumerate(slurmscript.in_order(launch))]
        orders = render(self._as_told(launch, numbered), self._here(launch, folder))
        part = f"{self._root}/.new-{launch.handle}"
        try:
            removal.remove(str(self._root), os.path.basename(part))
            os.mkdir(part, 0o700)
            for name, order in orders.items():
                TaskFolder(f"{part}/{name}").create(taskfile.encode(order))
            if account := self._cluster.accounts.get(launch.user):
                write_synced(f"{part}/{ID}", first_word(account))
            lease.grant(part)
            write_synced(f"{part}/{TASKS}", "\n".join(task.name for task in numbered).encode())
            sync_folder(part)
            os.rename(part, folder)
            sync_folder(str(self._root))
        except OSError as error:
            raise UnreachableError(f"cannot write {part}: {error.strerror}") from None

    def _as_told(self, launch: Launch, numbered: Sequence[TaskPlacement]) -> Launch:
        """The launch in the words of its nodes: their numbers for addresses, and their folders."""
        placed = {task.name: task for task in numbered}
        tasks = tuple(placed[task.name] for task in launch.placement.tasks)
        told = dataclasses.replace(launch, placement=replace(launch.placement, tasks=tasks))
        if not self._cluster.url:
            return told
        if launch.cwd is not None:
            raise RefusedError(
                f"the nodes of {self._cluster.name} do not share the server's files, so a job cannot run in "
                f"{launch.cwd}: send the folder with the job"
            )
        inputs = tuple(
            dataclasses.replace(one, folder=Path(away.INPUTS, str(number)), path=shipped_name(one.input))
            for number, one in enumerate(launch.inputs)
        )
        tree = None if launch.tree is None else Path(away.TREE)
        return dataclasses.replace(told, tree=tree, results=Path(away.RESULTS), mounts=(), inputs=inputs, pfs=None)

    def _here(self, launch: Launch, folder: str) -> Here:
        account, far = self._cluster.accounts.get(launch.user), bool(self._cluster.url)
        view = self._cluster.view()
        return Here(
            folder=Path(away.ROOT, launch.handle) if far else Path(folder),
            mounts=True,
            account=account or "",
            search_path=[],
            grace_seconds=self._cluster.grace_seconds,
            gate_seconds=self._cluster.gate_seconds,
            build_seconds=self._cluster.build_seconds,
            interpreter=self._cluster.python,
            environments=Path(away.ENVIRONMENTS) if far else self._cluster.environments,
            uv=None,
            pids_limit=0,
            hidden=() if far else self._cluster.hidden,  # a far node hides its own
            # A user's own account sees what the node's file modes let it see.
            whole_machine=account is not None or view.whole_machine,
            visible=view.visible,
            visible_writable=view.visible_writable,
            wake=self._root,
            boot="",
            allocation=SLURM,
            unisolated=account is not None or self._allow_unisolated(),
        )

    def _submit(self, launch: Launch, folder: str, account: str | None) -> int:
        """Hand it over with room for its packages to be built; where the partition gives less, without."""
        room = self._build_seconds(launch) if launch.wall_time_seconds is not None else 0.0
        try:
            return self._calls.submit(self._script(launch, folder, room), account)
        except RefusedError as error:
            if not room or _TOO_LONG not in error.message.lower():
                raise
            return self._calls.submit(self._script(launch, folder, 0.0), account)

    def _script(self, launch: Launch, folder: str, build_seconds: float) -> str:
        python = [self._cluster.python, "-I", "-S"]
        return slurmscript.render(
            launch,
            options={**self._cluster.options, **launch.options},
            prelude=self._fetching(launch) if self._cluster.url else [],
            command=slurmscript.fetched(python) if self._cluster.url else [*python, str(self._runtime), folder],
            output=os.devnull if self._cluster.url else f"{folder}/{OUTPUT}",
            wall_time_seconds=launch.wall_time_seconds,
            own_nodes=launch.own_nodes and not self._cluster.pack,
            build_seconds=build_seconds,
        )

    def _fetching(self, launch: Launch) -> list[str]:
        # Where others' tasks run as the same account, all work in one place, which can be hidden from them.
        alone = launch.user in self._cluster.accounts or self._allow_unisolated()
        return slurmscript.fetching(
            server=self._cluster.url.rstrip("/"),
            job=launch.job,
            token=self._cluster.token(launch.handle),
            certificate=self._cluster.certificate,
            alone="1" if alone else "",
            start=shipped.FETCH,
        )

    def _build_seconds(self, launch: Launch) -> float:
        """How long the packages of a job may take to be built, if it names any."""
        tree = None if launch.tree is None else str(launch.tree)
        builds = launch.python or environments.named(tree, launch.requirements)
        return self._cluster.build_seconds if builds else 0.0


def _stopped_before(task: TaskReport, now: datetime) -> TaskReport:
    return TaskReport(name=task.name, state=TaskState.FAILED, reason="stopped before it started", ended_at=now)
