"""A clock that a test sets while a real server and real commands look at it: Debian's libfaketime."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from tests.absent import absent

_LIBRARIES = Path("/usr/lib")
# libfaketime 0.9.10 fails the call by which Python sleeps (clock_nanosleep to an absolute time of a clock that it is
# told to leave alone), so what sees this clock sleeps by another.
_SLEEP = "import select, time\ntime.sleep = lambda seconds: select.select([], [], [], seconds) and None\n"


class FakeClock:
    """What is started with `env` sees this machine's time and what is added to it; time since boot stays the real."""

    def __init__(self, file: Path) -> None:
        library = next(_LIBRARIES.glob("*/faketime/libfaketimeMT.so.1"), None)
        if library is None:
            absent(f"libfaketime is not below {_LIBRARIES}: make engines")
        self._file = file
        sleep = file.with_name("sleep")
        sleep.mkdir()
        (sleep / "sitecustomize.py").write_text(_SLEEP)
        self.set(timedelta())
        self.env: Mapping[str, str] = {
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "PYTHONPATH": str(sleep),
        }

    def set(self, ahead: timedelta) -> None:
        part = self._file.with_suffix(".part")
        part.write_text(f"{ahead.total_seconds():+.0f}\n")
        part.rename(self._file)
