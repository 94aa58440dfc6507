"""Violations that axe finds in a page."""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page


def list_violations(page: Page) -> list[str]:
    """Each violation with the elements that have it; empty for a page without any."""
    results = Axe().run(page)
    return [
        f"{violation['id']}: {violation['help']}: {[node['target'] for node in violation['nodes']][:5]}"
        for violation in results.response["violations"]
    ]
