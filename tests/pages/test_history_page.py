"""The page of the history in a real browser: charts, and hostile names."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from gpa_lsp.document.document_page import render_document_page
from gpa_lsp.document.html_report.changes_section import KernelPast, build_history_page
from gpa_lsp.report.history.model import Commit
from tests.pages.accessibility import list_violations
from tests.pages.browser import NARROW, OpenPage, open_page, wait_until
from tests.render.time_courses import make_commit, make_course

MARKUP = "</script><img src=x onerror=alert(1)>\u202e"
FACTS = ("NVIDIA GeForce RTX 3070", "grid 128", "block 256", "src/stencil.cu")


def make_kernels() -> list[KernelPast]:
    commits = {0: make_commit(1, "Tile the loop"), 3: make_commit(2, "Unroll by 4"), 6: make_commit(3, "Fuse")}
    steady = make_course([1e6, 1.01e6, 1e6, 1.02e6], {1: make_commit(1)})
    return [
        KernelPast(
            name="void stencil<float, 128>(float const*, float*)",
            facts=FACTS,
            course=make_course([2.1e6, 2.08e6, 1.6e6, 1.61e6, 2.2e6, 2.2e6, 1.3e6, 1.29e6], commits),
        ),
        KernelPast(name="saxpy(float*)", facts=FACTS, course=make_course([5e5, 5e5, 7e5], {0: make_commit(9)})),
        KernelPast(name="steady()", facts=FACTS, course=steady),
        *(KernelPast(name=f"other{number}()", facts=FACTS, course=steady) for number in range(5)),
        KernelPast(name="once()", facts=FACTS, course=make_course([3e6])),
    ]


@contextmanager
def show(
    browser: Browser, folder: Path, kernels: Sequence[KernelPast] | None = None, **options: object
) -> Iterator[OpenPage]:
    file = folder / "history #1 %20.html"
    page = render_document_page(*build_history_page(make_kernels() if kernels is None else kernels))
    file.write_text(page, encoding="utf-8", errors="backslashreplace")
    with open_page(browser, file, **options) as opened:  # type: ignore[arg-type]
        yield opened
        opened.check_quiet()


def wait_for_chart(opened: OpenPage, number: int = 0) -> None:
    opened.page.wait_for_selector(f"[data-chart='chart{number}'] svg")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_page_is_quiet_and_accessible(browser: Browser, tmp_path: Path, pictures: Path, dark: bool) -> None:
    with show(browser, tmp_path, dark=dark) as opened:
        wait_for_chart(opened)
        opened.photograph(pictures, f"history-{'dark' if dark else 'light'}")
        assert list_violations(opened.page) == []


def test_narrow_page_needs_no_sideways_scrolling(browser: Browser, tmp_path: Path, pictures: Path) -> None:
    with show(browser, tmp_path, viewport=NARROW) as opened:
        wait_for_chart(opened)
        opened.photograph(pictures, "history-narrow", whole=True)
        assert opened.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert list_violations(opened.page) == []


def test_a_chart_marks_regressions_and_commits(browser: Browser, tmp_path: Path) -> None:
    with show(browser, tmp_path) as opened:
        wait_for_chart(opened)
        chart = opened.page.locator("[data-chart='chart0'] svg")
        marks = chart.locator("g.mark-symbol[role='graphics-object'] path")
        assert marks.count() == 8
        colours = [marks.nth(number).get_attribute("fill") for number in range(8)]
        assert len({colours[4], colours[0], colours[6]}) == 3
        text = chart.inner_html()
        assert all(f"0000000{number}" in text for number in (1, 2, 3))
        label = opened.page.locator(".chart").first.get_attribute("aria-label")
        assert label is not None
        assert "slower in run 5 (+37 %, 00000002 “Unroll by 4”), recovered since" in label


def test_kernels_that_are_slower_now_are_named_first(browser: Browser, tmp_path: Path) -> None:
    with show(browser, tmp_path) as opened:
        wait_for_chart(opened)
        notice = opened.page.inner_text("main > .notice")
        assert "saxpy" in notice
        assert "stencil" not in notice


def test_hostile_names_stay_text(browser: Browser, tmp_path: Path) -> None:
    hostile = KernelPast(
        name=MARKUP,
        facts=(MARKUP,),
        course=make_course([1e6, 2e6], {0: Commit(digest=MARKUP, subject=MARKUP), 1: make_commit(2, MARKUP)}),
    )
    with show(browser, tmp_path, [hostile]) as opened:
        wait_for_chart(opened)
        page = opened.page
        assert page.locator("img").count() == 0
        assert "\u202e" not in page.content()
        assert "onerror" in page.inner_text("h2")


def test_charts_follow_the_theme(browser: Browser, tmp_path: Path) -> None:
    with show(browser, tmp_path) as opened:
        wait_for_chart(opened)
        page = opened.page
        read = "document.querySelector('[data-chart=chart0] svg .role-axis-label text').getAttribute('fill')"
        before = page.evaluate(read)
        page.click("#theme")
        wait_until(page, f"{read} !== '{before}'")


def test_a_printed_page_has_all_charts_in_dark_on_white(browser: Browser, tmp_path: Path, pictures: Path) -> None:
    with show(browser, tmp_path, dark=True) as opened:
        page = opened.page
        wait_until(page, "[...document.querySelectorAll('[data-chart]')].every((one) => one.querySelector('svg'))")
        page.emulate_media(media="print")
        opened.photograph(pictures, "history-print", whole=True)
        colours = page.locator("[data-chart] svg text").evaluate_all(
            "all => all.map(one => getComputedStyle(one).fill)"
        )
        assert set(colours) == {"rgb(27, 32, 39)"}


def test_nothing_recorded(browser: Browser, tmp_path: Path) -> None:
    with show(browser, tmp_path, []) as opened:
        assert "No measurement is recorded" in opened.page.inner_text("main")
        assert list_violations(opened.page) == []
