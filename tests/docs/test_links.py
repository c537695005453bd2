"""Every link between our pages leads somewhere, and every page can be found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, anchors, links, shown


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for link in links(page):
        if "://" in link or link.startswith("mailto:"):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert not broken, f"{shown(page)}: {broken}"


def test_every_page_of_the_docs_is_reached_from_the_index() -> None:
    reached: set[Path] = set()
    ahead = [ROOT / "docs" / "README.md"]
    while ahead:
        page = ahead.pop()
        if page not in reached:
            reached.add(page)
            named = [(page.parent / link.partition("#")[0]).resolve() for link in links(page) if "://" not in link]
            ahead += [target for target in named if target.suffix == ".md" and target.exists()]
    assert [shown(page) for page in PAGES if page.is_relative_to(ROOT / "docs") and page not in reached] == []
