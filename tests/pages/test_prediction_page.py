"""The page of predictions in a real browser: quiet, accessible, without a network, usable by keyboard and on narrow screens."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace
from playwright.sync_api import Browser

from gpa_lsp.document.document_page import render_document_page
from gpa_lsp.document.prediction_view import build_prediction_page
from gpa_lsp.execution.prediction.model import SourcePrediction
from tests.pages.accessibility import list_violations
from tests.pages.browser import NARROW, OpenPage, open_page, wait_until
from tests.prediction.kernels import predict

pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")


@contextmanager
def show(browser: Browser, folder: Path, prediction: SourcePrediction, **options: object) -> Iterator[OpenPage]:
    file = folder / "predicted #1 %20.html"
    file.write_text(
        render_document_page(*build_prediction_page(prediction)), encoding="utf-8", errors="backslashreplace"
    )
    with open_page(browser, file, **options) as opened:  # type: ignore[arg-type]
        yield opened
        opened.check_quiet()


def test_page_is_quiet_and_accessible(browser: Browser, tmp_path: Path, pictures: Path) -> None:
    with show(browser, tmp_path, predict("saxpy")) as opened:
        page = opened.page
        opened.photograph(pictures, "prediction-light")
        assert page.locator("h2").all_inner_texts() == ["saxpy", "saxpy", "saxpy: 2 launches"]
        assert list_violations(page) == []


def test_a_fault_is_the_first_that_is_seen_in_the_dark(browser: Browser, tmp_path: Path, pictures: Path) -> None:
    with show(browser, tmp_path, predict("beyond"), dark=True) as opened:
        page = opened.page
        opened.photograph(pictures, "prediction-dark")
        assert page.locator("section.answer h3").first.inner_text() == "What the run showed (emulated)"
        assert "Out-of-bounds access at line 22 of kernels.cu" in page.locator("section.answer").first.inner_text()
        assert list_violations(page) == []


def test_charts_are_drawn_when_they_come_into_view(browser: Browser, tmp_path: Path) -> None:
    with show(browser, tmp_path, predict("transpose")) as opened:
        page = opened.page
        chart = page.locator("[data-chart]").first
        chart.scroll_into_view_if_needed()
        wait_until(page, "document.querySelector('[data-chart] svg, [data-chart] canvas') !== null")
        hot = page.locator("#k0-source .listing td.hot").all_inner_texts()
        assert any("32 wavefronts per request" in text for text in hot)


def test_parts_are_reached_by_keyboard(browser: Browser, tmp_path: Path) -> None:
    with show(browser, tmp_path, predict("transpose")) as opened:
        page = opened.page
        links = page.locator("nav.parts a")
        assert links.count() > 5
        links.last.focus()
        page.keyboard.press("Enter")
        wait_until(page, "location.hash === '#k0-source'")
        wait_until(page, "document.querySelector('#k0-source').getBoundingClientRect().top < innerHeight")


def test_narrow_page_needs_no_sideways_scrolling(browser: Browser, tmp_path: Path, pictures: Path) -> None:
    with show(browser, tmp_path, predict("transpose"), viewport=NARROW) as opened:
        opened.photograph(pictures, "prediction-narrow", whole=True)
        assert opened.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert list_violations(opened.page) == []


def test_listings_of_two_launches_are_told_apart(browser: Browser, tmp_path: Path) -> None:
    with show(browser, tmp_path, predict("saxpy")) as opened:
        page = opened.page
        for height in ("20rem", "19rem"):  # the second change must not name the first as another one
            page.evaluate(
                "(size) => document.querySelectorAll('.listing').forEach((one) => one.style.maxBlockSize = size)",
                height,
            )
            wait_until(page, "document.querySelectorAll('.listing[role=region]').length === 2")
        labels = page.locator(".listing[role=region]").evaluate_all("all => all.map(one => one.ariaLabel)")
        assert len(set(labels)) == len(labels)


def test_hostile_names_stay_text(browser: Browser, tmp_path: Path) -> None:
    found = predict("transpose")
    name = "<img src=x onerror=alert(1)>"
    kernel = replace(found.kernels[0], name=f"void {name}(int)", machine=name)
    statics = replace(found.statics, text=f"</script>{name}\n" * 12)
    with show(browser, tmp_path, replace(found, kernels=(kernel,), statics=statics, undescribed=(name,))) as opened:
        assert opened.page.locator("img").count() == 0
        assert name in opened.page.locator("section.launch p").first.inner_text()
        assert f"</script>{name}" in opened.page.locator(".listing td.code").first.inner_text()
