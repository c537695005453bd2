"""The server's end of the forking helper (runtime/forker.py): starts it, asks it, starts it anew when it has died."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import paddlecloud.runtime
from paddlecloud.model.errors import UnreachableError

# The helper imports the runtime alone: a package of ours whose __init__ would import more is put in its place.
_MAIN = """\
import sys, types
package = types.ModuleType("paddlecloud")
package.__path__ = [sys.argv[1]]
sys.modules["paddlecloud"] = package
from paddlecloud.runtime.forker import main
main(int(sys.argv[2]), *sys.argv[3:])
"""
_HELLO_SECONDS = 60
_END_SECONDS = 10
_PATIENCE_SECONDS = 60.0
_AGAIN_SECONDS = 10.0  # a supervisor that has not begun by then was killed
_LOG_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class _Helper:
    process: subprocess.Popen[bytes]
    channel: socket.socket
    isolation: str
    mounts: bool
    landlock: int
    memory: bool
    asked: dict[str, float] = field(default_factory=dict)  # folder -> when, the oldest first
    unanswered: deque[float] = field(default_factory=deque)


class Forker:
    def __init__(self, root: Path, group: str, *, namespaces: bool, cgroups: bool) -> None:
        self._root = root
        self._asked = [group, "namespaces" if namespaces else "", "cgroups" if cgroups else ""]
        self._lock = threading.Lock()
        self._helper: _Helper | None = None

    @property
    def isolation(self) -> str:
        """How tasks are kept apart and limited here, in words."""
        with self._lock:
            return self._living().isolation

    @property
    def mounts(self) -> bool:
        """Whether tasks have mounts of their own."""
        with self._lock:
            return self._living().mounts

    @property
    def landlock(self) -> int:
        """The version of Landlock's interface here; 0: without it."""
        with self._lock:
            return self._living().landlock

    @property
    def limits_memory(self) -> bool:
        """Whether control groups limit the memory of a task as a whole."""
        with self._lock:
            return self._living().memory

    @property
    def pid(self) -> int:
        with self._lock:
            return self._living().process.pid

    def ask(self, folders: Sequence[str]) -> None:
        """Have a supervisor made for each task folder, without waiting for it: what the helper could not do is raised
        by the next call. To ask again is harmless, and needed where the helper died: a task is begun once."""
        with self._lock:
            self._hear()
            for folder in folders:
                try:
                    self._request(folder)
                except OSError:
                    self._end()
                    self._request(folder)

    def close(self) -> None:
        with self._lock:
            self._end()

    def _hear(self) -> None:
        """Take what the helper has answered by now; let go of one that is dead or stuck."""
        helper = self._helper
        if helper is None:
            return
        try:
            while select.select([helper.channel], [], [], 0)[0]:
                self._take(_receive(helper.channel), helper)
        except OSError:
            self._end()
        if helper.unanswered and time.monotonic() - helper.unanswered[0] > _PATIENCE_SECONDS:
            self._end()

    def _take(self, answer: dict[str, Any], helper: _Helper) -> None:
        for _ in range(answer["requests"]):
            helper.unanswered.popleft()
        if answer["error"]:
            helper.asked.clear()
            raise UnreachableError(f"{answer['error']}; end some of this machine's processes or raise their limit")

    def _request(self, folder: str) -> None:
        helper, now = self._living(), time.monotonic()
        while helper.asked and now - next(iter(helper.asked.values())) > _AGAIN_SECONDS:
            del helper.asked[next(iter(helper.asked))]
        if folder not in helper.asked:
            helper.channel.send(os.fsencode(folder))
            helper.asked[folder] = now
            helper.unanswered.append(now)

    def _living(self) -> _Helper:
        if self._helper is None:
            self._helper = self._start()
        return self._helper

    def _start(self) -> _Helper:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        package = Path(paddlecloud.runtime.__file__).parent.parent
        log = self._root / "helper.log"
        with theirs, log.open("ab" if log.exists() and log.stat().st_size < _LOG_BYTES else "wb") as errors:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _MAIN, package, str(theirs.fileno()), self._root, *self._asked],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                cwd="/",
                env={},
                start_new_session=True,
            )
        ours.settimeout(_HELLO_SECONDS)
        try:
            hello = _receive(ours)
        except OSError as error:
            ours.close()
            process.kill()
            process.wait()
            raise UnreachableError(f"the forking helper did not start ({error}); {log} says why") from None
        words, landlock = str(hello["isolation"]), int(hello["landlock"])
        return _Helper(process, ours, words, bool(hello["mount"]), landlock, bool(hello["memory"]))

    def _end(self) -> None:
        if self._helper is not None:
            self._helper.channel.close()
            try:
                self._helper.process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                self._helper.process.kill()
                self._helper.process.wait()
            self._helper = None


def _receive(channel: socket.socket) -> dict[str, Any]:
    answer = channel.recv(8192)
    if not answer:
        raise ConnectionResetError("the forking helper is gone")
    words: dict[str, Any] = json.loads(answer)
    return words
