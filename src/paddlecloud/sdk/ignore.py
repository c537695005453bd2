"""Which files stay behind: gitignore's rules as git itself applies them.

A rule is about the very path it matches: `!lib` takes back `lib`, not a `build/` inside of it. The libraries that
were looked at get that wrong, so the rules are read here; the tests compare with git.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_CLASSES = {
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "alnum": "a-zA-Z0-9",
    "lower": "a-z",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
    "space": r" \t\n\r\f\v",
    "blank": r" \t",
    "punct": r"!-/:-@\[-`{-~",
}
_WILD = frozenset("*?[")
_CLASS = re.compile(r"\[:([a-z]+):\]")


@dataclass(frozen=True, slots=True)
class Rule:
    pattern: re.Pattern[str]
    ignores: bool  # False: a rule with `!`, which takes back
    folders_only: bool
    literal: bool  # without wildcards: it names what it is about

    def matches(self, path: str, is_folder: bool) -> bool:
        return (is_folder or not self.folders_only) and self.pattern.fullmatch(path) is not None


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one ignore file; they are about the paths below the folder that it lies in."""

    folder: str  # "" or "a/b/"
    rules: tuple[Rule, ...]

    def deciding(self, path: str, is_folder: bool) -> Rule | None:
        """The last rule that matches the path, which is the one that counts."""
        below = _bytewise(path[len(self.folder) :])
        return next((rule for rule in reversed(self.rules) if rule.matches(below, is_folder)), None)


def read_rules(text: str, folder: str = "") -> Rules:
    lines = text.removeprefix("\ufeff").split("\n")
    rules = (_rule(_bytewise(line.removesuffix("\r"))) for line in lines)
    return Rules(folder, tuple(rule for rule in rules if rule is not None))


def deciding(chain: Sequence[Rules], path: str, is_folder: bool) -> Rule | None:
    """The rule that counts among several ignore files, outermost first: the innermost that has one."""
    found = (rules.deciding(path, is_folder) for rules in reversed(chain))
    return next((rule for rule in found if rule is not None), None)


def _bytewise(text: str) -> str:
    """A character for each byte: to git a `?` is one byte."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("latin-1")


def _rule(line: str) -> Rule | None:
    line = _without_trailing_spaces(line)
    if not line or line.startswith("#"):
        return None
    ignores = not line.startswith("!")
    line = line if ignores else line[1:]
    folders_only = line.endswith("/")
    line = line.removesuffix("/")
    # A slash within ties the pattern to the ignore file's own folder.
    anywhere = "" if "/" in line else "(?:.*/)?"
    try:
        pattern = re.compile(anywhere + _translate(line.removeprefix("/")), re.DOTALL)
    except (ValueError, KeyError):
        return None  # git, too, matches nothing by a broken pattern
    return Rule(pattern, ignores, folders_only, literal=not _WILD & set(line)) if line else None


def _without_trailing_spaces(line: str) -> str:
    stripped = line.rstrip(" ")
    backslashes = len(stripped) - len(stripped.rstrip("\\"))
    return stripped + " " if backslashes % 2 and len(stripped) < len(line) else stripped


def _translate(pattern: str) -> str:
    """The pattern as a regular expression; ValueError or KeyError for one that matches nothing."""
    translated, at = "", 0
    while at < len(pattern):
        character = pattern[at]
        if character == "*":
            piece, at = _stars(pattern, at)
        elif character == "[":
            piece, at = _brackets(pattern, at)
        elif character == "?":
            piece, at = "[^/]", at + 1
        elif character == "\\":
            if at + 1 == len(pattern):
                raise ValueError("nothing follows the backslash")
            piece, at = re.escape(pattern[at + 1]), at + 2
        else:
            piece, at = re.escape(character), at + 1
        translated += piece
    return translated


def _stars(pattern: str, at: int) -> tuple[str, int]:
    end = at
    while end < len(pattern) and pattern[end] == "*":
        end += 1
    begins_part = at == 0 or pattern[at - 1] == "/"
    if end - at < 2 or not begins_part or pattern[end : end + 1] not in ("", "/"):
        return "[^/]*", end
    return (".+", end) if end == len(pattern) else ("(?:.*/)?", end + 1)


def _brackets(pattern: str, at: int) -> tuple[str, int]:
    at += 1
    negated = pattern[at : at + 1] in ("!", "^")
    at += negated
    inside, last = "", ""  # `last` may begin a range
    while not inside or pattern[at : at + 1] != "]":
        if named := _CLASS.match(pattern, at):
            piece, last, at = _CLASSES[named[1]], "", named.end()
        elif last and pattern.startswith("-", at) and pattern[at + 1 : at + 2] not in ("", "]"):
            end, at = _character(pattern, at + 1)
            # A range that runs backwards is empty; its first character was taken in already.
            piece, last = (f"{re.escape(last)}-{re.escape(end)}" if last <= end else ""), ""
        else:
            last, at = _character(pattern, at)
            piece = re.escape(last)
        inside += piece
    return f"(?!/)[{'^' if negated else ''}{inside}]", at + 1


def _character(pattern: str, at: int) -> tuple[str, int]:
    at += pattern[at : at + 1] == "\\"
    if at >= len(pattern):
        raise ValueError("the bracket is not closed")
    return pattern[at], at + 1
