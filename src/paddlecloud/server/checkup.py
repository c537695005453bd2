"""All checks of a server's machine, within a few seconds: one that hangs must not keep the others from being seen."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from paddlecloud.backends.base import Backend
from paddlecloud.model.errors import PaddleCloudError
from paddlecloud.model.finding import Finding, failed, warning
from paddlecloud.server.checks import datacenters, folder, machine, parts
from paddlecloud.server.checks.site import Site
from paddlecloud.server.settings import Settings

Check = Callable[[Site], Iterable[Finding]]

SECONDS = 2.5
CHECKS: Sequence[Check] = (
    parts.process,
    machine.account,
    folder.data_folder,
    folder.room,
    folder.file_system,
    folder.database,
    folder.key,
    folder.backup,
    parts.encryption,
    parts.clusters,
    datacenters.datacenters,
    machine.isolation,
    machine.task_folders,
    machine.python,
    machine.open_files,
    machine.port,
    machine.task_ports,
    machine.time_zone,
    parts.letters,
)


def examine(
    settings: Settings, now: datetime, *, backends: Mapping[str, Backend] | None = None, healthy: bool = True
) -> list[Finding]:
    """What there is to say of a server with these settings; see Site for the rest."""
    return run(Site(settings=settings, now=now, backends=backends, healthy=healthy), CHECKS, SECONDS)


def run(site: Site, checks: Sequence[Check], seconds: float) -> list[Finding]:
    """What each check finds, in their order; nothing is changed."""
    deadline = time.monotonic() + seconds
    waiting = [(check, _begin(check, site)) for check in checks]
    return [finding for check, answer in waiting for finding in _end(check, answer, deadline, seconds)]


def _begin(check: Check, site: Site) -> queue.SimpleQueue[list[Finding]]:
    answer: queue.SimpleQueue[list[Finding]] = queue.SimpleQueue()
    # A daemon: a check that hangs, as on a network disk that is gone, does not hold the process back at its end.
    threading.Thread(target=lambda: answer.put(list(_run(check, site))), name="checkup", daemon=True).start()
    return answer


def _run(check: Check, site: Site) -> Iterator[Finding]:
    try:
        yield from check(site)
    except PaddleCloudError as error:
        yield failed(_subject(check), error.message)
    except Exception as error:
        yield failed(_subject(check), f"it could not be looked at: {type(error).__name__}: {error}")


def _end(check: Check, answer: queue.SimpleQueue[list[Finding]], deadline: float, seconds: float) -> list[Finding]:
    try:
        return answer.get(timeout=max(0.0, deadline - time.monotonic()))
    except queue.Empty:
        return [warning(_subject(check), f"not done within {seconds:g} s", "look at it by hand: it is large, or hangs")]


def _subject(check: Check) -> str:
    return getattr(check, "__name__", "check").replace("_", " ")
