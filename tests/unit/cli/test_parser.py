"""Arguments and the voice of their errors."""

from __future__ import annotations

import pytest

from paddlecloud.cli import verbs
from paddlecloud.cli.parser import UsageError, unknown_verb


def error(verb: str, *words: str) -> str:
    with pytest.raises(UsageError) as caught:
        verbs.parser(verbs.VERBS[verb]).read(words)
    return caught.value.message


@pytest.mark.parametrize("verb", verbs.VERBS)
def test_every_verb_has_a_parser_that_knows_what_to_run_and_says_what_each_option_is(verb: str) -> None:
    made = verbs.parser(verbs.VERBS[verb])
    leaves = made.branches().values() or [made]
    for leaf in leaves:
        assert callable(leaf.get_default("run"))
        assert [action.dest for action in leaf.actions() if action.option_strings and not action.help] == []


def test_what_follows_two_dashes_is_the_command_whatever_it_looks_like() -> None:
    made = verbs.parser(verbs.VERBS["submit"])
    found = made.read(["--nodes", "2", "job", "--", "python", "train.py", "--nodes", "9", "--", "x"])
    assert (found.nodes, found.folder) == (2, "job")
    assert found.command == ["python", "train.py", "--nodes", "9", "--", "x"]
    assert made.read(["job"]).command is None


def test_a_verb_that_takes_no_command_says_so() -> None:
    assert "takes no command" in error("ls", "--", "sh", "run.sh")


@pytest.mark.parametrize(
    ("verb", "words", "says"),
    [
        ("ls", ["--limt", "3"], "--limt is not an option; did you mean '--limit'?"),
        ("ls", ["-o", "jsn"], "-o/--output: 'jsn' is not known; did you mean 'json'?"),
        ("show", [], "JOB is missing"),
        ("show", ["a", "b"], "'b' is one argument too many"),
        ("user", ["ad", "bob"], "ACTION: 'ad' is not known; did you mean 'add'?"),
        ("user", ["add", "bob", "--rol", "admin"], "--rol"),
        ("wait", ["x", "--exit-code", "jop"], "--exit-code: 'jop' is not known; did you mean 'job'?"),
        ("logs", ["x", "--tail", "many"], "--tail/-n: 'many' is not a number"),
    ],
)
def test_an_error_says_what_is_wrong_and_the_nearest_thing_that_is_right(
    verb: str, words: list[str], says: str
) -> None:
    assert says in error(verb, *words)


def test_a_misspelt_verb_gets_the_nearest_one() -> None:
    assert unknown_verb("sumbit", list(verbs.VERBS)).message == "'sumbit' is not a command; did you mean 'submit'?"


def test_an_abbreviated_option_is_not_guessed() -> None:
    assert "--lim is not an option" in error("ls", "--lim", "3")


def test_the_overview_has_every_public_verb_once() -> None:
    text = verbs.overview()
    lines = [line.split()[0] for line in text.splitlines() if line.startswith("  ")]
    assert sorted(lines) == sorted(name for name, verb in verbs.VERBS.items() if verb.group)
