"""Pages in a real browser: opened from disk, with every request to a network refused and remembered."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route

from tests.patience import LIMIT_S

WIDE = {"width": 1400, "height": 900}
NARROW = {"width": 400, "height": 800}


def find_chromium() -> Path:
    """The browser that the install script leaves; skips the test with a line that says how to get it."""
    editors = Path(os.environ.get("GPA_LSP_EDITORS", "~/.cache/gpa-lsp-editors")).expanduser()
    program = editors / "chromium"
    if not program.exists():
        pytest.skip(f"no chromium in {editors} (GPA_LSP_EDITORS): run tests/editors/install_chromium.sh {editors}")
    return program


@dataclass(slots=True)
class OpenPage:
    """A page that was opened.

    Attributes:
        page: Playwright's.
        complaints: errors and warnings of its console, and what its scripts threw.
        requests: addresses it asked for, other than its own file.
    """

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def photograph(self, folder: Path, name: str, *, whole: bool = False) -> None:
        """A picture for people to look at."""
        self.page.screenshot(path=folder / f"{name}.png", full_page=whole)

    def check_quiet(self) -> None:
        """The page said nothing on the console and asked nobody."""
        assert self.complaints == []
        assert self.requests == []


def wait_until(page: Page, expression: str, arg: object = None) -> None:
    """Wait for something to be true in a page. Asked from outside again and again: pages forbid scripts made of text as they run."""
    end = time.monotonic() + LIMIT_S
    while not page.evaluate(expression, arg):
        assert time.monotonic() < end, f"never came true: {expression}"
        page.wait_for_timeout(20)  # the page goes on meanwhile


@contextmanager
def open_page(
    browser: Browser,
    file: Path,
    *,
    dark: bool = False,
    viewport: dict[str, int] | None = None,
    fragment: str = "",
    before: str = "",
    color_scheme_forced: bool = False,
) -> Iterator[OpenPage]:
    """Open a file from disk in a browser of its own, and close it.

    Args:
        browser: running.
        file: to open.
        dark: the system's colours are dark.
        viewport: of the window; None for a wide one.
        fragment: behind the file's address, ``#k0``.
        before: a script that runs before those of the page.
        color_scheme_forced: the system forces its own few colours (high contrast).
    """
    context = browser.new_context(
        viewport=viewport or WIDE,
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
        forced_colors="active" if color_scheme_forced else "none",
    )
    try:
        context.set_default_timeout(1000 * LIMIT_S)
        page = context.new_page()
        opened = OpenPage(page=page)
        address = file.as_uri()
        page.on("console", lambda message: _hear(opened, message.type, message.text))
        page.on("pageerror", lambda error: opened.complaints.append(str(error)))

        def decide(route: Route) -> None:
            asked = route.request.url
            if asked.partition("#")[0] == address:
                route.continue_()
                return
            opened.requests.append(asked)
            route.abort()

        context.route("**/*", decide)
        if before:
            page.add_init_script(before)
        page.goto(address + fragment)
        yield opened
    finally:
        context.close()


def _hear(opened: OpenPage, kind: str, text: str) -> None:
    if kind in ("error", "warning", "assert"):
        opened.complaints.append(f"{kind}: {text}")
