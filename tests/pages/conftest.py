"""A browser for all tests of pages, and a folder for pictures."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.pages.browser import find_chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium without a screen and without a network. Of one module: while Playwright lives, no other event loop can run in this process."""
    program = find_chromium()
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=program,
            args=["--no-sandbox", "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND"],
        )
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of screenshots: $GPA_LSP_SCREENSHOTS, else a temporary one."""
    folder = Path(os.environ.get("GPA_LSP_SCREENSHOTS") or tmp_path_factory.mktemp("pictures"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder
