"""The roofline page in a real browser: the chart, the list and the details stay in step, by mouse and by keyboard, on light and on dark ground."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace
from playwright.sync_api import Browser, Page, expect

from gpa_lsp.diagnosis.analyses.answers import Answer, Missing, Movement
from gpa_lsp.document.roofline_page import render_roofline_page
from gpa_lsp.gpu.device.model import MemoryLevel, OperationKind
from gpa_lsp.report.model import KernelReport
from tests.pages.accessibility import list_violations
from tests.pages.browser import NARROW, OpenPage, open_page, wait_until
from tests.render.charts.roofline_examples import make_machine, make_roofline, place, place_many
from tests.report_builder import build_kernel, build_report


@contextmanager
def show(
    browser: Browser,
    folder: Path,
    kernels: Sequence[KernelReport],
    *,
    before: Sequence[KernelReport] = (),
    **options: object,
) -> Iterator[OpenPage]:
    """The page of some kernels, drawn."""
    file = folder / "roofline page #1 %20.html"
    text = render_roofline_page(build_report(*kernels), before=build_report(*before) if before else None)
    file.write_text(text, encoding="utf-8", errors="backslashreplace")
    with open_page(browser, file, **options) as opened:  # type: ignore[arg-type]
        opened.page.wait_for_selector("#chart[data-ready]")
        yield opened
        opened.check_quiet()


def count_points(page: Page) -> int:
    """Marks of kernels and launches on the chart."""
    return page.locator("#chart g.points path, #chart g[class*='points_marks'] path").count()


def find_name(page: Page, name: str) -> str:
    return f"button.name[data-row='{name}']"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("count", [1, 10, 100])
def test_page_is_quiet_and_accessible(browser: Browser, tmp_path: Path, pictures: Path, count: int, dark: bool) -> None:
    with show(browser, tmp_path, place_many(count), dark=dark) as opened:
        opened.photograph(pictures, f"roofline-{count}-{'dark' if dark else 'light'}")
        if count > 1:
            opened.page.click(find_name(opened.page, "k1"))
            opened.photograph(pictures, f"roofline-{count}-{'dark' if dark else 'light'}-chosen", whole=count == 10)
        assert list_violations(opened.page) == []


def test_narrow_page_needs_no_sideways_scrolling(browser: Browser, tmp_path: Path, pictures: Path) -> None:
    with show(browser, tmp_path, place_many(10), viewport=NARROW) as opened:
        opened.photograph(pictures, "roofline-narrow", whole=True)
        page = opened.page
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        box = page.locator("#chart svg").bounding_box()
        assert box is not None
        assert box["width"] <= NARROW["width"]
        page.click(find_name(page, "k1"))
        ends = """all => all.map(cell => {
            const range = document.createRange();
            range.selectNodeContents(cell);
            return range.getBoundingClientRect().right <= cell.getBoundingClientRect().right + 1;
        })"""
        assert set(page.locator(".bars td.number").evaluate_all(ends)) == {True}
        assert list_violations(page) == []


def test_chart_follows_the_width_of_its_place(browser: Browser, tmp_path: Path) -> None:
    with show(browser, tmp_path, place_many(3)) as opened:
        chart = opened.page.locator("#chart svg")
        wide = chart.bounding_box()
        opened.page.set_viewport_size({"width": 700, "height": 900})
        wait_until(opened.page, "document.querySelector('#chart svg').getBoundingClientRect().width < 690")
        narrow = chart.bounding_box()
        assert wide is not None
        assert narrow is not None
        assert 400 < narrow["width"] < 700 < wide["width"]


def test_ticking_draws_kernels(browser: Browser, tmp_path: Path) -> None:
    """Two types over four levels are eight marks a kernel."""
    with show(browser, tmp_path, place_many(3)) as opened:
        page = opened.page
        assert count_points(page) == 24
        page.uncheck("input.draw[data-row='k0']")
        wait_until(page, "document.getElementById('announcement').textContent === '2 drawn.'")
        assert count_points(page) == 16
        page.uncheck("input[name='level'][value='DRAM']")
        expect(page.locator("#caption")).to_contain_text("2 of 3 kernels drawn")
        assert count_points(page) == 12
        page.uncheck("input[name='kind'][value='INT32']")
        assert count_points(page) == 6
        page.click("#show-all")
        assert count_points(page) == 9
        page.click("#show-none")
        assert count_points(page) == 0


def test_choosing_a_name_by_mouse(browser: Browser, tmp_path: Path) -> None:
    with show(browser, tmp_path, place_many(3)) as opened:
        page = opened.page
        assert page.locator("#details").is_hidden()
        page.click(find_name(page, "k2"))
        assert page.get_attribute(find_name(page, "k2"), "aria-pressed") == "true"
        assert page.text_content("#details-title") == "solver::step_2<float, 2>"
        assert "DRAM bandwidth at" in (page.text_content("#announcement") or "")
        assert page.locator("#details-body table").first.locator("tbody tr").count() == 6
        quiet = page.locator("#chart g[class*='points'] path[opacity='0.25']")
        expect(quiet).to_have_count(16)
        expect(page.locator("#chart text", has_text="solver::step_2")).to_have_count(1)  # however near its points are
        page.click(find_name(page, "k2"))
        assert page.locator("#details").is_hidden()
        expect(quiet).to_have_count(0)


def test_choosing_a_point_of_the_chart(browser: Browser, tmp_path: Path) -> None:
    with show(
        browser, tmp_path, [place("alone"), place("other", make_roofline(make_machine(), seconds=1e-6))]
    ) as opened:
        page = opened.page
        page.uncheck("input.draw[data-row='k1']")
        expect(page.locator("#announcement")).to_have_text("1 drawn.")
        box = page.locator("#chart g[class*='points'] path").first.bounding_box()
        assert box is not None
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        expect(page.locator("#details-title")).to_have_text("alone")
        assert page.get_attribute(find_name(page, "k0"), "aria-pressed") == "true"


def test_everything_by_keyboard(browser: Browser, tmp_path: Path) -> None:
    with show(browser, tmp_path, place_many(3)) as opened:
        page = opened.page
        page.focus(find_name(page, "k0"))
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        assert page.text_content("#details-title") == "solver::step_1<float, 1>"
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "launches"
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid"
        page.keyboard.press("Space")
        assert page.locator("tr.launch").count() == 2
        page.keyboard.press("Tab")
        page.keyboard.press("Space")
        expect(page.locator("#caption")).to_contain_text("1 launch")
        assert count_points(page) == 32
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        assert page.text_content("#details-title") == "solver::step_1<float, 1>, launch 0"
        assert list_violations(page) == []


def test_filter(browser: Browser, tmp_path: Path) -> None:
    with show(browser, tmp_path, place_many(12)) as opened:
        page = opened.page
        page.fill("#filter", "STEP_1")
        assert page.locator("#kernels tbody tr:visible").count() == 3
        assert page.text_content("#announcement") == "3 kernels in the list."
        page.fill("#filter", "nothing like it")
        assert page.locator("#no-match").is_visible()


def test_view_and_colours_keep_the_choice(browser: Browser, tmp_path: Path, pictures: Path) -> None:
    with show(browser, tmp_path, place_many(3)) as opened:
        page = opened.page
        page.click(find_name(page, "k1"))
        page.check("input[name='view'][value='instructions']")
        page.wait_for_selector("#chart[data-ready='instructions']")
        expect(page.locator("#chart")).to_contain_text("warp instructions per second")
        assert count_points(page) == 12
        assert page.locator("#chart").get_by_text("instruction issue: 320 Ginst/s").count() == 1
        opened.photograph(pictures, "roofline-instructions")
        light = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.click("#theme")
        expect(page.locator("#chart text").first).to_be_visible()
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
        wait_until(page, "document.querySelector('#chart .role-axis-title text').getAttribute('fill') === '#e6e9ed'")
        assert page.text_content("#details-title") == "solver::step_1<float, 1>"
        assert list_violations(page) == []


def test_arrows_from_before(browser: Browser, tmp_path: Path, pictures: Path) -> None:
    machine = make_machine()
    old = place("scale", make_roofline(machine, rates={OperationKind.FP32: 0.2e12}, seconds=4e-3))
    new = place("scale", make_roofline(machine, rates={OperationKind.FP32: 2e12}, seconds=1e-3))
    gone = place("gone", make_roofline(machine, seconds=1e-5))
    with show(browser, tmp_path, [new], before=[old, gone]) as opened:
        page = opened.page
        opened.photograph(pictures, "roofline-before")
        assert page.locator("#kernels tbody tr").count() == 2
        assert "4.00×" in (page.text_content("#kernels tbody tr:first-child") or "")
        assert "before only" in (page.text_content("#kernels tbody tr:last-child") or "")
        arrows = page.locator("#chart g.mark-rule line[stroke-dasharray='1,0']")
        expect(arrows).to_have_count(3)
        page.uncheck("input.draw[data-row='k0']")
        expect(arrows).to_have_count(0)


def test_where_suggestions_lead(browser: Browser, tmp_path: Path) -> None:
    kernel = place("scale")
    point = kernel.analyses.roofline.whole.points[-1]  # type: ignore[union-attr]
    movement = Movement(
        kind=point.kind,
        level=point.level,
        from_intensity=point.intensity,
        from_ops_per_s=point.achieved_ops_per_s,
        to_intensity=2 * point.intensity,
        to_ops_per_s=2 * point.achieved_ops_per_s,
        label="compress the data",
    )
    answer = Answer(analysis="starlight", title="Suggestions", summary="", movements=(movement,))
    kernel = replace(kernel, analyses=replace(kernel.analyses, answers=(answer,)))  # type: ignore[type-var]
    with show(browser, tmp_path, [kernel]) as opened:
        page = opened.page
        arrows = page.locator("#chart g.mark-rule line[stroke-dasharray='4,3']")
        expect(arrows).to_have_count(0)
        page.check("input[name='show_movements']")
        expect(arrows).to_have_count(1)
        assert "compress the data: FP32 over DRAM" in (page.text_content("#details-body") or "")


HOSTILE = '</script><img src=x onerror="document.title=1">k<&"\'\u202e\ud800"'


def test_hostile_names(browser: Browser, tmp_path: Path) -> None:
    missing = Missing(what="<b>bytes</b>", metrics=("dram__bytes.sum",))
    kernel = place(HOSTILE, machine=make_machine(name=HOSTILE), missing=[missing])
    unplaced = build_kernel(name=f"unplaced {HOSTILE}")
    with show(browser, tmp_path, [kernel, unplaced]) as opened:
        page = opened.page
        assert page.title() == "Roofline"
        assert page.locator("img").count() == 0
        assert "onerror" in (page.text_content(find_name(page, "k0")) or "")
        assert "<b>bytes</b>" in (page.text_content("#details-body") or "")
        box = page.locator("#chart g[class*='points'] path").first.bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        tooltip = page.locator("#vg-tooltip-element")
        expect(tooltip).to_contain_text("onerror")
        assert page.locator("img").count() == 0
        assert page.locator("#unplaced-title").is_visible()


def test_nothing_placed(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "empty.html"
    file.write_text(render_roofline_page(build_report(build_kernel(name="lost"))), encoding="utf-8")
    with open_page(browser, file) as opened:
        assert "No kernel has a place in a roofline" in (opened.page.text_content("main") or "")
        assert "lost" in (opened.page.text_content("main") or "")
        assert list_violations(opened.page) == []
        opened.check_quiet()


def test_printed_page_has_the_whole_list(browser: Browser, tmp_path: Path, pictures: Path) -> None:
    with show(browser, tmp_path, place_many(30)) as opened:
        page = opened.page
        page.emulate_media(media="print")
        assert page.locator("#controls").is_hidden()
        last = page.locator("#kernels tbody tr").last.bounding_box()
        names = page.locator(".names").bounding_box()
        assert last is not None
        assert names is not None
        assert last["y"] + last["height"] <= names["y"] + names["height"] + 1
        opened.photograph(pictures, "roofline-print", whole=True)


def test_size_of_small_and_large_pages() -> None:
    small = render_roofline_page(build_report(*place_many(3)))
    large = render_roofline_page(build_report(*place_many(100)))
    assert len(small) < 1_500_000
    assert len(large) < 3_000_000
    assert not re.search(r"(?:src|href)=[\"']?https?:", small)
    assert MemoryLevel.DRAM.value in small
