"""Arguments in our voice: an error says what is wrong and the nearest thing that is right, and exits with 2."""

from __future__ import annotations

import argparse
import os
import re
import shlex
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

Setup = Callable[["Parser"], None]

FORMATS = ("table", "wide", "json", "yaml", "name")
_NEGATIVE = re.compile(r"-\d+(\.\d*)?")
_NOT_A_CHOICE = re.compile(
    r"argument (?P<what>[^:]+): invalid (?:choice|\w+ value): '?(?P<word>.*?)'?(?: \(choose from .*)?"
)
_MESSAGES = (
    (re.compile(r"the following arguments are required: (.*)"), r"\1 is missing"),
    (re.compile(r"one of the arguments (.*) is required"), r"one of \1 is missing"),
    (re.compile(r"argument ([^:]+): expected one argument"), r"\1 needs a value"),
    (re.compile(r"argument ([^:]+): expected at least one argument"), r"\1 needs a value"),
    (re.compile(r"argument ([^:]+): invalid (?:int|count) value: (.*)"), r"\1: \2 is not a whole number"),
    (re.compile(r"argument ([^:]+): invalid \w+ value: (.*)"), r"\1: \2 is not a number"),
    (re.compile(r"argument ([^:]+): ignored explicit argument (.*)"), r"\1 takes no value"),
    (re.compile(r"argument ([^:]+): (.*)"), r"\1: \2"),
)
_OTHER_TOOLS = {
    "ps": "ls",
    "list": "ls",
    "jobs": "ls",
    "describe": "show",
    "stop": "kill",
    "cancel": "kill",
    "download": "cp",
    "start": "up",
    "whoami": "config",
}
_OTHER_ACTIONS = {
    "delete": ("disable", "revoke", "remove"),
    "remove": ("disable", "revoke"),
    "rm": ("disable", "revoke", "remove"),
    "ls": ("list",),
    "new": ("add", "create"),
    "create": ("add",),
    "add": ("create",),
}


class UsageError(Exception):
    """What was typed cannot be meant; `program` is whose --help tells more."""

    def __init__(self, message: str, program: str) -> None:
        super().__init__(message)
        self.message = message
        self.program = program


class _Help(argparse.RawDescriptionHelpFormatter):
    """Names such as paddle-cluster-job stay whole at the end of a line."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        import textwrap  # as argparse itself: most commands print no help

        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)


class Parser(argparse.ArgumentParser):
    """`command` is what followed a `--`, for verbs that take one."""

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("formatter_class", _Help)
        super().__init__(allow_abbrev=False, **settings)
        self.takes_command = False
        self.in_full: Callable[[Sequence[str]], list[str]] = list  # what was typed, with what a verb lets be left out
        self._branches: dict[str, Parser] = {}

    def read(self, argv: Sequence[str]) -> argparse.Namespace:
        """The arguments; unlike argparse's own, `--` ends them whatever stands before it."""
        given, command = self.in_full(argv), None
        if given and given[0] in self._branches:
            return self._branches[given[0]].read(given[1:])
        if "--" in given:
            at = given.index("--")
            given, command = given[:at], given[at + 1 :]
            if not self.takes_command:
                self.error(f"takes no command after `--`: {' '.join(command)!r}")
        elif self.takes_command:
            self._refuse_bare_command(given)
        if not self._branches:
            self._refuse_misunderstood(given)
        found, rest = self.parse_known_args(given)
        if rest:
            self.error(self._unknown(rest[0]))
        found.command = command
        return found

    def add_argument(self, *names: Any, **settings: Any) -> argparse.Action:
        if names and not names[0].startswith("-"):
            settings.setdefault("metavar", names[0].upper())
        return super().add_argument(*names, **settings)

    def error(self, message: str) -> NoReturn:
        raise UsageError(self._in_our_voice(message), self.prog)

    def actions(self) -> list[argparse.Action]:
        """What it takes, for completion and the reference."""
        return [action for action in self._actions if action.help is not argparse.SUPPRESS]

    def options(self) -> list[str]:
        return [name for action in self.actions() for name in action.option_strings]

    def branches(self) -> dict[str, Parser]:
        """Its sub-commands, such as `user add`."""
        return dict(self._branches)

    def branch(self, setups: dict[str, tuple[str, Setup]], metavar: str = "ACTION") -> None:
        """Give it sub-commands, each with its line of help."""
        below = self.add_subparsers(dest="action", metavar=metavar, required=True, parser_class=Parser)
        for name, (line, setup) in setups.items():
            self._branches[name] = below.add_parser(name, help=line, description=line)
            setup(self._branches[name])

    def _refuse_bare_command(self, given: list[str]) -> None:
        """A command that was written without the dashes before it."""
        _, rest = self.parse_known_args(given)
        if rest and not rest[0].startswith("-"):
            at = max(number for number in range(len(given)) if _in_order(rest, given[number:]))
            words = shlex.join([*self.prog.split(), *given[:at], "--", *given[at:]])
            self.error(f"write the command after --: {words}")

    def _refuse_misunderstood(self, given: Sequence[str]) -> None:
        """Before argparse looks: it would first complain of what is missing, which is often what was misspelt."""
        words = iter(given)
        may_be_value = False
        for word in words:
            name, equals, _ = word.partition("=")
            if may_be_value and not word.startswith("-"):
                may_be_value = False
            elif (option := self._option_string_actions.get(name)) is not None:
                may_be_value = option.nargs == "?" and not equals
                if option.nargs not in (0, "?") and not equals:
                    next(words, None)
            elif wrong := self._misunderstood(word):
                self.error(wrong)

    def _misunderstood(self, word: str) -> str:
        """What is wrong with a word that is no option of ours; "" where it may be an argument."""
        known = self._option_string_actions
        if word.startswith("-") and f"-{word.partition('=')[0]}" in known:
            return f"{word.partition('=')[0]} is not an option; did you mean '-{word}'?"
        if word == "-" or word[:2] in known or _NEGATIVE.fullmatch(word):
            return ""
        if word.startswith("-"):
            return self._unknown(word)
        if f"--{word.partition('=')[0]}" in known and "=" in word:
            return f"{word!r} is not understood; did you mean '--{word}'?"
        return "" if any(not action.option_strings for action in self._actions) else self._unknown(word)

    def _unknown(self, word: str) -> str:
        if not word.startswith("-"):
            return f"{word!r} is one argument too many{self._as_job(word)}"
        name = word.partition("=")[0]
        return f"{name} is not an option{_nearest(name, self.options())}"

    def _as_job(self, word: str) -> str:
        wanted = [action for action in self._actions if action.required and action.metavar == "JOB"]
        names = [action.option_strings[0] for action in wanted if action.option_strings]
        return f"; did you mean '{names[0]}={word}'?" if names else ""

    def _in_our_voice(self, message: str) -> str:
        found = _NOT_A_CHOICE.fullmatch(message)
        if found and (known := self._choices(found["what"])):
            return f"{found['what']}: {found['word']!r} is not known{self._meant(found['word'], known)}"
        for pattern, ours in _MESSAGES:
            if pattern.fullmatch(message):
                return pattern.sub(ours, message)
        return message

    def _meant(self, word: str, known: Sequence[str]) -> str:
        ours = [name for name in _OTHER_ACTIONS.get(word, ()) if name in self._branches]
        return f"; did you mean {ours[0]!r}?" if ours else _nearest(word, known)

    def _choices(self, what: str) -> list[str]:
        return [
            str(choice)
            for action in self._actions
            if what in ("/".join(action.option_strings), action.metavar)
            for choice in action.choices or ()
        ]


