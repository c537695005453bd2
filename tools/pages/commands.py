"""docs/reference/commands.md: every command and its options, from cli/verbs.py and the parsers that it leads to."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from paddlecloud.cli import exits, verbs
from paddlecloud.cli.parser import Parser
from paddlecloud.cli.verbs import VERBS, Verb
from tools.pages.markdown import code, document, table

INTRODUCTION = """
`paddlecloud help VERB` prints the same. Data goes to stdout, talk to stderr. [The users' guide](../use.md) shows them
at work.
"""

EXITS = {
    0: "done; of a job: it succeeded",
    exits.OTHER: "something else went wrong",
    exits.USAGE: "what was typed is wrong",
    exits.NOT_ALLOWED: "not allowed, or not known who asks",
    exits.UNREACHABLE: "the server does not answer",
    exits.JOB_FAILED: "the job failed",
    exits.NOT_FINISHED: "the job has not finished",
    exits.NOT_FOUND: "no such job, file or user, or not yours",
    exits.KILLED: "the job was killed",
    exits.TIMED_OUT: "the job ran out of time, or waited too long",
}


def page() -> str:
    groups = dict.fromkeys(verb.group for verb in VERBS.values() if verb.group)
    parts = [part for group in groups for part in (f"## {group}", *_group(group))]
    codes = [(str(number), meaning) for number, meaning in EXITS.items()]
    parts += ["## Exit codes", table(("code", "meaning"), codes)]
    return document("Commands", "src/paddlecloud/cli/", INTRODUCTION, *parts)


def _group(group: str) -> Iterator[str]:
    for verb in VERBS.values():
        if verb.group == group:
            yield from _verb(verb)


def _verb(verb: Verb) -> Iterator[str]:
    parser = verbs.parser(verb)
    yield f"### {verb.name}\n{_sentence(verb.line)}"
    branches = parser.branches()
    if not branches:
        yield from _usage(parser)
    for branch in branches.values():
        yield f"**{branch.prog.removeprefix('paddlecloud ')}**: {_sentence(branch.description or '')}"
        yield from _usage(branch)


def _usage(parser: Parser) -> Iterator[str]:
    rows = [
        (_called(action), " ".join((action.help or "").split())) for action in parser.actions() if action.dest != "help"
    ]
    if rows:
        yield table(("argument", "meaning"), rows)


def _called(action: argparse.Action) -> str:
    value = action.metavar if isinstance(action.metavar, str) else None
    if not action.option_strings:
        return code(value or action.dest.upper())
    if action.nargs == 0:
        return ", ".join(code(name) for name in action.option_strings)
    if action.dest == "output":
        value = "FORMAT"
    choices = ",".join(map(str, action.choices)) if action.choices else ""
    shown = value or (f"{{{choices}}}" if choices else action.dest.upper())
    return ", ".join(code(f"{name} {shown}") for name in action.option_strings)


def _sentence(line: str) -> str:
    """A verb's line of help as a sentence; an example at its end is set as code."""
    says, colon, example = line.partition(": --")
    text = f"{says[:1].upper()}{says[1:]}"
    return f"{text}: {code('--' + example)}" if colon else f"{text}."
