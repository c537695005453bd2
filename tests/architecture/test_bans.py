"""What may be used only in some places, with the place; ruff says so while one types, this test keeps it exactly."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT, names_used, place, python_files, shown, tree_of

CLOCK = ("server/app.py", "sdk/http.py", "cli/shell.py", "runtime/")
ENVIRONMENT = ("server/config.py", "sdk/profile.py", "cli/shell.py", "runtime/")
PROCESSES = ("backends/", "runtime/", "cli/local.py")
RECORDS = ("store/",)
OUTPUT = ("cli/shell.py", "runtime/")

PLACES = {
    "datetime.datetime.now": CLOCK,
    "datetime.datetime.utcnow": (),
    "datetime.datetime.today": (),
    "datetime.date.today": (),
    "time.time": CLOCK,
    "time.time_ns": CLOCK,
    "os.environ": ENVIRONMENT,
    "os.getenv": ENVIRONMENT,
    "os.putenv": (),
    "os.system": (),
    "os.popen": (),
    "os.fork": PROCESSES,
    "os.posix_spawn": PROCESSES,
    "subprocess": PROCESSES,
    "multiprocessing": ("recordio/parallel.py",),  # a pool that ends with the loop over it
    "sqlite3": RECORDS,
    "sqlalchemy": RECORDS,
    "alembic": RECORDS,
    "print": OUTPUT,
}


@pytest.mark.parametrize("name", PLACES)
def test_a_banned_name_is_used_only_in_its_places(name: str) -> None:
    found = [
        f"{shown(file)}:{line} uses {used}"
        for file in python_files("src")
        if not place(file).startswith(PLACES[name] or ("nowhere/",))
        for line, used in names_used(file)
        if used == name or used.startswith(f"{name}.")
    ]
    assert not found, "\n".join(found)


def test_nothing_is_mocked_or_patched() -> None:
    banned = ("unittest.mock", "pytest.MonkeyPatch", "monkeypatch", "mocker")
    found = [
        f"{shown(file)}:{line} uses {used}"
        for file in python_files("src", "tests", "bench", "tools")
        for line, used in [*names_used(file), *_arguments(file)]
        if used.startswith(banned)
    ]
    assert not found, "\n".join(found)


def test_a_test_sleeps_only_between_two_looks_at_a_condition() -> None:
    found = [
        f"{shown(file)}:{node.lineno}"
        for file in python_files("tests")
        for node in _outside_loops(tree_of(file))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("time.sleep", "sleep")
    ]
    assert not found, "\n".join(found)


def test_every_banned_name_has_its_sentence_in_the_linters_table() -> None:
    config = (ROOT / "pyproject.toml").read_text()
    by_ruff = [name for name in PLACES if name not in ("print", "os.fork", "os.posix_spawn", "multiprocessing")]
    assert [name for name in by_ruff if f'"{name}".msg = ' not in config] == []


def _arguments(file: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree_of(file)):
        if isinstance(node, ast.arg):
            yield node.lineno, node.arg


def _outside_loops(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.While | ast.For):
            yield child
            yield from _outside_loops(child)
