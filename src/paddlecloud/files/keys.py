"""Converts paths to object store keys, and sorts listings by name instead of by key."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Generic, TypeVar

from paddlecloud.model import paths
from paddlecloud.model.errors import InvalidError

T = TypeVar("T")

KEY_BYTES = 1024  # the longest key that S3 accepts
MARKER = ".paddlecloud-folder"  # a key with this name marks that its folder exists, even if it is otherwise empty
LAST = "\U0010ffff"

_ESCAPED = 0xEF00
_MAX_WAITING = 1000


def key_of(path: str) -> str:
    """Return the path itself, with bytes escaped that some store or library would not preserve.

    Each such byte becomes the private-use character U+EF00 plus the byte, as `paths.text_of` does for bytes that are
    not UTF-8. A name that equals the marker gets its first byte escaped.
    """
    if path.isascii() and path.isprintable() and "\\" not in path and MARKER not in path:
        return _checked(path, path)
    key = "/".join(escaped(raw, special="\\", reserved=(MARKER,)) for raw in paths.raw_of(path).split(b"/"))
    return _checked(key, path)


def path_of(key: str) -> str:
    """Undo `key_of`; for a key that this project did not create, return the path that stands for it."""
    if key.isascii():
        return key
    raw = b"".join(
        bytes([ord(character) - _ESCAPED]) if "\uef00" <= character <= "\uefff" else character.encode()
        for character in key
    )
    return paths.text_of(raw)


def escaped(raw: bytes, *, special: str, reserved: Collection[str]) -> str:
    """Escape control characters, characters in `special` and bytes that are not UTF-8. A `reserved` name gets its
    first character escaped. `path_of` undoes it."""
    name = raw.decode("utf-8", "surrogateescape")
    made = "".join(_escaped_character(character, special) for character in name)
    return chr(_ESCAPED + raw[0]) + made[1:] if name in reserved else made


def in_order(
    seen: Iterable[tuple[str, T | None]], *, is_folder: Callable[[str], bool], after: str = "", held: int = _MAX_WAITING
) -> Iterator[tuple[str, T | None]]:
    """Sort by name what a store lists by key, after the name `after`; a folder's value is None.

    A store lists `a-b` before `a/…`, that is, before the folder `a`. So a name waits until no folder that sorts before
    it can still appear. Once `held` names wait, the store is asked whether that folder exists. If a file and a folder
    share a name, the folder wins. Stores that list by name work too.
    """
    order = _Order[T](is_folder, after, held)
    for name, value in seen:
        order.add(name, value)
        yield from order.ready()
    yield from order.rest()


class _Order(Generic[T]):
    def __init__(self, is_folder: Callable[[str], bool], after: str, held: int) -> None:
        self._is_folder = is_folder
        self._max_waiting = held
        self._waiting: dict[str, T | None] = {}
        self._names: list[str] = []
        self._settled: set[str] = set()  # folders for which the store was asked
        self._position = ""
        self._last_yielded = after

    def add(self, name: str, value: T | None) -> None:
        self._position = max(self._position, name if value is not None else name + "/")
        if name > self._last_yielded:
            self._wait(name, value)

    def ready(self) -> Iterator[tuple[str, T | None]]:
        while self._names:
            folder = self._blocker(self._names[0])
            if folder is None:
                yield self._first()
            elif len(self._names) > self._max_waiting:
                self._settled.add(folder)
                if self._is_folder(folder):
                    self._wait(folder, None)
            else:
                return

    def rest(self) -> Iterator[tuple[str, T | None]]:
        while self._names:
            yield self._first()

    def _wait(self, name: str, value: T | None) -> None:
        if name not in self._waiting:
            heapq.heappush(self._names, name)
            self._waiting[name] = value
        elif value is None:
            self._waiting[name] = None

    def _blocker(self, name: str) -> str | None:
        """A folder that sorts before the name and may still appear; if the shortest cannot, none can."""
        for folder in _before(name):
            if folder > self._last_yielded and folder not in self._settled:
                return folder if folder + "/" > self._position else None
        return None

    def _first(self) -> tuple[str, T | None]:
        self._last_yielded = heapq.heappop(self._names)
        return self._last_yielded, self._waiting.pop(self._last_yielded)


def _before(name: str) -> Iterator[str]:
    """Folders that a store lists after a file of this name, though they sort before it; the last has the same name."""
    for at in range(1, len(name)):
        if name[at] < "/":
            yield name[:at]
    yield name


def _checked(key: str, path: str) -> str:
    if len(key.encode()) > KEY_BYTES:
        raise InvalidError(f"path {path!r} is longer than {KEY_BYTES} bytes, the limit of S3: shorten it", field="path")
    return key


def _escaped_character(character: str, special: str) -> str:
    kept = " " <= character < "\x7f" and character not in special
    if kept or (
        character >= "\xa0" and not "\udc80" <= character <= "\udcff" and not "\uef00" <= character <= "\uefff"
    ):
        return character
    return "".join(chr(_ESCAPED + byte) for byte in character.encode("utf-8", "surrogateescape"))
