"""OpenPAI's templates: `<% $parameters.a.b %>` in a text, with names, dots and `[0]`.

What cannot be resolved stays as it is written, as it did there. Secrets are left out when a job is read, and put in
when its tasks start, by the same function.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from paddlecloud.model.errors import InvalidError

_TAG = re.compile(r"<%(?P<raw>[{&]?)\s*(?P<name>[^\s<>%{}&#^!/]+?)\s*\}?%>")
_STEP = re.compile(r"\.?([^.\[\]]+)|\[([0-9]{1,9})\]")
SECRETS = "$secrets"
MOST_CHARACTERS = 5_000_000


def render(text: str, known: Mapping[str, Any], *, most: int = MOST_CHARACTERS) -> str:
    """The text with each tag that `known` resolves replaced by its value; values are not looked into again.

    A few letters may stand for as much as the whole file: what comes to more than `most` is refused, not made.
    """
    left = most - len(text)

    def value(tag: re.Match[str]) -> str:
        nonlocal left
        found = _look_up(tag["name"], known)
        if found is None:
            return tag[0]
        told = written(found)
        left -= len(told)
        if left < 0:
            raise too_long(most)
        return told

    if left < 0:
        raise too_long(most)
    return _TAG.sub(value, text)


def too_long(most: int) -> InvalidError:
    return InvalidError(
        f"the commands come to more than {most} characters, with what their templates stand for: put it into a file"
    )


def names(text: str) -> list[str]:
    """The names that a text has in tags."""
    return [tag["name"] for tag in _TAG.finditer(text)]


def uses_secrets(text: str) -> bool:
    return any(name == SECRETS or name.startswith((f"{SECRETS}.", f"{SECRETS}[")) for name in names(text))


def written(value: object) -> str:
    """A value as it stands in a command."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and math.isfinite(value) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if isinstance(value, list):
        return ",".join("" if one is None else written(one) for one in value)
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def _look_up(name: str, known: Mapping[str, Any]) -> object | None:
    """What a name such as `$data.uri[0]` stands for; None: nothing."""
    at, found = 0, known
    current: Any = found
    while at < len(name):
        step = _STEP.match(name, at)
        if step is None:
            return None
        current = _inner(current, step)
        if current is None:
            return None
        at = step.end()
    return current if at else None


def _inner(value: object, step: re.Match[str]) -> Any:
    key, index = step[1], step[2]
    if isinstance(value, Mapping):
        return value.get(key if key is not None else index)
    if isinstance(value, list):
        number = index if index is not None else key if key.isascii() and key.isdigit() and len(key) < 10 else None
        return value[int(number)] if number is not None and int(number) < len(value) else None
    return None
