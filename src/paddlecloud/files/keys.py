"""Paths as the keys of an object store, and the order of names made out of the order of keys."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Generic, TypeVar

from paddlecloud.model import paths
from paddlecloud.model.errors import InvalidError

T = TypeVar("T")

KEY_BYTES = 1024  # what S3 takes
MARKER = ".paddlecloud-folder"  # the key in a folder that says that the folder is there, whatever else is in it
LAST = "\U0010ffff"

_ESCAPED = 0xEF00
_HELD = 1000


def key_of(path: str) -> str:
    """The key of a path: the path itself, but for what some store or library in between would not keep as it is.

    Each such byte becomes a private-use character, U+EF00 and the byte, as `paths.text_of` has it for what is not
    UTF-8. A name that would be taken for a marker is written with its first byte so.
    """
    if path.isascii() and path.isprintable() and "\\" not in path and MARKER not in path:
        return _checked(path, path)
    key = "/".join(escaped(raw, special="\\", reserved=(MARKER,)) for raw in paths.raw_of(path).split(b"/"))
    return _checked(key, path)


def path_of(key: str) -> str:
    """The path whose key this is; of a key that we did not make, the path that means it."""
    if key.isascii():
        return key
    raw = b"".join(
        bytes([ord(character) - _ESCAPED]) if "\uef00" <= character <= "\uefff" else character.encode()
        for character in key
    )
    return paths.text_of(raw)


def escaped(raw: bytes, *, special: str, reserved: Collection[str]) -> str:
    """A name without control characters, those that are `special`, and bytes that are no UTF-8; a `reserved` name gets
    another first character, since it means something else. `path_of` undoes it."""
    name = raw.decode("utf-8", "surrogateescape")
    made = "".join(_escaped_character(character, special) for character in name)
    return chr(_ESCAPED + raw[0]) + made[1:] if name in reserved else made


def in_order(
    seen: Iterable[tuple[str, T | None]], *, is_folder: Callable[[str], bool], after: str = "", held: int = _HELD
) -> Iterator[tuple[str, T | None]]:
    """By name what a store lists by key, behind the name `after`: files with what is known of them, folders with None.

    A store has `a-b` before `a/…`, that is, before the folder `a`: a name waits until no folder that belongs before it
    can come any more. Once many wait, the store is asked about that folder. Of a file and a folder with one name,
    the folder is meant. A store that lists by name, as some do, is as good.
    """
    order = _Order[T](is_folder, after, held)
    for name, value in seen:
        order.add(name, value)
        yield from order.ready()
    yield from order.rest()


class _Order(Generic[T]):
    def __init__(self, is_folder: Callable[[str], bool], after: str, held: int) -> None:
        self._is_folder = is_folder
        self._held = held
        self._waiting: dict[str, T | None] = {}
        self._names: list[str] = []
        self._settled: set[str] = set()  # folders that the store was asked about
        self._position = ""
        self._told = after

    def add(self, name: str, value: T | None) -> None:
        self._position = max(self._position, name if value is not None else name + "/")
        if name > self._told:
            self._wait(name, value)

    def ready(self) -> Iterator[tuple[str, T | None]]:
        while self._names:
            folder = self._blocker(self._names[0])
            if folder is None:
                yield self._first()
            elif len(self._names) > self._held:
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
        """The folder that may still come and belongs before the name; if the shortest has passed, all have."""
        for folder in _before(name):
            if folder > self._told and folder not in self._settled:
                return folder if folder + "/" > self._position else None
        return None

    def _first(self) -> tuple[str, T | None]:
        self._told = heapq.heappop(self._names)
        return self._told, self._waiting.pop(self._told)


def _before(name: str) -> Iterator[str]:
    """The folders that a store lists behind a file of this name, though they belong before it; the last is its own."""
    for at in range(1, len(name)):
        if name[at] < "/":
            yield name[:at]
    yield name


def _checked(key: str, path: str) -> str:
    if len(key.encode()) > KEY_BYTES:
        raise InvalidError(f"path {path!r} is longer than the {KEY_BYTES} bytes that an S3 store takes", field="path")
    return key


def _escaped_character(character: str, special: str) -> str:
    kept = " " <= character < "\x7f" and character not in special
    if kept or (
        character >= "\xa0" and not "\udc80" <= character <= "\udcff" and not "\uef00" <= character <= "\uefff"
    ):
        return character
    return "".join(chr(_ESCAPED + byte) for byte in character.encode("utf-8", "surrogateescape"))
