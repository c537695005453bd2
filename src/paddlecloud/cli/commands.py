"""The verbs commands and flags, which seed 001's client had beside help: every name, and every flag of one."""

from __future__ import annotations

from argparse import Action, Namespace
from collections.abc import Iterator, Mapping

from paddlecloud.cli import shell, verbs
from paddlecloud.cli.parser import Parser, Setup, unknown_verb

_TOP = (
    "  -h, --help",
    "        tell more: paddlecloud help VERB",
    "  -V, --version",
    "        the version of this program",
)


def commands(parser: Parser) -> None:
    parser.set_defaults(run=_commands)


def flags(parser: Parser) -> None:
    parser.add_argument("verb", nargs="?", metavar="VERB", help="of this command; left out: those before any command")
    parser.add_argument("action", nargs="?", metavar="ACTION", help="of this part of it, such as `flags user add`")
    parser.set_defaults(run=_flags)


VERBS: Mapping[str, Setup] = {"commands": commands, "flags": flags}


def _commands(_: Namespace) -> None:
    shell.say(*_known())


def _flags(args: Namespace) -> None:
    if args.verb is None:
        shell.say(*_TOP, "", "paddlecloud flags VERB tells those of a command")
        return
    if args.verb not in verbs.VERBS:
        raise unknown_verb(args.verb, _known())
    parser = verbs.parser(verbs.VERBS[args.verb])
    branches = parser.branches()
    if args.action in branches:
        branches = {args.action: branches[args.action]}
    elif args.action is not None:
        parser.error(f"{args.action!r} is not known{'; known are ' + ', '.join(branches) if branches else ''}")
    for part in branches.values() or [parser]:
        if branches:
            shell.say(f"{part.prog}:")
        shell.say(*_described(part))


def _described(parser: Parser) -> Iterator[str]:
    """As Go's flag package has it: the flag and its value, and what it is for on the next line."""
    for action in parser.actions():
        if action.option_strings:
            yield f"  {', '.join(action.option_strings)}{_value(action)}"
            yield f"        {action.help or ''}".rstrip()


def _value(action: Action) -> str:
    if action.nargs == 0:
        return ""
    return f" {action.metavar or '|'.join(map(str, action.choices or ())) or action.dest.upper()}"


def _known() -> list[str]:
    return sorted([*(name for name, verb in verbs.VERBS.items() if verb.group), "help", "commands", "flags"])
