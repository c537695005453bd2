"""A value from outside, read field by field: each is of its kind or an InvalidError names it, and none is left over.

What comes from a form is text throughout, so where a form is read "2" is a number, "true" is true and "" is nothing.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator, Mapping
from typing import Any

from paddlecloud.model.errors import InvalidError
from paddlecloud.model.wire import nearest

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_TRUTHS = {"true": True, "false": False}
_MOST = 2**53  # what JavaScript, which wrote most of these files, counts exactly
_SHOWN = 80
_DEPTH = 50
_VALUES = 100_000
_CHARACTERS = 4_000_000
_HUGE = 2**64


class Fields:
    """The fields of a mapping. `where` is its place in the whole, "" being the whole itself."""

    def __init__(self, value: object, where: str, *, form: bool = False) -> None:
        if not isinstance(value, Mapping):
            raise InvalidError(f"{where or 'the job'} must be a mapping, not {kind(value)}", field=where or None)
        self.where = where
        self._form = form
        self._left = {}
        for name, inner in value.items():
            if not isinstance(name, str):
                raise InvalidError(
                    f"{where or 'the job'} has a key that is no text: {shown(name)}", field=where or None
                )
            self._left[name] = inner
        self._known: list[str] = []

    def __iter__(self) -> Iterator[str]:
        """The names of the fields that nobody has read yet."""
        return iter(list(self._left))

    def place(self, name: str) -> str:
        return f"{self.where}.{name}" if self.where else name

    def take(self, name: str) -> Any:
        """The value as it is; None: there is none, or nothing is said."""
        self._known.append(name)
        value = self._left.pop(name, None)
        return None if self._form and value == "" else value

    def has(self, name: str) -> bool:
        return name in self._left

    def peek(self, name: str) -> Any:
        """The value, left where it is."""
        return self._left.get(name)

    def text(self, name: str, default: str | None = None, pattern: re.Pattern[str] | None = None) -> str:
        """A text; without a default it must be there, and not be empty."""
        value = self.take(name)
        if value is None:
            if default is None:
                raise self.missing(name)
            return default
        if not isinstance(value, str):
            raise self.wrong(name, "text", value)
        if default is None and not value:
            raise InvalidError(f"{self.place(name)} is empty", field=self.place(name))
        if pattern is not None and not pattern.fullmatch(value):
            raise InvalidError(
                f"{self.place(name)} {shown(value)} must match {pattern.pattern}", field=self.place(name)
            )
        return value

    def whole(self, name: str, default: int | None = None, *, least: int = 0, most: int = _MOST) -> int:
        """A whole number; without a default it must be there."""
        value = self.maybe_whole(name, least=least, most=most)
        if value is not None:
            return value
        if default is None:
            raise self.missing(name)
        return default

    def maybe_whole(self, name: str, *, least: int = 0, most: int = _MOST) -> int | None:
        value = self.take(name)
        if value is None:
            return None
        if self._form and isinstance(value, str) and _WHOLE.fullmatch(value):
            value = int(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.wrong(name, "a whole number", value)
        if not least <= value <= most:
            range_ = f"at least {least}" if most == _MOST else f"from {least} to {most}"
            raise InvalidError(f"{self.place(name)} is {shown(value)}; it must be {range_}", field=self.place(name))
        return value

    def truth(self, name: str, default: bool) -> bool:
        value = self.take(name)
        if self._form and isinstance(value, str):
            value = _TRUTHS.get(value.lower(), value)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.wrong(name, "true or false", value)
        return value

    def fields(self, name: str) -> Fields | None:
        """The fields of an inner mapping; None: there is none."""
        value = self.take(name)
        return None if value is None else Fields(value, self.place(name), form=self._form)

    def mapping(self, name: str) -> dict[str, Any]:
        """An inner mapping as it is."""
        value = self.take(name)
        if value is None:
            return {}
        inner = Fields(value, self.place(name), form=self._form)
        return {key: inner.take(key) for key in inner}

    def each(self, name: str) -> list[Fields]:
        """The fields of each mapping of a list."""
        return [
            Fields(one, f"{self.place(name)}[{number}]", form=self._form) for number, one in enumerate(self.list(name))
        ]

    def texts(self, name: str) -> list[str]:
        found = self.list(name)
        for number, one in enumerate(found):
            if not isinstance(one, str):
                place = f"{self.place(name)}[{number}]"
                raise InvalidError(f"{place} must be text, not {kind(one)}", field=place)
        return found

    def list(self, name: str) -> list[Any]:
        value = self.take(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.wrong(name, "a list", value)
        return value

    def done(self) -> None:
        """Refuse what nobody has read."""
        for name in self._left:
            place = self.place(name[:_SHOWN])
            raise InvalidError(f"{place} is not a known field{nearest(name, self._known)}", field=place)

    def done_with_notes(self, warnings: builtins.list[str]) -> None:
        """Tell of what nobody has read, where OpenPAI lets anything stand."""
        for name in self:
            self.take(name)
            warnings.append(f"{self.place(name[:_SHOWN])} is not known here and does nothing")

    def missing(self, name: str) -> InvalidError:
        return InvalidError(f"{self.place(name)} is missing", field=self.place(name))

    def wrong(self, name: str, wanted: str, value: object) -> InvalidError:
        return InvalidError(f"{self.place(name)} must be {wanted}, not {kind(value)}", field=self.place(name))


def at_most(most: int, number: int, place: str, warnings: list[str]) -> int:
    """A number that OpenPAI does not bound; what is more than is done here is told."""
    if number > most:
        warnings.append(f"{place} {shown(number)} is taken for {most}, which is the most here")
    return min(number, most)


def kind(value: object) -> str:
    """What a value is, in words."""
    if isinstance(value, bool):
        return "true or false"
    words = {str: "text", int: "a number", float: "a number", dict: "a mapping", list: "a list", type(None): "nothing"}
    return words.get(type(value), type(value).__name__)


def shown(value: object) -> str:
    """A value in a message, never more of it than a line takes."""
    text = repr(value) if not isinstance(value, int) or -_MOST <= value <= _MOST else "a huge number"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def check_plain(value: object) -> None:
    """Refuse what no file means: what is too deep, too much (once aliases are followed), or no plain value."""
    _Walk().through(value, _DEPTH)


class _Walk:
    def __init__(self) -> None:
        self._left = _VALUES
        self._characters = _CHARACTERS

    def through(self, value: object, depth: int) -> None:
        self._left -= 1
        if self._left < 0:
            raise InvalidError(f"the job has more than {_VALUES} values, aliases followed")
        if depth == 0:
            raise InvalidError(f"the job is nested more than {_DEPTH} levels deep")
        if isinstance(value, Mapping):
            for key, inner in value.items():
                self.through(key, depth - 1)
                self.through(inner, depth - 1)
        elif isinstance(value, list):
            for inner in value:
                self.through(inner, depth - 1)
        else:
            _check_scalar(value)
            self._count(value)

    def _count(self, value: object) -> None:
        self._characters -= len(value) if isinstance(value, str) else 0
        if self._characters < 0:
            raise InvalidError(f"the job has more than {_CHARACTERS} characters, aliases followed")


def _check_scalar(value: object) -> None:
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, int):
        if abs(value) >= _HUGE:
            raise InvalidError("the job has a number in it that is too large: write it as text")
    elif value is not None and not isinstance(value, float):
        raise InvalidError(f"the job has a value in it that is no plain one ({kind(value)}): write it as text")


def _check_text(value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidError("the job has a text in it that is not valid UTF-8") from None
    if "\0" in value:
        raise InvalidError(f"the job has a NUL byte in {shown(value)}")
