"""The verbs commands and flags, and help of what is below a verb."""

from __future__ import annotations

import pytest

from paddlecloud.cli import verbs
from tests.unit.cli.command import Command


def test_commands_lists_every_name_of_the_overview_one_on_each_line(alone: Command) -> None:
    listed = alone.out("commands").splitlines()
    assert listed == sorted(listed)
    assert set(listed) == {name for name, verb in verbs.VERBS.items() if verb.group} | {"help", "commands", "flags"}
    assert "known_jobs" not in listed


def test_neither_stands_in_the_overview(alone: Command) -> None:
    words = [line.split()[0] for line in alone.out().splitlines() if line.startswith("  ")]
    assert "submit" in words
    assert {"commands", "flags"} & set(words) == set()


def test_flags_tells_those_of_a_verb_with_their_values(alone: Command) -> None:
    said = alone.out("flags", "submit")
    assert "  -parallelism N\n        number of trainers, 1 or more (1)\n" in said
    assert "  -faulttolerant\n" in said
    assert "min_instance" not in said, "what help leaves out is left out here"
    assert "--version" in alone.out("flags")


def test_flags_of_a_verb_with_parts_are_told_for_each_or_for_one(alone: Command) -> None:
    assert alone.out("flags", "user", "add").startswith("paddlecloud user add:\n")
    assert "paddlecloud user quota:\n" in alone.out("flags", "user")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("sumbit",), "'sumbit' is not a command; did you mean 'submit'?"),
        (("get", "job"), "'job' is not known; known are jobs, workers, quota, registry"),
        (("ls", "x"), "'x' is not known"),
    ],
)
def test_flags_of_what_is_not_there_are_refused(alone: Command, words: tuple[str, ...], said: str) -> None:
    assert said in alone.type("flags", *words, code=2).stderr


def test_help_goes_on_to_what_is_below_a_verb(alone: Command) -> None:
    assert alone.out("help", "get", "workers") == alone.out("get", "workers", "--help")


def test_help_breaks_no_name_at_its_hyphens(alone: Command) -> None:
    alone.variables["COLUMNS"] = "55"
    assert "paddle-cluster-job" in alone.out("help", "submit")
