"""Arguments and the voice of their errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlecloud.cli import verbs
from paddlecloud.cli.parser import UsageError, option_before_verb, unknown_verb


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
        ("kill", [], "JOB is missing"),
        ("show", ["a", "b"], "'b' is one argument too many"),
        ("user", ["disable"], "NAME is missing"),
        ("user", ["add", "bob", "--role", "adm"], "--role: 'adm' is not known; did you mean 'admin'?"),
        ("user", ["add", "bob", "--role", "xyz"], "--role: 'xyz' is not known; known are admin, user"),
        ("completion", [], "SHELL is missing"),
        ("ls", ["-n", "-1"], "-n/--limit: '-1' is too few: write 0 or more"),
        ("ls", ["-n", "x"], "-n/--limit: 'x' is not a whole number"),
        ("submit_job", ["--instance_count=1.5"], "--instance_count: '1.5' is not a whole number"),
        ("run", ["job", "--cpus", "x"], "--cpus: 'x' is not a number"),
        ("ls", ["-name", "x"], "-name is not an option; did you mean '--name'?"),
        ("ls", ["-x"], "-x is not an option"),
        ("user", ["ad", "bob"], "ACTION: 'ad' is not known; did you mean 'add'?"),
        ("user", ["add", "bob", "--rol", "admin"], "--rol"),
        ("wait", ["x", "--exit-code", "jop"], "--exit-code: 'jop' is not known; did you mean 'job'?"),
        ("logs", ["x", "--tail", "many"], "--tail/-n: 'many' is not a whole number"),
        ("user", ["delete", "chen"], "ACTION: 'delete' is not known; did you mean 'disable'?"),
        ("user", ["rm", "chen"], "did you mean 'disable'?"),
        ("key", ["remove", "x"], "did you mean 'revoke'?"),
        ("token", ["add", "x"], "did you mean 'create'?"),
        ("query_job", ["--job_id=x", "--json"], "--json is not an option; known are -h, --help, --job_id"),
        ("get_files", ["--job_id=x", "--download_dir="], "--download_dir: the name is empty: write that of a new"),
        ("cp", ["x", ""], "TARGET: the name is empty"),
        ("run", ["job", "--download-dir", ""], "--download-dir: the name is empty"),
    ],
)
def test_an_error_says_what_is_wrong_and_the_nearest_thing_that_is_right(
    verb: str, words: list[str], says: str
) -> None:
    assert says in error(verb, *words)


@pytest.mark.parametrize("word", ["2", "yes"])
def test_a_flag_that_is_neither_0_nor_1_is_refused_in_one_manner(word: str) -> None:
    said = error("submit_job", "--files=job", "--start_cmd=x", f"--public_bcc={word}")
    assert said == f"--public_bcc: {word!r} is not known; known are 0, 1"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["job", "sh", "run.sh"], "write the command after --: paddlecloud run job -- sh run.sh"),
        (["--nodes", "2", "job", "sh", "a b"], "write the command after --: paddlecloud run --nodes 2 job -- sh 'a b'"),
        (["sh", "sh", "run.sh"], "write the command after --: paddlecloud run sh -- sh run.sh"),
        (["job", "sh", "run.sh", "--lr", "3"], "paddlecloud run job -- sh run.sh --lr 3"),
        (["job", "--lr", "3"], "--lr is not an option"),
    ],
)
def test_a_command_without_its_dashes_is_told_where_they_go(words: list[str], says: str) -> None:
    assert says in error("run", *words)


@pytest.mark.parametrize(
    ("verb", "words", "says"),
    [
        ("submit_job", ["-files=job"], "-files is not an option; did you mean '--files=job'?"),
        ("submit_job", ["files=job"], "'files=job' is not understood; did you mean '--files=job'?"),
        ("query_job", ["job-1"], "'job-1' is one argument too many; did you mean '--job_id=job-1'?"),
        ("query_job", ["job_id=job-1"], "did you mean '--job_id=job-1'?"),
    ],
)
def test_the_word_that_is_not_understood_is_named_before_what_is_missing(
    verb: str, words: list[str], says: str
) -> None:
    assert error(verb, *words).endswith(says)


def test_values_that_look_like_options_or_settings_are_still_values() -> None:
    read = verbs.parser(verbs.VERBS["submit"]).read
    assert read(["--env", "name=x", "--priority", "-5", "job"]).env == ["name=x"]
    assert verbs.parser(verbs.VERBS["login"]).read(["--token", "-"]).token == "-"
    assert verbs.parser(verbs.VERBS["ls"]).read(["-n5"]).limit == 5


@pytest.mark.parametrize(("word", "ours"), [("ps", "ls"), ("list", "ls"), ("stop", "kill"), ("describe", "show")])
def test_a_verb_of_other_tools_leads_to_ours(word: str, ours: str) -> None:
    assert unknown_verb(word, list(verbs.VERBS)).message == f"{word!r} is not a command; did you mean {ours!r}?"


def test_a_misspelt_verb_gets_the_nearest_one() -> None:
    assert unknown_verb("sumbit", list(verbs.VERBS)).message == "'sumbit' is not a command; did you mean 'submit'?"


def test_an_option_before_the_verb_is_told_that_the_verb_comes_first() -> None:
    known = list(verbs.VERBS)
    said = option_before_verb("-files=job", ["submit_job"], known).message
    assert said == "'-files=job' stands where the command goes, which comes first: paddlecloud submit_job …"
    assert option_before_verb("--verbose", [], known).message.endswith("comes first: paddlecloud help lists them")


@pytest.mark.parametrize(
    ("verb", "words", "name"),
    [
        ("submit_job", ["--files=~/job", "--start_cmd=x"], "files"),
        ("submit_job", ["--file=~/job", "--start_cmd=x"], "files"),
        ("get_files", ["--job_id=x", "--download_dir=~/job"], "download_dir"),
        ("run", ["~/job"], "folder"),
        ("run", ["--download-dir=~/job", "."], "download_dir"),
        ("submit", ["--file=~/job"], "file"),
        ("cp", ["x", "~/job"], "target"),
        ("login", ["--ca=~/job"], "ca"),
        ("gen_token", ["--email=x", "--ca=~/job"], "ca"),
        ("serve", ["--config=~/job"], "config"),
        ("doctor", ["--config=~/job"], "config"),
        ("config", ["--config=~/job"], "config"),
        ("db", ["status", "--config=~/job"], "config"),
        ("db", ["backup", "~/job"], "file"),
        ("db", ["restore", "~/job"], "file"),
    ],
)
def test_the_home_folder_is_understood_where_the_shell_leaves_it_as_it_is(
    verb: str, words: list[str], name: str
) -> None:
    read = verbs.parser(verbs.VERBS[verb]).read(words)
    assert getattr(read, name) == str(Path.home() / "job")


def test_an_abbreviated_option_is_not_guessed() -> None:
    assert "--lim is not an option" in error("ls", "--lim", "3")


def test_the_overview_has_every_public_verb_once() -> None:
    text = verbs.overview()
    lines = [line.split()[0] for line in text.splitlines() if line.startswith("  ")]
    assert sorted(lines) == sorted(name for name, verb in verbs.VERBS.items() if verb.group)


def test_an_option_whose_value_may_be_left_out_takes_no_other_option_for_it() -> None:
    made = verbs.parser(verbs.VERBS["plsc"])
    assert made.read(["--partial-fc", "--small"]).small
    assert made.read(["--partial-fc", "0.5", "--small"]).partial_fc == 0.5
    assert "did you mean '--small'?" in error("plsc", "--partial-fc", "--smal")
    assert "'more' is one argument too many" in error("plsc", "--partial-fc", "0.5", "more")
