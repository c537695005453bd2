"""One task on a node that shares no disk with the server: fetches what it needs into a folder of the node's own, runs
it there, and carries its log, files and end away.
"""

from __future__ import annotations

import fcntl
import http.client
import json
import os
import signal
import sys
import tarfile
import time
from contextlib import suppress
from typing import Any, Mapping

from paddlecloud.runtime import allocation, node, removal, taskfile, workdir
from paddlecloud.runtime.folder import Ended, TaskFolder
from paddlecloud.runtime.ship import AwayError, FileCarrier, LogCarrier, RefusedError, Server
from paddlecloud.runtime.taskfile import TaskFile, TaskFileError
from paddlecloud.runtime.tasklog import results

ROOT = "/paddlecloud"  # what stands, in the task file, for the folder of the node's own
TREE = f"{ROOT}/tree"
RESULTS = f"{ROOT}/results"
INPUTS = f"{ROOT}/inputs"
ENVIRONMENTS = f"{ROOT}/../environments"
_FETCH_SECONDS = 600.0
_LAST_WORD_SECONDS = 3600.0
_LOOK_SECONDS = 0.5
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILES_SECONDS = 15.0
_LEFT_SECONDS = 86400.0  # after so long a folder without an owner is removed
_KEPT = "environments"
_TRUSTED: dict[str, Any] = {"filter": "fully_trusted"} if hasattr(tarfile, "fully_trusted_filter") else {}
_REASON_LETTERS = 2000
_NOT_STARTED = 126


def main(environ: Mapping[str, str]) -> int:
    """Run the task that the cluster has started here; the exit code for the cluster."""
    signal.signal(signal.SIGTERM, _stop_here)
    scratch = _Scratch(environ["PADDLECLOUD_RUN"])
    try:
        _sweep(scratch.base)
        return _claim_and_run(Server(environ), scratch, environ)
    finally:
        scratch.remove()


def _claim_and_run(server: Server, scratch: _Scratch, environ: Mapping[str, str]) -> int:
    number = allocation.number(environ)
    run = f"{environ.get('SLURM_JOB_ID', '')}.{environ.get('SLURM_RESTART_COUNT', '0')}"
    try:
        claim = server.insist(
            time.monotonic() + _FETCH_SECONDS,
            lambda: server.ask_json("POST", "claims", body=json.dumps({"number": number, "by": run}).encode()),
        )
    except (AwayError, RefusedError) as error:
        print(f"paddlecloud: the server does not say what to run: {error}", file=sys.stderr)
        return _NOT_STARTED
    try:
        task, folder = _prepare(server, scratch, claim)
        carrier = _Carrier(server, task, folder)
    except (AwayError, RefusedError, TaskFileError, OSError) as error:
        reason = f"{os.uname().nodename} could not fetch what it is to run: {error}"
        _tell_end(server, claim["task"], Ended(reason=reason[:_REASON_LETTERS], ended_at=time.time(), lost=True))
        return _NOT_STARTED
    return _run(carrier, folder, environ)


def _prepare(server: Server, scratch: _Scratch, claim: Mapping[str, Any]) -> tuple[TaskFile, TaskFolder]:
    """All that the task needs, here."""
    order = taskfile.decode(json.dumps(claim["order"]).encode())
    task = _with_inputs(server, scratch.settle(order))
    folder = TaskFolder(os.path.join(scratch.path, task.handle, task.task))
    os.makedirs(os.path.dirname(folder.path))
    os.makedirs(results(task), exist_ok=True)
    folder.create(taskfile.encode(task))
    if claim["brings_tree"]:
        _Tar(server, os.path.join(scratch.path, "tree"), "tree").fetch()
    return task, folder


def _run(carrier: _Carrier, folder: TaskFolder, environ: Mapping[str, str]) -> int:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    runner = os.fork()
    if runner == 0:
        code = 1
        try:
            code = node.run(folder, environ)
        finally:
            os._exit(code)
    _pass_on_stops(runner)
    status = carrier.carry_until_the_end_of(runner)
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else _NOT_STARTED


def _with_inputs(server: Server, task: TaskFile) -> TaskFile:
    """The task with its share of each input here. What cannot be had is told when it starts, as on any machine."""
    here = []
    for number, given in enumerate(task.inputs):
        try:
            _Tar(server, given.folder, f"tasks/{task.task}/inputs/{number}").fetch()
        except RefusedError:
            here.append(given)
            continue
        # It was dealt there: a folder without files is a share, too.
        came = os.path.isdir(os.path.join(given.folder, given.path))
        here.append(given._replace(deal=False, optional=given.optional or came))
    return task._replace(inputs=here)


class _Scratch:
    """The folder of one run on this node, which is its own for as long as its lock is held: cleaners of /tmp know it,
    too."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.base = os.path.dirname(path)
        self._lock = os.open(path, _FOLDER)
        with suppress(OSError):  # on a disk without locks nobody can sweep either
            fcntl.flock(self._lock, fcntl.LOCK_EX)

    def settle(self, task: TaskFile) -> TaskFile:
        """The task file with the folders of this node; of others' runs here the task sees nothing."""
        moved: dict[str, Any] = {
            name: self._here(value)
            for name, value in task._asdict().items()
            if isinstance(value, str) and value.startswith(ROOT + "/") and name != "command"
        }
        inputs = [given._replace(folder=self._here(given.folder)) for given in task.inputs]
        return task._replace(inputs=inputs, hidden=[self.base], **moved)

    def remove(self) -> None:
        with suppress(OSError):
            removal.remove(self.base, os.path.basename(self.path))
        os.close(self._lock)

    def _here(self, path: str) -> str:
        return os.path.normpath(self.path + path[len(ROOT) :])


