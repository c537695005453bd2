"""Inside a task: from a fork of the supervisor to the command, with its own mounts, limits and environment."""

from __future__ import annotations

import os
import shlex
import signal
from typing import NamedTuple, NoReturn

from paddlecloud.runtime import (
    cgroups,
    inputs,
    landlock,
    layer,
    namespaces,
    owners,
    privileges,
    root,
    seccomp,
    smallfiles,
    workdir,
)
from paddlecloud.runtime.cgroups import Leaf, Limits
from paddlecloud.runtime.folder import TaskFolder
from paddlecloud.runtime.machine import Machine
from paddlecloud.runtime.mounts import Builder
from paddlecloud.runtime.namespaces import Isolation
from paddlecloud.runtime.outcome import mark
from paddlecloud.runtime.root import Plan
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
    plan: Plan | None  # of the root folder, if it runs in no environment
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
            os.umask(0o002 if self.task.shared else 0o022)  # what members make in a shared folder is all members'
            if self.isolation.mount:
                self._enter_mounts()
            else:
                inputs.link(self.folder, self._fill())
                self.leaf.join()
            cgroups.limit_process(self.leaf, self.limits)
            privileges.drop(self.task.uid if self.isolation.mount else None, sorted(set(self.task.shared.values())))
            program = self._program()  # as the task's account: an earlier run may have put a link in its place
            _connect(self._reopened_log())
            os.chdir(self.task.cwd or self.folder.work)
            _default_signals()
            self._fence()
            os.execve(*program, self._variables())
        except BaseException as error:  # nothing may unwind into the supervisor's code in this process
            os.write(self.words, (mark(error) + describe(error)).encode("utf-8", "replace"))
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

    def _variables(self) -> "dict[str, str]":
        if self.building:
            return self.environment
        python = self.task.interpreter if self.packages is None else f"{self.packages}/env/bin/python"
        return layer.environment(self.environment, self.task.home, python, self.task.search_path[0])

    def _enter_mounts(self) -> None:
        assert self.machine is not None
        namespaces.enter_mounts()
        inputs.show(self.folder, self._fill())
        self.leaf.join()  # before the groups are read-only
        plan = self.plan
        if plan is None or self.packages is not None:
            plan = root.plan(self.task, self.folder, self.machine, self.packages, building=self.building)
        as_root = (self.machine.account if self.task.uid is None else self.task.uid) == 0
        builder = Builder(
            self.folder.mount,
            self.task.uid,
            pid=self.isolation.pid,
            guarded=as_root,
            mirrored=self.task.whole_machine,
        )
        builder.enter(plan)

    def _fill(self) -> list[inputs.Opened]:
        """Fill the working directory, if it is not as an earlier run has left it; the inputs, to be shown."""
        opened = inputs.open_all(self.task, self.folder)
        workdir.fill(self.task, self.folder, self.isolation, again=self.again)
        if not self.again:
            inputs.place(self.task, self.folder, opened)
            self._give_own(placed=bool(opened))
        return opened

    def _give_own(self, *, placed: bool) -> None:
        """Give the task's folders to the account that it runs as."""
        if self.task.uid is None or not self.isolation.mount:
            return
        if placed or (self.task.tree is not None and not os.path.isdir(self.folder.upper)):
            owners.claim_all(self.folder.work, owners.owned(self.task.uid))
        for path in (self.folder.work, self.folder.home, self.folder.temporary, self.folder.own):
            self._give(path)

    def _give(self, path: str) -> None:
        if self.task.uid is not None and self.isolation.mount:
            os.chown(path, self.task.uid, self.task.uid, follow_symlinks=False)

    def _reopened_log(self) -> int:
        """The log by its path in the task's own root, so that it can be opened once more as /dev/stdout. A task that
        put something else in its place keeps the one that was opened outside."""
        try:
            flags = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            reopened = os.open(self.task.log_file, flags)
        except OSError:
            return self.log
        if not os.path.samestat(os.fstat(reopened), os.fstat(self.log)):
            return self.log
        os.set_blocking(reopened, True)
        return reopened

    def _fence(self) -> None:
        if self.isolation.landlock and self.isolation.mount:
            landlock.restrict(self.isolation.landlock)
        if self.isolation.filter:
            seccomp.restrict()


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
