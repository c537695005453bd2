"""Escapes what a terminal would act on instead of showing it: control characters, bidi overrides, lone surrogates.

Names of files come from jobs and from other users. One with an escape sequence in it could set the terminal's title,
hide a line, or make a listing read as another one.
"""

from __future__ import annotations

import re

_BIDI_AND_LINES = "\u2028-\u202e\u2066-\u2069"  # U+2028 and U+2029 end a line
_UNSAFE = re.compile(f"[\x00-\x1f\x7f-\x9f{_BIDI_AND_LINES}\ud800-\udfff]")
_UNSAFE_IN_LINES = re.compile(f"[\x00-\x08\x0a-\x1f\x7f-\x9f{_BIDI_AND_LINES}\ud800-\udfff]")
_UNSAFE_IN_JSON = re.compile(f"[\x7f-\x9f{_BIDI_AND_LINES}\ud800-\udfff]")
_COLOUR = re.compile(r"(\x1b\[[0-9;]*m)")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str) -> str:
    r"""A name, or another text of somebody else's, within a line: `\x1b`, `\n` and `\u202e` for what is unsafe."""
    return text if text.isprintable() else _UNSAFE.sub(_escape, text)


def printable_line(line: str, *, coloured: bool = False) -> str:
    """A whole line, which may have tabs between its parts; `coloured`: and our own colours."""
    if line.isprintable():
        return line
    if not coloured:
        return _UNSAFE_IN_LINES.sub(_escape, line)
    parts = _COLOUR.split(line)  # every second one is a colour
    return "".join(part if number % 2 else _UNSAFE_IN_LINES.sub(_escape, part) for number, part in enumerate(parts))


def printable_json(text: str) -> str:
    r"""JSON, or YAML whose unsafe texts are in double quotes, of the same meaning: `\u202e` for what is unsafe."""
    return _UNSAFE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def is_unsafe(text: str) -> bool:
    return not text.isprintable() and _UNSAFE.search(text) is not None


def log_line(line: str) -> str:
    """A line of a task's log among our own lines: without its colours, which would be noise when escaped."""
    return printable(_COLOUR.sub("", line).expandtabs())


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    code = ord(character)
    return _SHORT.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
