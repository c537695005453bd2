"""How a file must look: short, named for its subject, opened by a sentence, and finished."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT, place, python_files, shown

LINES = 400
VAGUE = re.compile(r"(^|_)(utils?|common|helpers?|misc|managers?|handlers?|infos?|data)(_|$)")
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|NotImplementedError")
BANNER = re.compile(r"^\s*#\s*([-=*#~_])\1{3,}|^\s*#.*([-=*#~_])\2{4,}\s*$")
OURS = ("src", "tests", "bench", "tools", "examples")


@pytest.mark.parametrize("file", python_files(*OURS), ids=shown)
def test_a_file_has_one_subject(file: Path) -> None:
    length = len(file.read_text().splitlines())
    assert length <= LINES, f"{shown(file)} has {length} lines: two subjects? Split it by subject"


@pytest.mark.parametrize("file", python_files(*OURS), ids=shown)
def test_a_file_opens_with_a_sentence(file: Path) -> None:
    text = file.read_text()
    if not text.strip():
        assert file.relative_to(ROOT).parts[0] == "tests", f"{shown(file)} is empty"
        return
    docstring = ast.get_docstring(ast.parse(text))
    assert docstring, f"{shown(file)} does not say what is in it"
    assert docstring.splitlines()[0].rstrip().endswith((".", ":", ",", ";", "…")) or len(docstring.splitlines()) > 1, (
        f"{shown(file)} opens with {docstring.splitlines()[0]!r}, which is no sentence"
    )


@pytest.mark.parametrize("file", python_files("src"), ids=shown)
def test_a_module_has_the_name_of_a_thing(file: Path) -> None:
    names = [part.removesuffix(".py") for part in place(file).split("/")]
    vague = [name for name in names if VAGUE.search(name)]
    assert not vague, f"{shown(file)}: {vague} says nothing; name the thing that is in it"


def test_nothing_is_left_for_later() -> None:
    found = [
        f"{shown(file)}:{number}: {line.strip()}"
        for file in python_files(*OURS)
        if file != Path(__file__)
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if UNFINISHED.search(line)
    ]
    assert not found, "\n".join(found)


def test_no_comment_is_a_banner() -> None:
    found = [
        f"{shown(file)}:{number}: {line.strip()}"
        for file in python_files(*OURS)
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if BANNER.search(line)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("file", python_files("src/paddlecloud/runtime"), ids=shown)
def test_the_runtime_is_python_3_8_and_standard_library(file: Path) -> None:
    tree = ast.parse(file.read_text(), feature_version=(3, 8))
    modules = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert modules <= {*sys.stdlib_module_names, "paddlecloud"}, f"{shown(file)} imports {sorted(modules)}"
    # An annotation is a string there and may be of any version; what runs may not.
    assert "from __future__ import annotations" in file.read_text() or file.name == "__init__.py"


def test_every_folder_of_the_package_is_a_package() -> None:
    folders = {file.parent for file in python_files("src/paddlecloud")}
    assert [shown(folder) for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []


def test_what_is_pinned_does_not_say_where_it_is_fetched_from() -> None:
    """A machine's own settings name its package index, so that the pins hold behind any mirror."""
    pinned = [ROOT / "Makefile", ROOT / "pyproject.toml", *(ROOT / "requirements").iterdir()]
    assert [shown(file) for file in pinned if re.search(r"https?://|index-url", file.read_text())] == []
