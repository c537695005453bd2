"""Dataclasses to and from JSON, strictly: a wrong type, a missing or an unknown field is an error that names it."""

from __future__ import annotations

import dataclasses
import difflib
import re
import types
import typing
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from paddlecloud.model.errors import InvalidError

T = TypeVar("T")

_AT = re.compile(r"^(?P<what>.*) - at `\$(?P<where>[^`]*)`$", re.DOTALL)


def encode(value: object) -> bytes:
    return msgspec.json.encode(value)


def builtins(value: object) -> Any:
    """The value as dicts, lists and plain scalars, as JSON would hold it."""
    return msgspec.to_builtins(value)


def decode(kind: type[T], body: bytes | str) -> T:
    try:
        plain = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidError(f"the body is not JSON: {error}") from None
    except RecursionError:
        raise InvalidError("the body is nested too deeply") from None
    return convert(kind, plain)


def decode_answer(kind: type[T], body: bytes | str) -> T:
    """What a server answered, as a `kind`; fields that only a newer server knows are passed over."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidError(f"the answer is not understood: {error}") from None


def convert(kind: type[T], plain: object) -> T:
    """`plain` (dicts, lists, scalars) as a `kind`."""
    _refuse_unknown(kind, plain, "")
    try:
        return msgspec.convert(plain, kind, strict=True)
    except msgspec.ValidationError as error:
        found = _AT.match(str(error))
        where = found["where"].lstrip(".") if found else ""
        what = found["what"] if found else str(error)
        raise InvalidError(f"{where}: {what}" if where else what, field=where or None) from None


def nearest(word: str, known: Sequence[str]) -> str:
    """A hint for a word that is not known: "; did you mean 'x'?", or the known ones if none is near."""
    near = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(sorted(known))}"


def _refuse_unknown(kind: Any, plain: object, where: str) -> None:
    """Refuse a field that no dataclass of `kind` has; what has another shape is left to msgspec to refuse."""
    if isinstance(kind, types.UnionType):
        for member in typing.get_args(kind):
            _refuse_unknown(member, plain, where)
    elif isinstance(plain, Mapping):
        for key, value in plain.items():
            place = f"{where}.{key}" if where else str(key)
            _refuse_unknown(_field(kind, str(key), place), value, place)
    elif isinstance(plain, list):
        for number, value in enumerate(plain):
            _refuse_unknown(_argument(kind, 0), value, f"{where}[{number}]")


def _field(kind: Any, name: str, place: str) -> Any:
    """The type of one field of a dataclass, or of a mapping's values."""
    if not dataclasses.is_dataclass(kind):
        return _argument(kind, 1)
    hints = _hints(typing.cast(type, kind))
    if name not in hints:
        raise InvalidError(f"{place} is not a known field{nearest(name, list(hints))}", field=place)
    return hints[name]


def _argument(kind: Any, number: int) -> Any:
    arguments = typing.get_args(kind)
    return arguments[number] if number < len(arguments) else object


@lru_cache(maxsize=256)
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)
