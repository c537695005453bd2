"""One task on a node that shares no disk with the server: fetches what it needs into a folder of the node's own, runs
it there, and carries its log, files and end away.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import sys
import tarfile
import time
from typing import Any, Mapping

from paddlecloud.runtime import allocation, node, taskfile
from paddlecloud.runtime.folder import Ended, TaskFolder
from paddlecloud.runtime.ship import AwayError, FileCarrier, LogCarrier, RefusedError, Server
from paddlecloud.runtime.taskfile import TaskFile

ROOT = "/paddlecloud"  # what stands, in the task file, for the folder of the node's own
TREE = f"{ROOT}/tree"
RESULTS = f"{ROOT}/results"
INPUTS = f"{ROOT}/inputs"
ENVIRONMENTS = f"{ROOT}/../environments"
_FETCH_SECONDS = 600.0
_LAST_WORD_SECONDS = 3600.0
_LOOK_SECONDS = 0.5
_FILES_SECONDS = 15.0
_LEFT_SECONDS = 86400.0  # after so long a folder without an owner is removed
_KEPT = ("runtime-", "environments")
_NOT_STARTED = 126


def main(environ: Mapping[str, str]) -> int:
    """Run the task that the cluster has started here; the exit code for the cluster."""
    server = Server(environ)
    base = environ["PADDLECLOUD_SCRATCH"]
    _sweep(base)
    number = allocation.number(environ)
    run = f"{environ.get('SLURM_JOB_ID', '')}.{environ.get('SLURM_RESTART_COUNT', '0')}"
    try:
        claim = server.insist(
            time.monotonic() + _FETCH_SECONDS,
            lambda: json.loads(server.ask("POST", "claims", body=json.dumps({"number": number, "by": run}).encode())),
        )
    except (AwayError, RefusedError) as error:
        print(f"paddlecloud: the server does not say what to run: {error}", file=sys.stderr)
        return _NOT_STARTED
    scratch = _Scratch(os.path.join(base, f"{environ['PADDLECLOUD_JOB']}-{run}-{number}"))
    try:
        return _run(server, scratch, claim, environ)
    finally:
        scratch.remove()


def _run(server: Server, scratch: _Scratch, claim: Mapping[str, object], environ: Mapping[str, str]) -> int:
    order = taskfile.decode(json.dumps(claim["order"]).encode())
    task = _with_inputs(server, scratch.settle(order))
    folder = TaskFolder(os.path.join(scratch.path, task.handle, task.task))
    os.makedirs(os.path.dirname(folder.path))
    os.makedirs(os.path.join(scratch.path, "results"), exist_ok=True)
    folder.create(taskfile.encode(task))
    if claim["brings_tree"]:
        _Tar(server, os.path.join(scratch.path, "tree"), "tree").fetch()
    carrier = _Carrier(server, task, folder)
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
    """The folder of one run on this node, which is its own for as long as its lock is held."""

    def __init__(self, path: str) -> None:
        self.path = path
        os.makedirs(path, 0o700)
        self._lock = os.open(f"{path}/lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def settle(self, task: TaskFile) -> TaskFile:
        """The task file with the folders of this node."""
        moved: dict[str, Any] = {
            name: self._here(value)
            for name, value in task._asdict().items()
            if isinstance(value, str) and value.startswith(ROOT + "/") and name != "command"
        }
        inputs = [given._replace(folder=self._here(given.folder)) for given in task.inputs]
        return task._replace(inputs=inputs, **moved)

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
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
        shutil.rmtree(self._target, ignore_errors=True)
        os.makedirs(self._target, 0o755)
        answer = self._server.open("GET", self._path)
        try:
            with tarfile.open(fileobj=answer, mode="r|") as packed:
                packed.extractall(self._target)
        except (tarfile.TarError, OSError) as error:
            raise AwayError(f"the files of the job came in part: {error}") from None


class _Carrier:
    """All that is carried from this task to the server."""

    def __init__(self, server: Server, task: TaskFile, folder: TaskFolder) -> None:
        self._server = server
        self._task = task
        self._folder = folder
        self._log = LogCarrier(server, task.task, task.log_file)
        results = os.path.dirname(task.output)
        self._files = FileCarrier(server, task.task, results, [task.output, task.log_folder])
        self._told: dict[str, object] | None = None
        self._files_at = time.monotonic() + _FILES_SECONDS

    def carry_until_the_end_of(self, runner: int) -> int:
        """The wait status of the process that runs the task."""
        while True:
            ended, status = os.waitpid(runner, os.WNOHANG)
            if ended:
                break
            self._carry_some()
            time.sleep(_LOOK_SECONDS)
        self._server.insist(time.monotonic() + _LAST_WORD_SECONDS, self._carry_all)
        return status

    def _carry_some(self) -> None:
        try:
            self._tell(None)
            self._log.carry()
            if time.monotonic() >= self._files_at:
                self._files.carry(settled=False, now=time.time())
                self._files_at = time.monotonic() + _FILES_SECONDS
        except (AwayError, RefusedError):
            return  # the next look sends it

    def _carry_all(self) -> None:
        try:
            self._log.carry()
            self._files.carry(settled=True, now=time.time())
            self._tell(self._folder.ended)
        except RefusedError as error:
            print(f"paddlecloud: the server does not take what {self._task.task} leaves: {error}", file=sys.stderr)

    def _tell(self, ended: Ended | None) -> None:
        begun, so_far = self._folder.begun, self._folder.so_far
        if begun is None and ended is None:
            return
        started_at = begun.started_at if begun is not None else (ended and ended.ended_at) or time.time()
        news: dict[str, object] = {
            "started_at": started_at,
            "restarts": so_far.restarts,
            "quiet_since": so_far.quiet_since,
        }
        if ended is not None:
            news["restarts"] = ended.restarts
            kept = ("exit_code", "signal", "reason", "ended_at", "tail", "lost", "told")
            news["end"] = {name: getattr(ended, name) for name in kept}
        if news != self._told:
            self._server.ask("PUT", f"tasks/{self._task.task}/news", body=json.dumps(news).encode())
            self._told = news


def _pass_on_stops(runner: int) -> None:
    signal.signal(signal.SIGTERM, lambda *_: os.kill(runner, signal.SIGTERM))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def _sweep(base: str) -> None:
    """Remove the folders of runs that were killed here, long ago."""
    for name in os.listdir(base):
        path = os.path.join(base, name)
        try:
            if name.startswith(_KEPT) or time.time() - os.stat(path).st_mtime < _LEFT_SECONDS:
                continue
            lock = os.open(f"{path}/lock", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
        except OSError:
            continue
        finally:
            os.close(lock)
