"""The few pieces of Markdown that generated pages are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def document(title: str, source: str, *parts: str) -> str:
    note = f"<!-- Made from {source} by `make docs`; do not edit. -->"
    return "\n\n".join([f"# {title}\n{note}", *(part.strip("\n") for part in parts)]) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [_row(head), _row("---" for _ in head)]
    return "\n".join([*lines, *(_row(row) for row in rows)])


def code(text: object) -> str:
    return f"`{text}`" if str(text) else ""


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
