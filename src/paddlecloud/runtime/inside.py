"""Inside a task: the process that is the parent of all of the task's, and the start of the command.

With a PID namespace this process is its init: at its end the kernel kills all that is left. It stays until the command
has ended; once told that the task is being stopped, until all have, so that a trainer may save its model although the
shell that started it is gone.
"""

from __future__ import annotations

import json
import os
import select
import signal
from dataclasses import dataclass
from typing import NoReturn

from paddlecloud.runtime import cgroups, namespaces, processes, variables, workdir
from paddlecloud.runtime.cgroups import Leaf, Limits
from paddlecloud.runtime.folder import TaskFolder
from paddlecloud.runtime.namespaces import Isolation
from paddlecloud.runtime.taskfile import TaskFile

STOPPING = signal.SIGTERM
_ORPHANED = signal.SIGUSR1
_SIGNALS = frozenset({signal.SIGCHLD, STOPPING, _ORPHANED})


@dataclass(frozen=True)
class Inside:
    """All that the process inside needs, made ready outside."""

    task: TaskFile
    folder: TaskFolder
    isolation: Isolation
    leaf: Leaf
    limits: Limits
    log: int
    words: int  # a pipe to the supervisor: lines of JSON, {"status": …} or {"failed": …}

    def run(self) -> NoReturn:
        """The life of this process; never returns."""
        try:
            self._tie_to_parent()
            self._lay_out()
            command = os.fork()
            if command == 0:
                self._become_command()
            self._watch(command)
        except BaseException as error:  # nothing may unwind into the supervisor's code in this process
            self._say({"failed": _words(error)})
        finally:
            os._exit(0)

    def _tie_to_parent(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        namespaces.signal_on_parent_death(signal.SIGKILL if self.isolation.pid else _ORPHANED)
        if _reader_gone(self.words):
            os._exit(1)
        if not self.isolation.pid:
            namespaces.become_subreaper()

    def _lay_out(self) -> None:
        if self.isolation.mount:
            namespaces.enter_mounts()
        workdir.lay_out(self.task, self.folder, self.isolation)
        if self.isolation.pid:
            namespaces.mount_proc()
        if STOPPING in signal.sigpending():
            raise _StoppedError("stopped before it started")

    def _become_command(self) -> NoReturn:
        try:
            os.setsid()
            self.leaf.join()
            cgroups.limit_process(self.leaf, self.limits)
            if self.isolation.user and os.geteuid() != 0:
                namespaces.keep_write_access()
            elif self.isolation.mount:
                namespaces.keep_hidden()
            _connect(self.log)
            os.chdir(self.folder.work)
            os.umask(0o022)
            _default_signals()
            environment = variables.environment(self.task)
            os.execve("/bin/sh", ["sh", "-c", self.task.command], environment)
        except BaseException as error:  # as above
            self._say({"failed": _words(error)})
        finally:
            os._exit(126)

    def _watch(self, command: int) -> None:
        ended = stopping = False
        while not ended or (stopping and processes.has_children()):
            number = signal.sigwait(_SIGNALS)
            if number == _ORPHANED:
                processes.end_all_children()
                return
            stopping = stopping or number == STOPPING
            for pid, status in processes.reap():
                if pid == command:
                    ended = True
                    self._say({"status": status})

    def _say(self, words: dict[str, object]) -> None:
        try:
            os.write(self.words, json.dumps(words).encode() + b"\n")
        except OSError:
            return


class _StoppedError(Exception):
    pass


def _words(error: BaseException) -> str:
    if isinstance(error, _StoppedError):
        return str(error)
    return f"could not start: {describe(error)}"


def describe(error: BaseException) -> str:
    """An error of ours or of the system as the end of a sentence."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror} ({error.filename})" if error.filename else error.strerror
    return str(error) or type(error).__name__


def _reader_gone(pipe: int) -> bool:
    poller = select.poll()
    poller.register(pipe, 0)
    return any(event & select.POLLERR for _, event in poller.poll(0))


def _connect(log: int) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)


def _default_signals() -> None:
    # What is ignored stays so after exec: by Python SIGPIPE, under nohup SIGHUP, and a command expects neither.
    for number in signal.valid_signals():
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
