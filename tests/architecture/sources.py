"""The project's own Python files, and the names that each of them uses."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "paddlecloud"
_AS_IT_IS = ("examples/openpai-couplet/run_samples.py",)  # a seed's file, and so not ours to mend


def python_files(*folders: str) -> list[Path]:
    return sorted(file for folder in folders for file in (ROOT / folder).rglob("*.py") if shown(file) not in _AS_IT_IS)


def shown(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


@cache
def tree_of(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def place(file: Path) -> str:
    """Where a file of src is, seen from the package; `recordio.py`, a name of the package's own, is beside it."""
    return file.relative_to(PACKAGE if file.is_relative_to(PACKAGE) else PACKAGE.parent).as_posix()


@cache
def names_used(file: Path) -> list[tuple[int, str]]:
    """Every imported, dotted or bare name with its line, by its full name: `now` of `from time import time as now` is
    `time.time`."""
    return list(_names_used(tree_of(file)))


def _names_used(tree: ast.Module) -> Iterator[tuple[int, str]]:
    imported = dict(_imported(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Name | ast.Attribute):
            first, _, rest = _dotted(node).partition(".")
            if first:
                full = imported.get(first, first)
                yield node.lineno, f"{full}.{rest}" if rest else full


def _imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    yield alias.asname, alias.name
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (before := _dotted(node.value)):
        return f"{before}.{node.attr}"
    return ""
