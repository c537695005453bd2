"""What a node allows, as the first task there has noted it for those after it: to try it out costs more than to start.

The note lies beside the runtime itself, in the service's own folder on the shared disk: no task that is kept from the
files of others sees it, and one that is not could as well change what all tasks are started by. It holds for one boot
of one machine and one account, and a while: an operator may change what is allowed. That nothing is isolated is never
noted, so that a node is better off as soon as it is mended.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress

from paddlecloud.runtime import allowed, processes, smallfiles
from paddlecloud.runtime.namespaces import Isolation

_GOOD_SECONDS = 600.0


class Note:
    def __init__(self, folder: str, now: float) -> None:
        """`folder` is that of the runtime."""
        self._path = f"{folder}/allows-{processes.boot_id()}-{os.uname().nodename}-{os.geteuid()}"
        self._now = now

    def isolation(self, tasks: str) -> Isolation:
        """What this node allows to tasks whose folders are in `tasks`, as noted, or by trying it out."""
        noted = self._read()
        if noted is not None:
            return noted
        found = allowed.probe_in(tasks)
        if found.mount:
            self._write(found)
        return found

    def forget(self) -> None:
        """It was wrong."""
        with suppress(OSError):
            os.unlink(self._path)

    def _read(self) -> Isolation | None:
        try:
            plain = json.loads(smallfiles.read(self._path))
            fresh = 0 <= self._now - plain.pop("at") < _GOOD_SECONDS
            found = Isolation(**plain)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None  # none, or not one that this runtime has written
        known = found.landlock.__class__ is int and all(isinstance(value, bool) for value in found[:-1])
        return found if fresh and found.mount and known else None

    def _write(self, found: Isolation) -> None:
        part = f"{self._path}.{os.getpid()}"
        with suppress(OSError):  # on a full disk the next task tries it out again
            smallfiles.write_new(part, json.dumps({"at": self._now, **found._asdict()}).encode(), 0o600)
            os.rename(part, self._path)
