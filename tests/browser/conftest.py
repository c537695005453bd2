"""A real browser: Debian's Chromium, driven by Playwright; without it tests say so, and fail where CI is set."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.absent import absent

NAMES = ("chromium", "chromium-browser", "google-chrome")


# Not for the whole session: while Playwright runs, no test in this process can start an event loop of its own.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for the tests of a file, each of which has a context (cookies, pages) of its own."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        absent(f"no browser: none of {', '.join(NAMES)} is installed: make engines")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program)
        yield browser
        browser.close()
