"""Folders of handles that are over: out of the way at once, and removed by a thread of their own.

To remove them takes as long as to hand over as many jobs, for which nobody should wait. What is left when the server
ends is removed when it starts again.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
from pathlib import Path

from paddlecloud.runtime import removal

log = logging.getLogger(__name__)

_PREFIX = ".trash-"
_END_SECONDS = 5.0


class Trash:
    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._names: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="trash", daemon=True)
        for left in sorted(root.glob(f"{_PREFIX}*")):
            self._names.put(left.name)
        self._thread.start()

    def put(self, name: str) -> None:
        """Take what is called so in the root out of the way; that it stays so, who syncs the root makes sure."""
        os.rename(f"{self._root}/{name}", f"{self._root}/{_PREFIX}{name}")
        self._names.put(_PREFIX + name)

    def close(self) -> None:
        self._names.put(None)
        self._thread.join(_END_SECONDS)

    def _run(self) -> None:
        while (name := self._names.get()) is not None:
            try:
                removal.remove(self._root, name)
            except OSError as error:
                log.warning("%s/%s cannot be removed: %s", self._root, name, error)
