"""What tests of stores say often."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing

from paddlecloud.files.base import Store
from paddlecloud.model.errors import NotFoundError

ODD_NAMES = (
    "with space",
    " ",
    "ünïcode",
    "数据",
    "100%",
    "%41",
    "%2F",
    "a+b&c=d",
    "new\nline",
    "tab\t",
    "\x01\x7f",
    ".hidden",
    "...",
    "-rf",
    "back\\slash",
    "what?#~{}[]*",
    "'\"`$;|<>",
    "\uefff",  # the byte 0xFF, as paths.text_of has it
    "\uef05",  # stands for no byte in a text, but would in a key
    "\ue000",
    ".paddlecloud-folder",
    "n" * 255,
    "é" * 127,
)


def filled(store: Store, contents: Mapping[str, bytes]) -> None:
    store.write_all(list(contents.items()))


def fill(store: Store, paths: Sequence[str]) -> None:
    """Make many empty files in one folder; on this machine's disk as its operator may, past the store."""
    if store.folder is None:
        store.write_all([(path, b"") for path in paths])
        return
    (store.folder / paths[0]).parent.mkdir(parents=True)
    for path in paths:
        (store.folder / path).touch()


def content(store: Store, path: str) -> bytes:
    with closing(store.open(path)) as opened:
        return b"".join(opened.pieces())


def names(store: Store, folder: str = "") -> list[str]:
    return [entry.path for entry in store.list(folder)]


def tree(store: Store, folder: str = "") -> list[str]:
    return [entry.path for entry in store.walk(folder)]


def is_there(store: Store, path: str) -> bool:
    try:
        store.stat(path)
    except NotFoundError:
        return False
    return True


def broken_after(pieces: int, size: int) -> Iterator[bytes]:
    """A source that gives some, and then fails."""
    for _ in range(pieces):
        yield b"n" * size
    raise ConnectionResetError("the client went away")
