"""Encodes and decodes items: JSON, msgpack and NumPy, which are safe to read, and pickle, which can run code.

WARNING: READING A PICKLE CAN RUN ANY CODE ITS AUTHOR CHOSE. Unpickle only what you or your own job wrote.
`PLAIN_PICKLE` reads pickles of numbers, texts, lists, tuples and dicts, and refuses to import anything.
"""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, NamedTuple

from paddlecloud.recordio.errors import MissingPartError


class Codec(NamedTuple):
    name: str
    dumps: Callable[[Any], bytes]
    loads: Callable[[bytes], Any]


class UnsafeError(pickle.UnpicklingError):
    """A pickle tries to import something, which may run code."""


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise UnsafeError(
            f"this pickle imports {module}.{name}, which may run code; "
            "if you or your own job wrote it, read it with the codec pickle"
        )


def load_pickle(file: BinaryIO) -> Any:
    """A loader for pickled files, also of Python 2, whose texts and NumPy arrays are read as latin-1; as dangerous as
    pickle."""
    return pickle.load(file, encoding="latin1")


load_python2 = load_pickle


def dump_json(items: object, file: BinaryIO) -> None:
    """A dumper for `split` whose files are safe to read."""
    file.write(_to_json(items))


def load_json(file: BinaryIO) -> Any:
    return json.loads(file.read())


def _to_json(item: object) -> bytes:
    return json.dumps(item, ensure_ascii=False, separators=(",", ":"), default=_plain).encode("utf-8", "surrogatepass")


def _plain(item: Any) -> object:
    """Convert NumPy arrays and numbers to lists and numbers."""
    if callable(tolist := getattr(item, "tolist", None)):
        return tolist()
    raise TypeError(f"JSON cannot store {type(item).__name__}: use the codec msgpack, numpy or pickle")


def _to_msgpack(item: object) -> bytes:
    return bytes(_msgspec().msgpack.encode(item, enc_hook=_plain))


def _from_msgpack(record: bytes) -> Any:
    return _msgspec().msgpack.decode(record)


def _to_arrays(item: Any) -> bytes:
    """Encode an array, or a tuple of arrays, as consecutive .npy data."""
    numpy = _numpy()
    made = io.BytesIO()
    for array in item if isinstance(item, tuple) else (item,):
        numpy.save(made, numpy.asarray(array), allow_pickle=False)
    return made.getvalue()


def _from_arrays(record: bytes) -> Any:
    """Return a tuple of arrays, or the array itself if there is only one."""
    numpy = _numpy()
    held = io.BytesIO(record)
    arrays = []
    while held.tell() < len(record):
        arrays.append(numpy.load(held, allow_pickle=False))
    return arrays[0] if len(arrays) == 1 else tuple(arrays)


def _to_text(item: object) -> bytes:
    return item if isinstance(item, bytes) else str(item).encode("utf-8", "surrogateescape")


def _msgspec() -> Any:
    import msgspec

    return msgspec


def _numpy() -> Any:
    try:
        import numpy as np
    except ImportError:
        raise MissingPartError("the codec numpy", "numpy") from None
    return np


JSON = Codec("json", _to_json, json.loads)
MSGPACK = Codec("msgpack", _to_msgpack, _from_msgpack)
NUMPY = Codec("numpy", _to_arrays, _from_arrays)
TEXT = Codec("text", _to_text, lambda record: record.decode("utf-8", "surrogateescape"))
PICKLE = Codec(
    "pickle",
    lambda item: pickle.dumps(item, pickle.HIGHEST_PROTOCOL),
    lambda record: pickle.loads(record, encoding="latin1"),
)
PLAIN_PICKLE = Codec(
    "plain-pickle", PICKLE.dumps, lambda record: _PlainUnpickler(io.BytesIO(record), encoding="latin1").load()
)

CODECS: Mapping[str, Codec] = {codec.name: codec for codec in (JSON, MSGPACK, NUMPY, TEXT, PICKLE, PLAIN_PICKLE)}
