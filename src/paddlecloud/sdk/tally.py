"""How far work on many files has come, told by whatever ends it early."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from paddlecloud.model.errors import PaddleCloudError


class Tally:
    """Files that are done, of so many; counted by several threads."""

    def __init__(self, of: int) -> None:
        self._of = of
        self._done = 0
        self._lock = Lock()

    def add(self, files: int = 1) -> None:
        with self._lock:
            self._done += files

    @contextmanager
    def telling(self) -> Iterator[None]:
        try:
            yield
        except PaddleCloudError as error:
            if self._of < 2:
                raise
            so_far = f"{self._done} of {self._of} files were copied, and the same again goes on with the rest"
            raise type(error)(f"{error.message}; {so_far}", field=error.field) from None
