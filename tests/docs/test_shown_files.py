"""A config or a job file that a page shows is one that the program takes."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from paddlecloud.cli import jobfile
from paddlecloud.server import config
from tests.docs.pages import PAGES, blocks, shown

CONFIGS = [(shown(page), text) for page in PAGES for text in blocks(page, "toml")]
JOB_FILES = [(shown(page), text) for page in PAGES for text in blocks(page, "yaml")]


@pytest.mark.parametrize(("page", "text"), CONFIGS)
def test_a_config_in_the_docs_is_understood(page: str, text: str) -> None:
    config.parse(tomllib.loads(text), source=page)


@pytest.mark.parametrize(("page", "text"), JOB_FILES)
def test_a_job_file_in_the_docs_is_understood(tmp_path: Path, page: str, text: str) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(text)
    jobfile.read(file)


def test_the_docs_show_one_of_each() -> None:
    assert CONFIGS
    assert JOB_FILES
