"""What the pages tell people to type is what the command takes, and every command is told of."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlecloud.cli import verbs
from paddlecloud.cli.parser import UsageError
from paddlecloud.cli.verbs import VERBS
from tests.docs.pages import PAGES, ROOT, commands, shown

PUBLIC = [verb for verb in VERBS.values() if verb.group]
TYPED = [(page, words) for page in PAGES for program in ("paddlecloud", "paddle") for words in commands(page, program)]


@pytest.mark.parametrize(("page", "words"), TYPED, ids=[f"{shown(page)}: {' '.join(words)}" for page, words in TYPED])
def test_a_command_in_the_docs_is_understood(page: Path, words: list[str]) -> None:
    if not words or words[0] in ("help", "--help", "--version"):
        assert all(word in VERBS for word in words[1:])
        return
    assert words[0] in VERBS, f"{shown(page)}: paddlecloud {words[0]} is not a command"
    try:
        verbs.parser(VERBS[words[0]]).read(words[1:])
    except UsageError as error:
        pytest.fail(f"{shown(page)}: paddlecloud {' '.join(words)}: {error.message}")


@pytest.mark.parametrize("verb", PUBLIC, ids=[verb.name for verb in PUBLIC])
def test_every_command_is_used_in_the_guide_or_in_the_operators_page(verb: verbs.Verb) -> None:
    pages = [ROOT / "docs" / name for name in ("use.md", "operate.md")]
    typed = [words[0] for page in pages for words in commands(page, "paddlecloud") if words]
    assert verb.name in typed


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_a_make_target_in_the_docs_exists(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    for words in commands(page, "make"):
        targets = [word for word in words if "=" not in word and not word.startswith("-")]
        assert [target for target in targets if f"\n{target}:" not in makefile] == []


@pytest.mark.parametrize("name", ["README.md", "README.zh.md"])
def test_a_readme_opens_with_the_two_commands(name: str) -> None:
    opening = "\n".join((ROOT / name).read_text().splitlines()[:20])
    assert "make demo" in opening
    assert "make test" in opening
