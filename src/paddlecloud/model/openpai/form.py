"""A form with brackets, as the VS Code client sends a job: `taskRoles[0][name]=a` is {"taskRoles": [{"name": "a"}]}.

Numbers among the keys make a list, in their order, where all of a level are numbers; empty lists are not sent at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from paddlecloud.model.errors import InvalidError

_KEY = re.compile(r"(?P<name>[^\[\]]+)(?P<inner>(?:\[[^\[\]]*\])*)")
_LEVELS = 20


def value(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """The value that a form's pairs stand for; every text in it is a text."""
    whole: dict[str, Any] = {}
    for key, text in pairs:
        _put(whole, _steps(key), text)
    return {name: _listed(inner) for name, inner in whole.items()}


def _steps(key: str) -> list[str]:
    found = _KEY.fullmatch(key)
    if found is None:
        raise InvalidError(f"{key[:80]!r} is no name of a field", field=key[:80])
    inner = found["inner"]
    steps = [found["name"], *(inner[1:-1].split("][") if inner else ())]
    if len(steps) > _LEVELS:
        raise InvalidError(f"{key[:80]!r} has more than {_LEVELS} levels", field=key[:80])
    return steps


def _put(whole: dict[str, Any], steps: list[str], text: str) -> None:
    at = whole
    for step in steps[:-1]:
        inner = at.setdefault(step or str(len(at)), {})
        if not isinstance(inner, dict):
            raise InvalidError(f"{steps[0]} is given as a text and with parts of its own", field=steps[0])
        at = inner
    last = steps[-1] or str(len(at))
    if isinstance(at.get(last), dict):
        raise InvalidError(f"{steps[0]} is given as a text and with parts of its own", field=steps[0])
    at[last] = text


def _listed(inner: Any) -> Any:
    if not isinstance(inner, dict):
        return inner
    if inner and all(key.isascii() and key.isdigit() and len(key) < 10 for key in inner):
        return [_listed(inner[key]) for key in sorted(inner, key=int)]
    return {key: _listed(one) for key, one in inner.items()}
