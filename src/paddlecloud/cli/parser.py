"""Arguments in our voice: an error says what is wrong and the nearest thing that is right, and exits with 2."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

Setup = Callable[["Parser"], None]

FORMATS = ("table", "wide", "json", "yaml", "name")
_INVALID_CHOICE = re.compile(
    r"argument (?P<what>[^:]+): invalid choice: '?(?P<word>.*?)'? \(choose from (?P<known>.*)\)"
)
_MESSAGES = (
    (re.compile(r"the following arguments are required: (.*)"), r"\1 is missing"),
    (re.compile(r"one of the arguments (.*) is required"), r"one of \1 is missing"),
    (re.compile(r"argument ([^:]+): expected one argument"), r"\1 needs a value"),
    (re.compile(r"argument ([^:]+): expected at least one argument"), r"\1 needs a value"),
    (re.compile(r"argument ([^:]+): invalid (\w+) value: (.*)"), r"\1: \3 is not a number"),
    (re.compile(r"argument ([^:]+): ignored explicit argument (.*)"), r"\1 takes no value"),
    (re.compile(r"argument ([^:]+): (.*)"), r"\1: \2"),
)


class UsageError(Exception):
    """What was typed cannot be meant; `program` is whose --help tells more."""

    def __init__(self, message: str, program: str) -> None:
        super().__init__(message)
        self.message = message
        self.program = program


class Parser(argparse.ArgumentParser):
    """`command` is what followed a `--`, for verbs that take one."""

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **settings)
        self.takes_command = False
        self._branches: dict[str, Parser] = {}

    def read(self, argv: Sequence[str]) -> argparse.Namespace:
        """The arguments; unlike argparse's own, `--` ends them whatever stands before it."""
        given, command = list(argv), None
        if "--" in given:
            at = given.index("--")
            given, command = given[:at], given[at + 1 :]
            if not self.takes_command:
                self.error(f"takes no command after `--`: {' '.join(command)!r}")
        self._refuse_unknown_options(given)
        found, rest = self.parse_known_args(given)
        if rest:
            self.error(self._unknown(rest[0]))
        found.command = command
        return found

    def error(self, message: str) -> NoReturn:
        raise UsageError(_in_our_voice(message), self.prog)

    def actions(self) -> list[argparse.Action]:
        """What it takes, for completion and the reference."""
        return [action for action in self._actions if action.help is not argparse.SUPPRESS]

    def options(self) -> list[str]:
        return [name for action in self.actions() for name in action.option_strings]

    def branches(self) -> dict[str, Parser]:
        """Its sub-commands, such as `user add`."""
        return dict(self._branches)

    def branch(self, setups: dict[str, tuple[str, Setup]]) -> None:
        """Give it sub-commands, each with its line of help."""
        below = self.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=Parser)
        for name, (line, setup) in setups.items():
            self._branches[name] = below.add_parser(name, help=line, description=line)
            setup(self._branches[name])

    def _refuse_unknown_options(self, given: Sequence[str]) -> None:
        """Before argparse looks: it would first complain of what is missing, which is often what was misspelt."""
        for word in () if self._branches else given:
            if word.startswith("--") and word.partition("=")[0] not in self._option_string_actions:
                self.error(self._unknown(word))

    def _unknown(self, word: str) -> str:
        if not word.startswith("-"):
            return f"{word!r} is one argument too many"
        name = word.partition("=")[0]
        return f"{name} is not an option{_nearest(name, self.options())}"


def add_output(parser: Parser) -> None:
    parser.add_argument("-o", "--output", choices=FORMATS, default="table", help="table, wide, json, yaml or name")
    parser.add_argument("--json", dest="output", action="store_const", const="json", help="the same as -o json")


def unknown_verb(word: str, known: Sequence[str]) -> UsageError:
    return UsageError(f"{word!r} is not a command{_nearest(word, known)}", "paddlecloud")


def _in_our_voice(message: str) -> str:
    if found := _INVALID_CHOICE.fullmatch(message):
        known = [word.strip(" '") for word in found["known"].split(",")]
        return f"{found['what']}: {found['word']!r} is not known{_nearest(found['word'], known)}"
    for pattern, ours in _MESSAGES:
        if pattern.fullmatch(message):
            return pattern.sub(ours, message)
    return message


def _nearest(word: str, known: Sequence[str]) -> str:
    import difflib

    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; known are {', '.join(known)}" if len(known) <= 12 else ""
