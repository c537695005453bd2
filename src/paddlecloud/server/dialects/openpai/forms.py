"""Forms with brackets, as OpenPAI's clients nest them: `taskRoles[0][portList][0][label]=http` is an object in lists.

Every value is text. A form that says one thing twice, or nests without end, is refused with the field named: what it
would be taken for must not depend on who reads it.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote_to_bytes

from paddlecloud.model.errors import InvalidError

FIELDS = 5000
DEPTH = 8
_KEY_LETTERS = 500
_KEY = re.compile(r"(?P<name>[^\[\]]+)(?P<steps>(?:\[[^\[\]]*\])*)")
_STEP = re.compile(r"\[([^\[\]]*)\]")
_INDEX = re.compile(r"0|[1-9][0-9]{0,4}")


def parse_form(body: bytes) -> dict[str, Any]:
    root: dict[str, Any] = {}
    pairs = [pair for pair in body.split(b"&", FIELDS + 1) if pair]
    if len(pairs) > FIELDS:
        raise InvalidError(f"the form has more than {FIELDS} fields", field="body")
    for pair in pairs:
        key, _, value = pair.partition(b"=")
        _put(root, _text(key), _text(value))
    return {name: _lists(inner) for name, inner in root.items()}


def _text(raw: bytes) -> str:
    try:
        return unquote_to_bytes(raw.replace(b"+", b" ")).decode()
    except UnicodeDecodeError:
        raise InvalidError("the form is not UTF-8", field="body") from None


def _put(root: dict[str, Any], key: str, value: str) -> None:
    place, steps = root, _steps(key)
    for step in steps[:-1]:
        inner = place.setdefault(_numbered(place, step), {})
        if not isinstance(inner, dict):
            raise InvalidError(f"{key[:80]} is a text and has fields of its own, too", field=key[:80])
        place = inner
    last = _numbered(place, steps[-1])
    if last in place:
        raise InvalidError(f"{key[:80]} is in the form twice", field=key[:80])
    place[last] = value


def _steps(key: str) -> list[str]:
    found = _KEY.fullmatch(key) if len(key) <= _KEY_LETTERS else None
    if found is None:
        raise InvalidError(f"the form has a field of an odd name: {key[:80]!r}", field=key[:80])
    steps = [found["name"], *_STEP.findall(found["steps"])]
    if len(steps) > DEPTH:
        raise InvalidError(f"{key[:80]} is nested more than {DEPTH} levels deep", field=key[:80])
    return steps


def _numbered(place: dict[str, Any], step: str) -> str:
    """`[]` is the next of a list."""
    return step or str(len(place))


def _lists(value: Any) -> Any:
    """Objects whose names are all numbers are lists, in the order of those, with nothing between."""
    if not isinstance(value, dict):
        return value
    inner = {name: _lists(one) for name, one in value.items()}
    if inner and all(_INDEX.fullmatch(name) for name in inner):
        return [inner[name] for name in sorted(inner, key=int)]
    return inner
