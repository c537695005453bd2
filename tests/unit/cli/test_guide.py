"""What the guide and the READMEs say of the command, where no example would show it to be untrue."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from paddlecloud.cli import verbs

ROOT = Path(__file__).parents[3]
GUIDE = (ROOT / "docs" / "use.md").read_text()


def test_the_guide_has_completion_set_up_as_the_commands_own_help_has_it() -> None:
    told = (verbs.parser(verbs.VERBS["completion"]).epilog or "").splitlines()
    bash, fish = (line.partition(":")[2].strip() for line in (told[1], told[3]))
    assert bash in GUIDE
    assert fish in GUIDE


def test_the_guide_names_the_verbs_about_jobs_that_have_no_other_form() -> None:
    groups = ("Jobs", "Files")
    # Of `dataset` and `share`, each action has its own.
    about_jobs = [one for one in verbs.VERBS.values() if one.group in groups and one.name not in ("dataset", "share")]
    without = [verb.name for verb in about_jobs if "--output" not in verbs.parser(verb).options()]
    assert without == ["run", "logs", "cp", "mkdir", "mv", "rm"]
    assert "give any of them another form, but `run`, `logs`, `cp`, `mkdir`, `mv` and `rm`." in GUIDE


@pytest.mark.parametrize(("page", "words"), [("README.md", "three packages"), ("README.zh.md", "三个包")])
def test_a_readme_counts_what_the_client_installs(page: str, words: str) -> None:
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert 1 + len(needed) == 3
    assert words in (ROOT / page).read_text()
