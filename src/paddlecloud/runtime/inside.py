"""Inside a task: from a fork of the supervisor to the command, with its own mounts, limits and environment."""

from __future__ import annotations

import os
import shlex
import signal
from contextlib import suppress
from typing import NamedTuple, NoReturn

from paddlecloud.runtime import cgroups, inputs, namespaces, root, seccomp, smallfiles, workdir
from paddlecloud.runtime.cgroups import Leaf, Limits
from paddlecloud.runtime.folder import TaskFolder
from paddlecloud.runtime.namespaces import Isolation
from paddlecloud.runtime.root import Machine
from paddlecloud.runtime.taskfile import TaskFile

# What is ignored stays so after exec: by Python SIGPIPE, under nohup SIGHUP, and a command expects neither.
_IGNORED = tuple(number for number in signal.valid_signals() if signal.getsignal(number) == signal.SIG_IGN)


# As OpenPAI's two generations ran what they were given: the first with no option of the shell set.
_SCRIPTS = {
    "bash": "eval {quoted} || exit $?\n",
    "bash-strict": "set -o errexit\nset -o nounset\nset -o pipefail\n{command}\n",
}


class Inside(NamedTuple):
    """All that is needed there, made ready outside."""

    task: TaskFile
    environment: dict[str, str]
    folder: TaskFolder
    isolation: Isolation
    machine: Machine | None
    leaf: Leaf
    limits: Limits
    log: int
    words: int  # a pipe to the supervisor for what keeps the command from starting; closed by its start
    again: bool  # it runs in the working directory that it has left
    command: str
    packages: str | None  # the folder of the environment that it runs in
    building: bool  # it makes this environment, and so may write to it

    def run(self) -> NoReturn:
        """Become the command."""
        try:
            os.setsid()
            os.umask(0o022)
            if self.isolation.mount:
                self._enter_mounts()
            else:
                inputs.link(self.folder, self._fill())
                self.leaf.join()
            self._limit()
            _connect(self.log)
            os.chdir(self.task.cwd or self.folder.work)
            _default_signals()
            os.execve(*self._program(), self.environment)
        except BaseException as error:  # nothing may unwind into the supervisor's code in this process
            os.write(self.words, describe(error).encode("utf-8", "replace"))
        finally:
            os._exit(126)

    def _program(self) -> "tuple[str, list[str]]":
        """A command that bash runs may hold a secret: it is read from a file, since anybody sees what a process was
        started with."""
        if self.building or self.task.shell not in _SCRIPTS:
            return "/bin/sh", ["sh", "-c", self.command]
        quoted = shlex.quote(self.command)
        text = _SCRIPTS[self.task.shell].format(command=self.command, quoted=quoted)
        smallfiles.write_new(self.folder.script, text.encode("utf-8", "surrogateescape"), 0o600)
        return "/bin/bash", ["bash", self.folder.script]

    def _enter_mounts(self) -> None:
        namespaces.enter_mounts()
        shown = root.open_shown(self.task) if self.machine is not None else []
        inputs.show(self.folder, self._fill())
        workdir.guard(self.task, self.folder, self.isolation, self.packages, building=self.building)
        if self.isolation.pid:
            namespaces.mount_proc(guarded=not self.isolation.user)
        self.leaf.join()  # before the groups are read-only
        if self.machine is not None:
            own = [self.folder.own, os.path.dirname(self.task.output)]
            own += [self.packages] if self.packages is not None and self.building else []
            root.enter(self.machine, self.folder.mount, own, root.files(self.task), shown)
        if self.machine is None or os.geteuid() != 0:  # else they are read-only already
            self._lock_groups()

    def _fill(self) -> list[inputs.Opened]:
        """Fill the working directory, if it is not as an earlier run has left it; the inputs, to be shown."""
        opened = inputs.open_all(self.task, self.folder)
        workdir.fill(self.task, self.folder, self.isolation, again=self.again)
        if not self.again:
            inputs.place(self.task, self.folder, opened)
        return opened

    def _limit(self) -> None:
        cgroups.limit_process(self.leaf, self.limits)
        if self.isolation.user and os.geteuid() != 0:
            namespaces.keep_write_access()
        elif self.isolation.mount:
            namespaces.keep_hidden()
        if self.isolation.filter:
            seccomp.restrict()

    def _lock_groups(self) -> None:
        """Keep root from changing groups: those of others, and its own limits."""
        for mounted in self.leaf.mounts:
            with suppress(OSError):  # of another owner, and so out of reach
                namespaces.make_read_only(mounted)


def describe(error: BaseException) -> str:
    """An error of ours or of the system as the end of a sentence."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror} ({error.filename})" if error.filename else error.strerror
    return str(error) or type(error).__name__


def _connect(log: int) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)


def _default_signals() -> None:
    for number in _IGNORED:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
