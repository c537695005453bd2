"""Ignore rules against git itself: whatever git would add is sent, whatever it ignores stays behind."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from paddlecloud.sdk.bundle import scan
from paddlecloud.sdk.ignore import read_rules

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

FILES = [
    "a",
    "b.py",
    "x.log",
    "keep.log",
    "build/out",
    "lib/build/out",
    "lib/a",
    "lib/__x__/b.py",
    "data/x.log",
    "data/raw/keep.log",
    "data/raw/a",
    "deep/a/b/c",
    "deep/c",
    "#x",
    "!x",
    "x ",
    "a-b",
    "]",
    "é/ü.log",
]
PATTERNS = [
    "*",
    "!*/",
    "!*.py",
    "*.log",
    "!keep.log",
    "build/",
    "!build/",
    "!lib",
    "/lib",
    "lib/*",
    "!lib/build/",
    "/*",
    "!/data",
    "data/**",
    "!data/raw/**",
    "**/c",
    "deep/**/c",
    "a/**",
    "**/raw/",
    "de*/",
    "?",
    "[ab]",
    "[!a]*",
    "[^a-c]",
    "[]]",
    "[a-]*",
    "[[:alpha:]]",
    "[",
    "[b-a]",
    "[a-c-e]",
    "[a-\\c]*",
    "[\\]]",
    "[[:nothing:]]",
    "[[:alpha]*",
    "[!]a]*",
    "[a",
    "\\#x",
    "#x",
    "\\!x",
    "x\\ ",
    "x ",
    "a\\",
    "/",
    "//",
    "",
    "a-b",
    "**",
    "***/c",
    "d**/x.log",
    "é",
    "data/raw\r",
]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository")
    for file in FILES:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text("x")
    subprocess.run(["git", "init", "-q", folder], check=True)
    return folder


@settings(max_examples=100, deadline=None)
@given(
    outer=st.lists(st.sampled_from(PATTERNS), max_size=5),
    inner=st.lists(st.sampled_from(PATTERNS), max_size=3),
)
@example(outer=["build/", "!lib"], inner=[])
@example(outer=["*", "!*/", "!*.py"], inner=[])
@example(outer=["*.log"], inner=["!keep.log"])
@example(outer=["*", "b/", "!c", "!a/b", "!b"], inner=[])
def test_what_git_ignores_stays_behind_and_nothing_else(repository: Path, outer: list[str], inner: list[str]) -> None:
    (repository / ".gitignore").write_text("\n".join(outer))
    (repository / "data" / ".gitignore").write_text("\n".join(inner))
    listed = subprocess.run(
        ["git", "-C", repository, "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        capture_output=True,
        check=True,
    )
    by_git = {path.decode() for path in listed.stdout.split(b"\0") if path}
    assert set(scan(repository).sources) == by_git


def test_a_byte_order_mark_and_comments_are_no_rules() -> None:
    assert read_rules("\ufeff# nothing\n\n   \n").rules == ()
