"""The supervisor of one task: starts it, passes a stop on, ends all of its processes, leaves the exit file.

It is a child of no one who could die before it, and sits outside the groups that it limits, so the exit file appears
whatever happens to the task or to the server; and only after nothing of the task runs any more. In a PID namespace it
is the first process: should it be killed, the kernel kills all that is left of the task.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import Callable

from paddlecloud.runtime import (
    below,
    cgroups,
    environments,
    gate,
    handover,
    lease,
    namespaces,
    processes,
    signals,
    smallfiles,
    wake,
    workdir,
)
from paddlecloud.runtime.activity import Activity
from paddlecloud.runtime.cgroups import Groups, Leaf, Limits
from paddlecloud.runtime.environments import Environment
from paddlecloud.runtime.folder import Begun, Ended, SoFar, leave
from paddlecloud.runtime.inside import Inside, describe
from paddlecloud.runtime.memory import MemoryWatch
from paddlecloud.runtime.namespaces import Isolation
from paddlecloud.runtime.order import Order, packages
from paddlecloud.runtime.outcome import Outcome, decode, not_started
from paddlecloud.runtime.taskfile import TaskFile
from paddlecloud.runtime.tasklog import TaskLog, results

_LONGEST_PAUSE_SECONDS = 30.0
_GATE_LOOK_SECONDS = 0.05
_BUILD_LOOK_SECONDS = 0.2
_SILENT_WAIT_SECONDS = 3.0
_OUT_OF_MEMORY = "out of memory"
_REVOKED = "ended by its node: its cluster had ended the job, and another attempt may write to its results"
_OUT_OF_MEMORY_WORDS = ("MemoryError", "Cannot allocate memory", "std::bad_alloc", "out of memory")


def supervise(order: Order, isolation: Isolation, groups: Groups, clock: Callable[[], float]) -> Ended | None:
    """Run a task from its start to its exit file, whose content is returned, unless someone has or does already; with a
    problem it ends before it starts. This process is in the namespaces of the task, but for its mounts."""
    folder = order.folder
    lock = folder.lock()
    if lock is None or not folder.untouched:
        return None
    # From here on a stop is not missed: SIGTERM waits for us, and the stop file is looked for after `pid` is there.
    signal.pthread_sigmask(signal.SIG_BLOCK, signals.AWAITED)
    smallfiles.write("/proc/self/comm", b"paddlecloud-run")
    namespaces.forbid_tracing()
    leaf = groups.leaf(f"{folder.handle}.{folder.task}")
    wanted, problem = packages(order.task)
    if wanted is not None and not wanted.ready:
        folder.write_so_far(SoFar(building=wanted.words))  # before `pid`, or it would be seen to run
    started_at = clock()
    folder.write_begun(Begun(processes.own_identity(), started_at, leaf.folders))
    if order.task is not None:
        wake.knock(order.task.wake)
    outcome, tail = _run(order._replace(problem=order.problem or problem), wanted, isolation, leaf, clock)
    so_far = folder.so_far
    ended = Ended(
        exit_code=outcome.exit_code,
        signal=outcome.signal,
        reason=outcome.reason,
        started_at=so_far.started_at(started_at),
        ended_at=clock(),
        tail=tail,
        restarts=so_far.restarts,
        told=outcome.told,
        lost=outcome.lost,
    )
    leave(folder, ended)
    os.close(lock)
    if order.task is not None:
        wake.knock(order.task.wake)
    return ended


def _run(
    order: Order, wanted: Environment | None, isolation: Isolation, leaf: Leaf, clock: Callable[[], float]
) -> tuple[Outcome, str]:
    """What became of the task, and the end of the log of one that failed."""
    if order.task is None:
        return not_started(order.problem), ""
    try:
        log = TaskLog(order.task)
    except OSError as error:
        return not_started(f"no log: {describe(error)}", error), ""
    try:
        if order.problem:
            outcome = not_started(order.problem)
        else:
            outcome = _Supervision(order, order.task, wanted, isolation, leaf, log, clock).run()
    except OSError as error:
        processes.end_all_children()
        outcome = not_started(describe(error), error)
    if outcome.reason and outcome.reason != _REVOKED:
        log.note(outcome.reason)
    if order.task.keep and not outcome.succeeded:
        try:
            workdir.keep(order.task, order.folder, results(order.task))
        except OSError as error:
            log.note(f"its working directory could not be kept: {describe(error)}")
    tail = "" if outcome.succeeded else log.tail()
    log.close()
    return outcome, tail


class _Supervision:
    """From the start of the command to the end of everything below this process."""

    def __init__(
        self,
        order: Order,
        task: TaskFile,
        wanted: Environment | None,
        isolation: Isolation,
        leaf: Leaf,
        log: TaskLog,
        clock: Callable[[], float],
    ) -> None:
        self._task = task
        self._clock = clock
        self._folder = order.folder
        self._environment = order.environment
        self._isolation = isolation
        self._machine, self._plan = order.machine, order.plan
        self._own_account = task.uid if isolation.mount else None
        self._leaf = leaf
        self._log = log
        self._limits = Limits(task.cpus, task.cpu_limit, task.memory_bytes, task.pids_limit)
        self._command = task.command
        self._wanted = wanted
        self._packages: str | None = None
        self._began: float | None = None  # when its program began, if its environment had to be built first
        self._filled = False  # a run before has filled the working directory
        self._restarts = 0
        self._stopping = False
        self._gave_up = False  # it was killed because its grace time was over
        self._memory: MemoryWatch | None = None  # of a task whose memory no group limits
        self._lease = lease.watch(os.path.dirname(self._folder.path))

    def run(self) -> Outcome:
        began = self._clock()
        outcome = self._run()._replace(told=self._stopping)
        if self._own_account is not None:
            handover.share(self._task, began)
        return outcome

    def _run(self) -> Outcome:
        if self._folder.stopped:
            return Outcome(reason="stopped before it started")
        for path in (self._task.output, self._task.log_folder):
            below.make_folder(results(self._task), path)
        if self._own_account is not None:
            handover.give(self._task, self._log.fd, self._own_account)
        problem = self._prepare()
        if problem is not None:
            return problem
        if self._stopped_at_the_gate():
            return Outcome(reason="stopped before it started")
        outcome = self._run_once()
        while not outcome.final and self._restarts < self._task.restarts and not self._stopped_meanwhile():
            self._restarts += 1
            self._tell(SoFar(restarts=self._restarts, began=self._began))
            self._log.restart(f"--- restart {self._restarts} of {self._task.restarts}: {outcome.words} ---")
            outcome = self._run_once()
        if outcome.final or self._stopping or not self._task.restarts:
            return outcome
        return outcome._replace(reason=f"{outcome.words}, after {self._restarts} of {self._task.restarts} restarts")

    def _tell(self, so_far: SoFar) -> None:
        with suppress(OSError):  # on a full disk it is told late, which is better than no restart
            self._folder.write_so_far(so_far)
        wake.knock(self._task.wake)

    def _prepare(self) -> Outcome | None:
        """Have the environment that the task asks for; what keeps it from that, or None."""
        wanted = self._wanted
        if wanted is None:
            return None
        until = time.monotonic() + self._task.build_seconds
        lock = environments.lock(wanted)  # held, at the end, for as long as this process lives
        while not (environments.try_lock(lock, shared=True) and wanted.ready):
            if environments.try_lock(lock, shared=False) and not wanted.ready:
                problem = self._build(wanted, until)
                if problem is not None:
                    return problem
                continue
            if self._folder.stopped or signals.await_next(time.monotonic() + _BUILD_LOOK_SECONDS) == signal.SIGTERM:
                self._stopping = True
                return Outcome(reason="stopped before it started")
            if time.monotonic() > until + self._task.grace_seconds:  # the one that builds fails first, with its lines
                return not_started(f"another task builds its environment: {self._too_late}")
            os.close(lock)
            lock = environments.lock(wanted)  # whoever removes an environment removes its lock
        wanted.use()
        self._begin()
        if not wanted.is_machines:
            self._packages = wanted.folder
            path = f"{wanted.bin}:{self._environment['PATH']}"
            self._environment = {**self._environment, "PATH": path, "VIRTUAL_ENV": f"{wanted.folder}/env"}
        return None

    def _begin(self) -> None:
        """Tell that the environment is there: only now does the task run."""
        if not self._folder.so_far.building:
            return
        self._began = self._clock()
        try:
            self._folder.write_so_far(SoFar(began=self._began))
        except OSError:  # on a full disk what it takes is counted as run, which is better than never to run
            self._folder.forget_so_far()
        wake.knock(self._task.wake)

    @property
    def _too_late(self) -> str:
        limit = self._task.build_seconds
        words = f"{limit:g} s" if limit < 120 else f"{limit / 60:g} min"
        return f"it is not done within {words} (jobs.build_limit)"

    def _build(self, wanted: Environment, until: float) -> Outcome | None:
        what = wanted.what
        self._log.note(f"building its environment from {wanted.words}")
        wanted.clear()
        if self._own_account is not None:
            os.chown(wanted.folder, self._own_account, self._own_account, follow_symlinks=False)
        began = time.monotonic()
        self._packages, self._command = wanted.folder, wanted.script()
        with wanted.cached(self._own_account):
            outcome = self._run_once(until)
        self._packages, self._command = None, self._task.command
        if outcome.succeeded:
            wanted.complete()
            built = f"its environment was built in {time.monotonic() - began:.0f} s"
            self._log.note(f"no need: this machine's Python has all of {what}" if wanted.is_machines else built)
            return None
        if self._stopping:
            return outcome
        at = self._too_late if time.monotonic() > until else environments.culprit(self._log.tail())
        reason = f"its environment could not be built from {what}: {at or outcome.words}"
        return outcome._replace(reason=reason, final=True)

    def _stopped_at_the_gate(self) -> bool:
        """Whether it is stopped while it waits for the pservers of its job."""
        began = time.monotonic()
        said = False
        while self._task.gate_seconds and (awaited := gate.awaited(self._task, self._folder)):
            waited, limit = time.monotonic() - began, self._task.gate_seconds
            if waited > limit:
                late = f"does not listen after {limit:g} s"
                self._log.note(f"{', '.join(awaited)} {late}; this trainer starts all the same")
                return False
            if waited > _SILENT_WAIT_SECONDS and not said:
                self._log.note(f"waiting for {', '.join(awaited)}, {limit:g} s at most")
                said = True
            if self._folder.stopped or signals.await_next(time.monotonic() + _GATE_LOOK_SECONDS) == signal.SIGTERM:
                self._stopping = True
                return True
        # Looked for last: the pservers may be gone because the whole job is stopped.
        return self._folder.stopped

    def _stopped_meanwhile(self) -> bool:
        """Whether it is stopped before its next start, for which it waits the longer the more there were."""
        pause = min(2.0 ** (self._restarts - 1), _LONGEST_PAUSE_SECONDS) if self._restarts else 0.0
        deadline = time.monotonic() + pause
        while not self._folder.stopped:
            found = signals.await_next(deadline)
            if found is None:
                return False
            if found == signal.SIGTERM:
                break
        self._stopping = True
        return True

    def _run_once(self, until: float | None = None) -> Outcome:
        """Run the command; with `until`, when it is over at the latest, it is one that builds the environment."""
        try:
            self._leaf.create(self._limits)
            command, reader = self._start(building=until is not None)
            status = self._watch(command, until)
            out_of_memory = self._leaf.ran_out_of_memory() or (self._memory is not None and self._memory.ran_out)
        finally:
            cgroups.end(self._leaf.folders)
        problem = smallfiles.read_all(reader).decode("utf-8", "replace")
        return not_started(problem) if problem else self._outcome(status, out_of_memory)

    def _start(self, *, building: bool) -> tuple[int, int]:
        reader, writer = os.pipe()
        inside = Inside(
            task=self._task,
            environment=self._environment,
            folder=self._folder,
            isolation=self._isolation,
            machine=self._machine,
            plan=self._plan,
            leaf=self._leaf,
            limits=self._limits,
            log=self._log.fd,
            words=writer,
            again=self._filled,
            command=self._command,
            packages=self._packages,
            building=building,
        )
        self._filled = True
        command = os.fork()
        if command == 0:
            # The lock stays held until the command starts: from then on its environment tells whose it is, so that it
            # is found should we be killed.
            inside.run()
        os.close(writer)
        return command, reader

    def _watch(self, command: int, until: float | None) -> int:
        """Wait for the end of the command, and of all below it once they are told to stop, so that a trainer may save
        its model although the shell that started it is gone; the command's wait status."""
        status: int | None = None
        deadline: float | None = None
        watched = self._task.quiet_seconds and until is None
        activity = Activity(self._task, self._log.fd, self._clock) if watched else None
        self._memory = None if "memory" in self._leaf.limiting else MemoryWatch(self._task.memory_bytes)
        while status is None or (deadline is not None and processes.has_children()):
            found = self._next_signal(until if deadline is None else deadline, activity if deadline is None else None)
            if found == signal.SIGTERM and deadline is None:
                self._stopping = True
                deadline = time.monotonic() + self._task.grace_seconds
                processes.send_below(signal.SIGTERM)
            elif found is None:
                self._gave_up = True
                self._stopping = self._stopping or self._revoked
                self._kill()
                deadline = time.monotonic() + 1.0  # again, should one have slipped through
            for pid, ended in processes.reap():
                status = ended if pid == command else status
        if processes.has_children():
            self._kill()
            processes.end_all_children()
        return status

    def _next_signal(self, deadline: float | None, activity: Activity | None) -> int | None:
        """The next signal, or None at the deadline, above the memory limit or without the lease; the task is looked at
        meanwhile."""
        ending = [watch for watch in (self._memory, self._lease) if watch is not None]
        while True:
            now = time.monotonic()
            if any(now >= watch.next_look and watch.look() for watch in ending):
                return None
            if activity is not None and now >= activity.next_look and activity.look():
                self._tell(SoFar(self._restarts, activity.quiet_since, began=self._began))
            times = [watch.next_look for watch in ([*ending, activity] if activity else ending)]
            found = signals.await_next(min(times if deadline is None else [*times, deadline], default=None))
            if found is not None or (deadline is not None and time.monotonic() >= deadline):
                return found

    @property
    def _revoked(self) -> bool:
        return self._lease is not None and self._lease.lost

    def _kill(self) -> None:
        cgroups.kill(self._leaf.folders)
        processes.send_below(signal.SIGKILL)

    def _outcome(self, status: int, out_of_memory: bool) -> Outcome:
        outcome = decode(status)
        if outcome.succeeded:
            return outcome
        reason = self._reason(outcome, out_of_memory)
        return outcome._replace(reason=reason, final=self._stopping or reason.startswith(_OUT_OF_MEMORY))

    def _reason(self, outcome: Outcome, out_of_memory: bool) -> str:
        megabytes = self._task.memory_bytes / 2**20
        limit = f"its limit of {megabytes:.1f} MiB" if megabytes > 0 else "its cluster allows"
        if out_of_memory:
            return f"{_OUT_OF_MEMORY}: used more than {limit}"
        if self._memory is not None and megabytes > 0 and self._log.ends_with_any(_OUT_OF_MEMORY_WORDS):
            # An rlimit kills nobody: it refuses the memory, and only the program itself can tell.
            return f"{_OUT_OF_MEMORY}: a process asked for more than {limit}"
        if self._revoked:
            return _REVOKED
        if self._gave_up:
            return f"killed: did not end within {self._task.grace_seconds:g} s of being asked to"
        if outcome.exit_code == 127:
            return "exit code 127: command not found"
        if outcome.exit_code == 126:
            return "exit code 126: command cannot be executed"
        return ""
