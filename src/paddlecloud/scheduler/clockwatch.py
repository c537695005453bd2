"""Notices when this machine's clock is set, also while no server ran, by the time since its boot.

Invariant: no limit on the time of a job ends it because the clock was set ahead.
"""

from __future__ import annotations

import logging
import time
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from paddlecloud.model.clock import Jump, Jumps
from paddlecloud.runtime.folder import write_durably
from paddlecloud.runtime.processes import boot_id

log = logging.getLogger(__name__)

_LEAST = timedelta(seconds=30)
_SLEW = 0.001  # a clock that is corrected bit by bit is off by less than this part of the time
_WRITE_SECONDS = 60.0
_KEPT = 20


class _Seen(msgspec.Struct, frozen=True):
    """What both clocks said at one moment, and every jump up to then."""

    boot: str
    uptime_seconds: float
    now: datetime
    jumps: Jumps


class ClockWatch:
    def __init__(self, file: Path) -> None:
        """`file` keeps what was seen for the next server."""
        self._file = file
        self._seen = _read(file)
        self._written_at = 0.0

    def look(self, now: datetime) -> Jumps:
        """Every jump that is known at this time."""
        uptime = time.clock_gettime(time.CLOCK_BOOTTIME)
        before = self._seen
        jumps = Jumps() if before is None else before.jumps
        jump = None if before is None or before.boot != boot_id() else _jump(before, now, uptime)
        if jump is not None:
            side = "ahead" if jump.by > timedelta() else "back"
            log.warning("this machine's clock was set %s by %s: no job's time is counted by that", side, abs(jump.by))
            jumps = Jumps((*jumps.all, jump)[-_KEPT:])
        self._seen = _Seen(boot_id(), uptime, now, jumps)
        if jump is not None or uptime - self._written_at > _WRITE_SECONDS:
            self._write(uptime)
        return jumps

    def _write(self, uptime: float) -> None:
        try:
            write_durably(str(self._file), msgspec.json.encode(self._seen))
            self._written_at = uptime
        except OSError as error:
            log.warning("%s cannot be written: %s", self._file, error.strerror)


def _jump(before: _Seen, now: datetime, uptime: float) -> Jump | None:
    passed = timedelta(seconds=uptime - before.uptime_seconds)
    by = now - before.now - passed
    return Jump(now, by) if abs(by) > _LEAST + passed * _SLEW else None


def _read(file: Path) -> _Seen | None:
    try:
        return msgspec.json.decode(file.read_bytes(), type=_Seen)
    except (OSError, msgspec.MsgspecError):
        return None
