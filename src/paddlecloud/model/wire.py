"""Structs to and from JSON, strictly: a wrong type, a missing or an unknown field is an error that names it."""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from paddlecloud.model.errors import InvalidError

T = TypeVar("T")

_AT = re.compile(r"(?P<what>.*?)(?: - at `\$\.?(?P<where>[^`]*)`)?", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`")
_WRONG_TYPE = re.compile(r"Expected `(.*)`, got `(.*)`")
_KINDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
}
_STEP = re.compile(r"([^.\[\]]+)|\[[^\]]*\]")
_WORD_LENGTH = 80


def encode(value: object) -> bytes:
    return msgspec.json.encode(value)


def builtins(value: object) -> Any:
    """The value as dicts, lists and plain scalars, as JSON would hold it."""
    return msgspec.to_builtins(value)


def without_defaults(value: object) -> Any:
    """The value as `builtins` has it, without fields that hold their default: an older server knows no newer field."""
    if isinstance(value, msgspec.Struct):
        held = ((field, getattr(value, field.name)) for field in msgspec.structs.fields(value))
        return {field.encode_name: without_defaults(one) for field, one in held if one != _default(field)}
    if isinstance(value, (list, tuple)):
        return [without_defaults(one) for one in value]
    return builtins(value)


def _default(field: msgspec.structs.FieldInfo) -> object:
    return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()


def decode(kind: type[T], body: bytes | str) -> T:
    """`body` as a `kind`. It is looked through before anything is made of it: a hostile one takes no memory."""
    try:
        msgspec.json.decode(body, type=_strict(typing.cast(Any, kind)))
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise _refusal(kind, error) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidError(f"the body is not JSON: {error}") from None
    except RecursionError:
        raise InvalidError("the body is nested too deeply") from None


def decode_answer(kind: type[T], body: bytes | str) -> T:
    """What a server answered, as a `kind`; fields that only a newer server knows are passed over."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidError(f"the answer is not understood: {error}") from None


def convert(kind: type[T], plain: object) -> T:
    """`plain` (dicts, lists, scalars) as a `kind`."""
    try:
        msgspec.convert(plain, _strict(typing.cast(Any, kind)), strict=True)
        return msgspec.convert(plain, kind, strict=True)
    except msgspec.ValidationError as error:
        raise _refusal(kind, error) from None


def nearest(word: str, known: Sequence[str]) -> str:
    """A hint for a word that is not known: "; did you mean 'x'?", or the known ones if none is near."""
    import difflib

    near = difflib.get_close_matches(word[:_WORD_LENGTH], known, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(sorted(known))}"


def _refusal(kind: Any, error: msgspec.ValidationError) -> InvalidError:
    """msgspec's error in our words: the field named, and for an unknown one what may have been meant."""
    found = _AT.fullmatch(str(error))
    what, where = (found["what"], found["where"] or "") if found else (str(error), "")
    if unknown := _UNKNOWN.fullmatch(what):
        name = unknown[1][:_WORD_LENGTH]
        place = f"{where}.{name}" if where else name
        return InvalidError(f"{place} is not a known field{nearest(name, _fields(kind, where))}", field=place)
    if missing := _MISSING.fullmatch(what):
        place = f"{where}.{missing[1]}" if where else missing[1]
        return InvalidError(f"{place} is missing", field=place)
    if wrong := _WRONG_TYPE.fullmatch(what):
        return InvalidError(
            f"{where or 'the body'} must be {_kinds(wrong[1])}, not {_kinds(wrong[2])}", field=where or None
        )
    return InvalidError(f"{where}: {what}" if where else what, field=where or None)


def _kinds(types_named: str) -> str:
    """ "text or a whole number" for msgspec's "str | int | null": what may be left out need not be said to be null."""
    names = types_named.split(" | ")
    named = [_KINDS.get(name, name) for name in names if name != "null" or len(names) == 1]
    return " or ".join(named)


@lru_cache(maxsize=256)
def _strict(kind: Any) -> Any:
    """A type that takes what `kind` takes, except fields that a struct in it does not have."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        fields = [
            (field.name, _strict(field.type), *(() if field.required else (None,)))
            for field in msgspec.structs.fields(kind)
        ]
        said = {field.name: field.encode_name for field in msgspec.structs.fields(kind)}
        return msgspec.defstruct(kind.__name__, fields, rename=said, forbid_unknown_fields=True, kw_only=True, gc=False)
    members = tuple(part if part is Ellipsis else _strict(part) for part in typing.get_args(kind))
    if isinstance(kind, types.UnionType):
        return typing.Union[members]  # noqa: UP007
    return typing.cast(Any, typing.get_origin(kind))[members] if members else kind


def _fields(kind: Any, where: str) -> list[str]:
    """The fields that there are at a place such as `roles[0].resources`."""
    for step in _STEP.finditer(where):
        kind = _hints(kind)[step[1]] if step[1] else typing.get_args(kind)[-1 if _is_mapping(kind) else 0]
        if isinstance(kind, types.UnionType):
            kind = next(part for part in typing.get_args(kind) if part is not type(None))
    return list(_hints(kind))


def _is_mapping(kind: Any) -> bool:
    return len(typing.get_args(kind)) == 2 and typing.get_args(kind)[1] is not Ellipsis


@lru_cache(maxsize=256)
def _hints(kind: type[msgspec.Struct]) -> dict[str, Any]:
    return {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
