"""What a module imports when it is loaded is declared: a server installed by `pip install '.[server]'` has no more."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# What comes with a declared package and is meant to be imported by its own name.
BROUGHT = {"starlette": "fastapi"}
# Whoever loads these asks for an extra first, and is told which one is missing.
OF_EXTRAS = {"obstore": "s3", "psycopg": "postgres", "hdfs": "hdfs", "requests": "hdfs"}
FILES = sorted((ROOT / "src").rglob("*.py"))


def declared() -> set[str]:
    asked = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["server"]]
    names = {re.split(r"[\[<>=~! ]", one)[0].lower().replace("_", "-") for one in asked}
    found = metadata.packages_distributions()
    return {module for module, of in found.items() if {name.lower().replace("_", "-") for name in of} & names}


def loaded(file: Path) -> set[str]:
    """The packages that a file imports at once, not in a function or for types alone."""
    found = set()
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or "").partition(".")[0])
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT / "src")))
def test_what_a_module_loads_is_declared(file: Path) -> None:
    known = {*sys.stdlib_module_names, "paddlecloud", *declared(), *BROUGHT, *OF_EXTRAS}
    assert loaded(file) <= known, (
        f"{file.name} loads {sorted(loaded(file) - known)}, which pyproject.toml does not name"
    )