class _Tar:
    def __init__(self, server: Server, target: str, path: str) -> None:
        self._server = server
        self._target = target
        self._path = path

    def fetch(self) -> None:
        """The job's files, all of them or none."""
        self._server.insist(time.monotonic() + _FETCH_SECONDS, self._fetch_once)

    def _fetch_once(self) -> None:
        self._server.take("GET", self._path, self._unpack)

    def _unpack(self, answer: http.client.HTTPResponse) -> None:
        removal.remove(*os.path.split(self._target))
        os.makedirs(self._target, 0o755)
        try:
            with tarfile.open(fileobj=answer, mode="r|") as packed:
                packed.extractall(self._target, **_TRUSTED)
        except tarfile.TarError as error:
            raise ConnectionError(f"the files of the job came in part: {error}") from None


class _Carrier:
    """All that is carried from this task to the server."""

    def __init__(self, server: Server, task: TaskFile, folder: TaskFolder) -> None:
        self._server = server
        self._task = task
        self._folder = folder
        self._log = LogCarrier(server, task.task, results(task), task.log_file)
        kept = workdir.kept(task)
        self._files = FileCarrier(server, task.task, results(task), [task.output, task.log_folder, kept])
        self._told: dict[str, object] | None = None
        self._files_at = time.monotonic() + _FILES_SECONDS

    def carry_until_the_end_of(self, runner: int) -> int:
        """The wait status of the process that runs the task."""
        # It is waited for only after stops are ignored, so that none is passed on to who has its number then.
        while os.waitid(os.P_PID, runner, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            self._carry_some()
            time.sleep(_LOOK_SECONDS)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _, status = os.waitpid(runner, 0)
        try:
            self._server.insist(time.monotonic() + _LAST_WORD_SECONDS, self._carry_all)
        except AwayError:
            with suppress(AwayError, RefusedError):
                self._tell(self._folder.ended)
        return status

    def _carry_some(self) -> None:
        with suppress(AwayError):  # the next look sends it
            with suppress(RefusedError):
                self._tell(None)
            with suppress(RefusedError):
                self._log.carry()
            if time.monotonic() >= self._files_at:
                self._files.carry(settled=False, now=time.time())
                self._files_at = time.monotonic() + _FILES_SECONDS

    def _carry_all(self) -> None:
        """What the server does not take keeps nothing else from it, least of all the end."""
        with suppress(RefusedError):
            self._log.carry()
        self._files.carry(settled=True, now=time.time())
        while self._files.refused:
            self._log.note(self._files.refused.pop(0))
        with suppress(RefusedError):
            self._log.carry()
        with suppress(RefusedError):
            self._tell(self._folder.ended)

    def _tell(self, ended: Ended | None) -> None:
        begun, so_far = self._folder.begun, self._folder.so_far
        if begun is None and ended is None:
            return
        started_at = begun.started_at if begun is not None else (ended and ended.ended_at) or time.time()
        news: dict[str, object] = {
            "started_at": started_at,
            "restarts": so_far.restarts,
            "quiet_since": so_far.quiet_since,
            "building": so_far.building,
            "began": so_far.began,
        }
        if ended is not None:
            news["restarts"] = ended.restarts
            news["end"] = _words_of(ended)
        if news != self._told:
            self._server.ask("PUT", f"tasks/{self._task.task}/news", body=json.dumps(news).encode())
            self._told = news


def _tell_end(server: Server, task: str, ended: Ended) -> None:
    """The end of a task that has not begun."""
    news = {"started_at": ended.ended_at, "restarts": 0, "quiet_since": None, "end": _words_of(ended)}
    with suppress(AwayError, RefusedError):
        server.insist(
            time.monotonic() + _LAST_WORD_SECONDS,
            lambda: server.ask("PUT", f"tasks/{task}/news", body=json.dumps(news).encode()),
        )


def _words_of(ended: Ended) -> dict[str, object]:
    told = ("exit_code", "signal", "reason", "ended_at", "tail", "lost", "told")
    return {name: getattr(ended, name) for name in told}


def _stop_here(*_: object) -> None:
    """Leave before the task has begun, with nothing left here."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(_NOT_STARTED)


def _pass_on_stops(runner: int) -> None:
    signal.signal(signal.SIGTERM, lambda *_: os.kill(runner, signal.SIGTERM))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def _sweep(base: str) -> None:
    """Remove the folders of runs that were killed here, long ago."""
    for name in os.listdir(base):
        path = os.path.join(base, name)
        try:
            if name == _KEPT or time.time() - os.lstat(path).st_mtime < _LEFT_SECONDS:
                continue
            lock = os.open(path, _FOLDER)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            removal.remove(base, name)
        except OSError:
            continue
        finally:
            os.close(lock)
