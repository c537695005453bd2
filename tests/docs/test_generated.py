"""Pages that are made from the code are what the code says today."""

from __future__ import annotations

from tools.reference import PAGES, stale_pages


def test_generated_pages_are_current() -> None:
    assert list(stale_pages()) == [], "run `make docs`"


def test_a_generated_page_says_that_it_is_one() -> None:
    assert [name for name, page in PAGES.items() if "do not edit" not in page()] == []
