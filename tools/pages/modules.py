"""docs/reference/modules.md: every module of the package with the sentence that it opens with."""

from __future__ import annotations

import ast
from itertools import groupby
from pathlib import Path

from tools.pages.markdown import code, document, table

SOURCE = Path(__file__).parents[2] / "src" / "paddlecloud"

INTRODUCTION = """
Every file with its opening sentence. [The architecture](../architecture.md) says how they stand to one another.
"""


def page() -> str:
    files = sorted(SOURCE.rglob("*.py"), key=lambda file: (file.parent, file.name != "__init__.py", file.name))
    parts: list[str] = []
    for folder, modules in groupby(files, key=lambda file: file.parent):
        members = list(modules)
        parts.append(f"## {folder.relative_to(SOURCE.parent).as_posix()}\n{_summary(members[0])}")
        rows = [(_link(file), _summary(file)) for file in members if file.name != "__init__.py"]
        if rows:
            parts.append(table(("file", "what is in it"), rows))
    return document("Modules", "src/paddlecloud/", INTRODUCTION, *parts)


def _link(file: Path) -> str:
    target = Path("../../src/paddlecloud") / file.relative_to(SOURCE)
    return f"[{code(file.name)}]({target.as_posix()})"


def _summary(file: Path) -> str:
    """The first paragraph of the module's docstring."""
    docstring = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return " ".join(docstring.partition("\n\n")[0].split())
