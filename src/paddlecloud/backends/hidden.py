"""What tasks must not reach, known by what the server opened at its start: moved, or behind a link that is gone, it is
hidden where it is by now.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

log = logging.getLogger(__name__)


class Hidden:
    def __init__(self, paths: Sequence[Path]) -> None:
        """`paths` are of folders and files, some of which may not be there yet."""
        self._paths = [path.absolute() for path in paths]
        self._opened: dict[Path, int] = {}
        self._said: set[str] = set()
        for path in self._paths:
            with suppress(OSError):
                self._opened[path] = os.open(path, os.O_PATH | os.O_CLOEXEC)

    def now(self) -> Sequence[Path]:
        """All paths to hide, none of them within one that comes before it."""
        moved = {place for path, opened in self._opened.items() if (place := _elsewhere(path, opened)) is not None}
        for place in sorted(moved - self._said):
            log.warning("%s was elsewhere when this server started; tasks do not see it there either", place)
            self._said.add(place)
        hidden = {os.path.realpath(path) for path in self._paths} if moved else set()
        return [*self._paths, *(Path(place) for place in sorted(moved - hidden) if not _within(place, hidden | moved))]

    def close(self) -> None:
        while self._opened:
            os.close(self._opened.popitem()[1])


def _elsewhere(path: Path, opened: int) -> str | None:
    """Where it is that was opened, if it is anywhere but at its path."""
    try:
        known = os.fstat(opened)
        if _is_at(path, known):
            return None
        place = os.readlink(f"/proc/self/fd/{opened}")
    except OSError:
        return None
    return place if _is_at(place, known) else None


def _is_at(path: Path | str, known: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(path), known)
    except OSError:
        return False


def _within(place: str, folders: set[str]) -> bool:
    return any(place.startswith(f"{folder}/") for folder in folders)
