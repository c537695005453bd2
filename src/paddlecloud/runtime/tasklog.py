"""What a task says: its log, with the few lines of our own in it."""

from __future__ import annotations

import os

from paddlecloud.runtime import below
from paddlecloud.runtime.taskfile import TaskFile

_TAIL_LINES = 20
_TAIL_BYTES = 4096


def results(task: TaskFile) -> str:
    """The folder of all that the job leaves, in which each of its tasks may change anything."""
    return os.path.dirname(task.output)


class TaskLog:
    """The task's log: given to the command as it is, never copied. Attempts follow each other in it."""

    def __init__(self, task: TaskFile) -> None:
        self.fd = below.open_to_append(results(task), task.log_file)
        if task.attempt > 1:
            self._line(f"--- attempt {task.attempt} ---")
        if task.note:
            self.note(task.note)
        self._start = os.fstat(self.fd).st_size

    def restart(self, text: str) -> None:
        self._line(text)
        self._start = os.fstat(self.fd).st_size

    def note(self, text: str) -> None:
        self._line(f"paddlecloud: {text}")

    def ends_with_any(self, words: tuple[str, ...]) -> bool:
        """Whether one of the words is in the last lines."""
        tail = self.tail()
        return any(word in tail for word in words)

    def close(self) -> None:
        """Make what was said durable."""
        try:
            if os.fstat(self.fd).st_size:
                os.fsync(self.fd)
        except OSError:
            return
        finally:
            os.close(self.fd)

    def tail(self) -> str:
        """The last lines of this attempt."""
        start = max(self._start, os.fstat(self.fd).st_size - _TAIL_BYTES)
        text = os.pread(self.fd, _TAIL_BYTES, start).decode("utf-8", "replace")
        return "\n".join(text.splitlines()[-_TAIL_LINES:])

    def _line(self, text: str) -> None:
        append_line(self.fd, text)


def append_line(log: int, text: str) -> None:
    """Add a line of our own to an open log."""
    try:
        size = os.fstat(log).st_size
        glued = size > 0 and os.pread(log, 1, size - 1) != b"\n"
        os.write(log, (("\n" if glued else "") + text + "\n").encode("utf-8", "replace"))
    except OSError:
        return  # the disk is full; the exit file still says it
