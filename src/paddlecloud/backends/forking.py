"""The server's end of the forking helper (runtime/forker.py): starts it, asks it, starts it anew when it has died."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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
_LOG_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class _Helper:
    process: subprocess.Popen[bytes]
    channel: socket.socket
    isolation: str
    mounts: bool


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
    def pid(self) -> int:
        with self._lock:
            return self._living().process.pid

    def ask(self, folders: Sequence[Path]) -> None:
        """Have a supervisor started for each task folder."""
        with self._lock:
            for folder in folders:
                try:
                    error = self._request(folder)
                except OSError:
                    self._end()
                    error = self._request(folder)  # by a new helper; a task that has begun is not begun again
                if error:
                    raise UnreachableError(f"{error}; end some of this machine's processes or raise their limit")

    def close(self) -> None:
        with self._lock:
            self._end()

    def _request(self, folder: Path) -> str:
        channel = self._living().channel
        channel.send(json.dumps({"folder": str(folder)}).encode())
        answer = _receive(channel)
        return str(answer.get("error", ""))

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
        return _Helper(process, ours, str(hello["isolation"]), bool(hello["mount"]))

    def _end(self) -> None:
        if self._helper is not None:
            self._helper.channel.close()
            try:
                self._helper.process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                self._helper.process.kill()
                self._helper.process.wait()
            self._helper = None


def _receive(channel: socket.socket) -> dict[str, object]:
    answer = channel.recv(8192)
    if not answer:
        raise ConnectionResetError("the forking helper is gone")
    words: dict[str, object] = json.loads(answer)
    return words
