"""The project's Markdown pages, their links, and the commands that they tell people to type."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")])

_FENCE = re.compile(r"^ *```(\w*)[^\n]*\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)
_ENDS_A_COMMAND = frozenset({"|", "||", "&&", "&", ";", ">", ">>", "<", "2>"})


def shown(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def links(page: Path) -> list[str]:
    return _LINK.findall(_FENCE.sub("", page.read_text()))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as code hosts make them."""
    headings = _HEADING.findall(_FENCE.sub("", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def blocks(page: Path, *languages: str) -> list[str]:
    """The text of the page's blocks of these languages."""
    return [block for language, block in _FENCE.findall(page.read_text()) if language in languages]


def commands(page: Path, program: str) -> Iterator[list[str]]:
    """The words after `program` of every command in the page's shell blocks, without pipes and redirections."""
    for block in blocks(page, "shell", "sh", "bash"):
        for line in block.replace("\\\n", " ").splitlines():
            words = _words(line.strip().removeprefix("$ "))
            for number, word in enumerate(words):
                if word == program and (number == 0 or words[number - 1] in _ENDS_A_COMMAND or "=" in words[0]):
                    yield _until_its_end(words[number + 1 :])


def _words(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.commenters = "#"
    lexer.whitespace_split = True
    return list(lexer)


def _until_its_end(words: list[str]) -> list[str]:
    end = next((number for number, word in enumerate(words) if word in _ENDS_A_COMMAND), len(words))
    return words[:end]
