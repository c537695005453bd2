"""Writes the pages of docs/ that are made from the code, so that they cannot disagree with it.

`python tools/reference.py` writes them, `--check` only says which are not current.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tools.pages import causes, commands, errors, lifecycle, metrics, modules, rest, settings, variables  # noqa: E402

PAGES: dict[str, Callable[[], str]] = {
    "docs/lifecycle.md": lifecycle.page,
    "docs/reference/causes.md": causes.page,
    "docs/reference/commands.md": commands.page,
    "docs/reference/errors.md": errors.page,
    "docs/reference/metrics.md": metrics.page,
    "docs/reference/modules.md": modules.page,
    "docs/reference/rest.md": rest.page,
    "docs/reference/settings.md": settings.page,
    "docs/reference/variables.md": variables.page,
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a page is not current")
    check = parser.parse_args(arguments).check
    stale = list(stale_pages())
    for name in stale:
        if check:
            print(f"{name} is not current: run `make docs`", file=sys.stderr)
        else:
            (ROOT / name).write_text(PAGES[name](), encoding="utf-8")
            print(f"wrote {name}")
    return 1 if check and stale else 0


def stale_pages() -> Iterable[str]:
    for name, page in PAGES.items():
        file = ROOT / name
        if not file.exists() or file.read_text(encoding="utf-8") != page():
            yield name


if __name__ == "__main__":
    sys.exit(main())