def add_job(parser: Parser) -> None:
    parser.add_argument(
        "job", nargs="?", metavar="JOB", help="id, the beginning of one (4 digits or more), or a name (your last job)"
    )


def add_output(parser: Parser) -> None:
    parser.add_argument(
        "-o", "--output", choices=FORMATS, default="table", metavar="FORMAT", help="table, wide, json, yaml or name"
    )
    parser.add_argument("--json", dest="output", action="store_const", const="json", help="the same as -o json")


def count(text: str) -> int:
    """A type of argument: how many, none included."""
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is too few: write 0 or more")
    return number


def path(text: str) -> str:
    """A type of argument: a path, of which a shell leaves the `~` in `--files=~/job` to us."""
    return os.path.expanduser(text)


def new_folder(text: str) -> str:
    """A type of argument: the path of a folder to be made."""
    if not text:
        raise argparse.ArgumentTypeError("the name is empty: write that of a new folder, such as output")
    return path(text)


def option_before_verb(word: str, behind: Sequence[str], known: Sequence[str]) -> UsageError:
    verb = next((other for other in behind if other in known), None)
    hint = f"paddlecloud {verb} …" if verb else "paddlecloud help lists them"
    return UsageError(f"{word!r} stands where the command goes, which comes first: {hint}", "paddlecloud")


def unknown_verb(word: str, known: Sequence[str]) -> UsageError:
    ours = _OTHER_TOOLS.get(word)
    hint = f"; did you mean {ours!r}?" if ours else _nearest(word, known)
    return UsageError(f"{word!r} is not a command{hint}", "paddlecloud")


def _in_order(few: Sequence[str], many: Sequence[str]) -> bool:
    """Whether all of `few` are in `many`, in this order."""
    left = iter(many)
    return all(word in left for word in few)


def _nearest(word: str, known: Sequence[str]) -> str:
    import difflib

    # Without their dashes, which would make any two options alike; of `-name` and `--name` the one with as many dashes.
    typed = word.lstrip("-")
    dashes = len(word) - len(typed)
    alike = sorted(known, key=lambda name: len(name) - len(name.lstrip("-")) == dashes)
    bare = {name.lstrip("-"): name for name in alike}
    parts = [name for name in bare if any(part.startswith(typed) for part in re.split("[-_]", name))]
    near = difflib.get_close_matches(typed, bare, n=1) or (parts if len(parts) == 1 else [])
    if near:
        return f"; did you mean {bare[near[0]]!r}?"
    return f"; known are {', '.join(known)}" if len(known) <= 12 else ""
