"""A command on a pseudo-terminal of a given width, as a person has it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable

from tests.flow.lab import COMMAND, Lab

_COLOUR = re.compile(rb"\x1b\[[0-9;]*m")


class Terminal:
    """`text` is what the command has written so far, stdout and stderr as they come, without colours."""

    def __init__(self, lab: Lab, *words: str, columns: int = 80, **env: str) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        self._read = b""
        self.process = subprocess.Popen(
            [*COMMAND, *words],
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            cwd=lab.work,
            env={**lab.env, "TERM": "xterm", **env},
            start_new_session=True,
        )
        os.close(theirs)

    @property
    def text(self) -> str:
        return _COLOUR.sub(b"", self._read).decode("utf-8", "replace").replace("\r\n", "\n")

    def read_until(self, is_there: Callable[[str], bool], seconds: float = 30.0) -> str:
        """Read until the text is as wished, or the command has ended."""
        deadline = time.monotonic() + seconds
        while not is_there(self.text):
            assert time.monotonic() < deadline, f"not seen within {seconds:g} s:\n{self.text}"
            if select.select([self._ours], [], [], 0.2)[0] and not self._more():
                break
        return self.text

    def ends(self, code: int = 0) -> str:
        text = self.read_until(lambda _: False)
        os.close(self._ours)
        assert self.process.wait(30) == code, text
        return text

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def _more(self) -> bool:
        try:
            read = os.read(self._ours, 65536)
        except OSError:  # EIO: the other side is closed
            return False
        self._read += read
        return bool(read)
