"""The page of a report in a real browser: what is chosen, how one gets there, and that nothing in a profile becomes markup."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from gpa_lsp.document.html_report.page import render_html_report
from gpa_lsp.report.model import Report
from tests.pages.accessibility import list_violations
from tests.pages.browser import NARROW, OpenPage, open_page, wait_until
from tests.render.html_report.large_reports import make_large_report
from tests.render.html_report.page_examples import (
    MARKUP,
    SOURCE_FILE,
    make_before_and_after,
    make_hostile,
    make_page_example,
)
from tests.render.time_courses import make_commit, make_course

VS_CODE = (
    "window.heard = []; window.acquireVsCodeApi = () => ({ postMessage: (message) => window.heard.push(message) });"
)
READY = "#kernel[aria-busy=false] h2"


def write_page(folder: Path, report: Report, name: str = "page", before: Report | None = None) -> Path:
    file = folder / f"{name}.html"
    page = render_html_report(report, before=before)
    file.write_text(page, encoding="utf-8", errors="backslashreplace")
    return file


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with several kernels; the first has everything."""
    return write_page(tmp_path_factory.mktemp("pages"), make_page_example())


@pytest.fixture
def opened(browser: Browser, example: Path) -> Iterator[OpenPage]:
    with open_page(browser, example) as page:
        page.page.wait_for_selector(READY)
        yield page


def list_errors(opened: OpenPage) -> list[str]:
    """Complaints of the page, without Vega-Lite's remarks on specifications."""
    return [text for text in opened.complaints if not text.startswith("warning: WARN")]


def read_heading(page: Page) -> str:
    return page.inner_text("#kernel h2")


def list_kernels(page: Page) -> list[str]:
    return page.eval_on_selector_all(
        "#kernel-table tr[data-kernel]:not([hidden])", "rows => rows.map((row) => row.querySelector('a').textContent)"
    )


def list_chosen(page: Page, pane: str, kind: str) -> list[str]:
    return page.eval_on_selector_all(
        f"{pane} tr.{kind}",
        "rows => rows.map((row) => row.querySelector('.text').textContent.replaceAll('│', '').trim())",
    )


def open_all_parts(page: Page) -> None:
    """Unfold every part of the kernel."""
    page.eval_on_selector_all("section.part > details", "parts => parts.forEach((part) => { part.open = true; })")


def see_all_charts(page: Page) -> None:
    open_all_parts(page)
    for chart in page.query_selector_all(".view:not([hidden]) [data-chart], .charts [data-chart]"):
        chart.scroll_into_view_if_needed()
        wait_until(page, "(chart) => chart.querySelector('svg')?.getBoundingClientRect().width > 100", arg=chart)


def test_it_opens_from_disk_and_shows_the_longest_kernel(opened: OpenPage) -> None:
    page = opened.page
    assert list_kernels(page)[0] == "smooth"
    assert read_heading(page) == "smooth"
    assert page.get_attribute("#kernel-table tbody tr.current a", "aria-current") == "true"
    see_all_charts(page)
    assert list_errors(opened) == []
    assert opened.requests == []


def test_all_problems_stand_at_the_top(opened: OpenPage) -> None:
    assert "record it again" in opened.page.inner_text(".problems")


def test_a_click_chooses_a_kernel_and_the_back_button_returns(opened: OpenPage) -> None:
    page = opened.page
    page.click("#kernel-table a >> text=copy")
    wait_until(page, "document.querySelector('#kernel h2').textContent === 'copy'")
    assert page.evaluate("location.hash") == "#k1"
    assert page.evaluate("document.activeElement.textContent") == "copy"
    page.go_back()
    wait_until(page, "document.querySelector('#kernel h2').textContent === 'smooth'")
    page.go_forward()
    wait_until(page, "document.querySelector('#kernel h2').textContent === 'copy'")


def test_the_keyboard_chooses_a_kernel(opened: OpenPage) -> None:
    page = opened.page
    page.focus("#kernel-table tr[data-kernel='1'] a")
    page.keyboard.press("Enter")
    wait_until(page, "document.querySelector('#kernel h2').textContent === 'copy'")


def test_a_link_leads_to_a_part_of_a_kernel(browser: Browser, example: Path) -> None:
    with open_page(browser, example, fragment="#k0/occupancy") as opened:
        opened.page.wait_for_selector(READY)
        wait_until(opened.page, "document.activeElement.matches('#k0-occupancy summary')")
        assert opened.page.get_attribute("#k0-occupancy details", "open") is not None
        assert list_errors(opened) == []


def test_a_link_that_leads_nowhere_opens_the_first_kernel(browser: Browser, example: Path) -> None:
    for fragment in ("#k99", "#nothing", "#k0/unknown", "#k0/line/99/1", "#k0/row/9999", "#k0/row/x"):
        with open_page(browser, example, fragment=fragment) as opened:
            opened.page.wait_for_selector(READY)
            assert read_heading(opened.page) == "smooth"
            assert list_errors(opened) == []


def test_a_line_marks_its_instructions(opened: OpenPage) -> None:
    page = opened.page
    page.click(".source-pane tr:has(td.number:text-is('9'))")
    assert list_chosen(page, ".source-pane", "is-chosen") == ["out[i] = expf(sum) / n;"]
    assert list_chosen(page, ".sass-pane", "is-related") == ["MUFU.EX2 R8, R6", "CALL.REL.NOINC 0x70"]
    assert page.evaluate("location.hash").endswith("/9")


def test_an_instruction_marks_its_lines_inside_and_outside(opened: OpenPage) -> None:
    page = opened.page
    page.click(".sass-pane tr:has-text('FFMA R6, R2, R2, R6')")
    assert list_chosen(page, ".sass-pane", "is-chosen") == ["FFMA R6, R2, R2, R6"]
    assert list_chosen(page, ".source-pane", "is-related") == [
        "__device__ float square(float x) { return x * x; }",
        "sum += square(in[i * n + k]);",
    ]
    panel = page.inner_text(".chosen")
    assert "Stalled on" in panel
    assert "0x10 LDG.E R2, [R4.64]" in panel
    assert "inlined into smooth.cu:8" in panel


def test_causes_are_links_between_instructions(opened: OpenPage) -> None:
    page = opened.page
    page.click(".sass-pane tr:has-text('FFMA R6, R2, R2, R6')")
    page.click(".chosen a:has-text('LDG.E')")
    wait_until(page, "document.querySelector('.sass-pane tr.is-chosen')?.textContent.includes('LDG.E')")
    assert "Stalls" in page.inner_text(".chosen")
    page.go_back()


def test_advice_leads_to_its_instruction(opened: OpenPage) -> None:
    page = opened.page
    open_all_parts(page)
    page.locator("article.advice li li a").first.dispatch_event(
        "click"
    )  # wherever what is still drawn above moves it to
    page.wait_for_selector(".sass-pane tr.is-chosen")
    assert list_chosen(page, ".sass-pane", "is-chosen") == ["LDG.E R2, [R4.64]"]


def test_the_panes_are_walked_by_keyboard(opened: OpenPage) -> None:
    page = opened.page
    page.focus(".sass-pane tr[tabindex='0']")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    assert "S2R" in page.evaluate("document.activeElement.textContent")
    page.keyboard.press("Enter")
    assert list_chosen(page, ".sass-pane", "is-chosen") == ["S2R R0, SR_TID.X"]
    page.keyboard.press("End")
    assert page.evaluate("document.activeElement.rowIndex") == page.locator(".sass-pane tr[data-index]").count()
    assert page.locator(".sass-pane tr[tabindex='0']").count() == 1


def test_the_flame_graph_is_drawn_walked_and_searched(opened: OpenPage, pictures: Path) -> None:
    page = opened.page
    page.click("#k0-flame summary")
    page.locator("#k0-flame .flame-chart").scroll_into_view_if_needed()
    wait_until(page, "document.querySelectorAll('.flame-chart svg path').length > 5")
    page.focus(".flame-chart")
    assert page.inner_text(".flame-chosen").startswith("smooth")
    page.keyboard.press("ArrowDown")
    assert page.inner_text(".flame-chosen").startswith("smooth.cu:8 sum += square(in[i * n + k]);")
    page.keyboard.press("Enter")
    assert page.is_enabled(".flame-whole")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Escape")
    assert page.is_disabled(".flame-whole")
    page.fill(".flame-search", "LONG_SCOREBOARD")
    assert "frame" in page.inner_text(".flame-found")
    opened.photograph(pictures, "flame")
    page.focus(".flame-chart")
    page.keyboard.press("ArrowDown")
    page.click(".flame-chosen a")
    wait_until(page, "document.querySelector('.source-pane tr.is-chosen') !== null")
    assert list_errors(opened) == []


def test_verdict_source_and_sass_stand_within_a_screen_and_a_half(browser: Browser, example: Path) -> None:
    with open_page(browser, example, viewport={"width": 1280, "height": 800}) as opened:
        page = opened.page
        page.wait_for_selector(READY)
        assert page.locator(".remedies li").count() == 3
        for pane in (".source-pane", ".sass-pane"):
            box = page.locator(pane).bounding_box()
            assert box is not None
            assert box["y"] + box["height"] <= 1200
        assert page.evaluate("document.querySelectorAll('section.part > details[open]').length") == 0
        assert page.evaluate("document.documentElement.scrollHeight") < 2000


def test_at_800_pixels_the_list_of_kernels_shows_their_advice(browser: Browser, example: Path) -> None:
    with open_page(browser, example, viewport={"width": 800, "height": 900}) as opened:
        page = opened.page
        page.wait_for_selector(READY)
        box = page.locator("tr[data-kernel='0'] td.advice").bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= 800


def test_marks_of_analyses_stand_on_their_lines(opened: OpenPage) -> None:
    page = opened.page
    assert "1 remark" in page.inner_text(".source-pane tr:has(td.number:text-is('8'))")
    page.click(".sass-pane tr:has-text('LDG.E')")
    assert "4.0 times what it needs" in page.inner_text(".chosen")


def test_a_new_analysis_is_shown_without_a_template_of_its_own(opened: OpenPage) -> None:
    text = opened.page.inner_text("#k0-brand_new")
    for words in (
        "A question nobody asked before",
        "This holds it up.",
        "Do less.",
        "25 of 100",
        "halve the bytes",
        "dram__bytes.sum",
    ):
        assert words in opened.page.text_content("#k0-brand_new"), text
    assert "nobody counted" in opened.page.text_content("#k0-silent")


def test_the_second_view_of_the_roofline_and_its_suggestions(opened: OpenPage) -> None:
    page = opened.page
    see_all_charts(page)
    first = page.inner_html(".view:not([hidden]) [data-chart]")
    page.check(".show-movements")
    wait_until(
        page, "(before) => document.querySelector('.view:not([hidden]) [data-chart]').innerHTML !== before", arg=first
    )
    page.click("button:text-is('Warp instructions')")
    see_all_charts(page)
    assert page.get_attribute("button:text-is('Operations')", "aria-pressed") == "false"
    assert list_errors(opened) == []


def test_headings_sort_what_was_measured_together(opened: OpenPage) -> None:
    page = opened.page
    before = list_kernels(page)[:5]
    page.click("th[data-key=name] button")
    assert list_kernels(page)[:5] == sorted(before, key=str.lower)
    assert page.get_attribute("th[data-key=name]", "aria-sort") == "ascending"
    page.click("th[data-key=samples] button")
    assert list_kernels(page)[0] == "smooth"
    page.click("th[data-key=samples] button")
    assert list_kernels(page)[4] == "smooth"


def test_the_filter_hides_what_does_not_match(opened: OpenPage) -> None:
    page = opened.page
    page.fill("#filter", "IDLE")
    assert list_kernels(page) == ["idle_kernel"]
    page.fill("#filter", "unroll")
    assert list_kernels(page) == ["smooth"]
    page.fill("#filter", "no such kernel")
    assert page.is_visible("#no-match")
    page.fill("#filter", "")
    assert len(list_kernels(page)) == 6


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("narrow", [False, True])
def test_everybody_can_use_it(browser: Browser, example: Path, pictures: Path, dark: bool, narrow: bool) -> None:
    with open_page(browser, example, dark=dark, viewport=NARROW if narrow else None) as opened:
        page = opened.page
        page.wait_for_selector(READY)
        see_all_charts(page)
        page.click(".sass-pane tr:has-text('FFMA')")
        for details in page.query_selector_all("details:not([open]) > summary"):
            if details.is_visible():
                details.click()
        assert list_violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        name = f"report-{'dark' if dark else 'light'}-{'narrow' if narrow else 'wide'}"
        opened.photograph(pictures, name, whole=True)


def test_charts_follow_the_colours(opened: OpenPage) -> None:
    page = opened.page
    see_all_charts(page)
    before = page.inner_html(".view:not([hidden]) [data-chart]")
    page.click("#theme")
    wait_until(
        page, "(before) => document.querySelector('.view:not([hidden]) [data-chart]').innerHTML !== before", arg=before
    )
    assert list_errors(opened) == []


@pytest.mark.parametrize("dark", [False, True])
def test_no_text_of_a_profile_becomes_markup(browser: Browser, tmp_path: Path, dark: bool) -> None:
    file = write_page(tmp_path, make_hostile())
    with open_page(browser, file, dark=dark) as opened:
        page = opened.page
        page.wait_for_selector(READY)
        see_all_charts(page)
        page.click(".sass-pane tr[data-index]:has(td.text)")
        page.click(".source-pane tr[data-index]:has(td.text)")
        page.evaluate(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )  # two frames are drawn
        assert page.evaluate("window.hit") is None
        assert page.locator("#kernel img, #kernel script").count() == 0
        assert list_chosen(page, ".source-pane", "is-chosen") == [MARKUP]
        assert "half a character" in page.inner_text(".sass-pane")
        assert list_errors(opened) == []
        assert opened.requests == []
        assert list_violations(page) == []
    assert "/home/somebody" not in file.read_text()


def test_an_editor_is_told_where_to_go(browser: Browser, example: Path) -> None:
    with open_page(browser, example, before=VS_CODE) as opened:
        page = opened.page
        page.wait_for_selector(READY)
        page.click(".source-pane tr:has(td.number:text-is('9'))")
        page.click(".sass-pane tr:has-text('LDG.E')")
        page.click(".sass-pane tr:has-text('MUFU.RCP')")
        ready, line, instruction, elsewhere = page.evaluate("window.heard")
        assert ready == {"command": "ready"}
        assert (line["command"], line["file"], line["line"]) == ("open", SOURCE_FILE, 9)
        assert (instruction["file"], instruction["line"], instruction["offset"]) == (SOURCE_FILE, 8, 0x10)
        assert (elsewhere["file"], elsewhere["offset"]) == (None, 0)
        page.click(".verdict a >> nth=0")  # a link of the page goes to the page, not to the editor
        assert len(page.evaluate("window.heard")) == 4
        page.evaluate("window.postMessage({ command: 'show', address: '#k1' }, '*')")
        wait_until(page, "document.querySelector('#kernel h2').textContent === 'copy'")


def test_many_kernels_open_one_by_one(browser: Browser, tmp_path: Path) -> None:
    file = write_page(tmp_path, make_large_report(100, 60))
    with open_page(browser, file) as opened:
        page = opened.page
        page.wait_for_selector(READY)
        assert len(list_kernels(page)) == 100
        for number in (7, 42, 99):
            page.click(f"#kernel-table a[href='#k{number}']")
            wait_until(
                page,
                "(name) => document.querySelector('#kernel h2').textContent === name",
                arg=f"solver::step_{number}<float>",
            )
        assert page.locator("#kernel h2").count() == 1
        assert list_errors(opened) == []
        assert list_violations(page) == []


def test_rows_of_a_long_kernel_are_made_when_they_are_seen(browser: Browser, tmp_path: Path) -> None:
    file = write_page(tmp_path, make_large_report(1, 6000))
    with open_page(browser, file, fragment="#k0/row/5990") as opened:
        page = opened.page
        page.wait_for_selector(".sass-pane tr.is-chosen")
        assert page.get_attribute(".sass-pane table", "aria-rowcount") == "6003"
        assert page.locator(".sass-pane tr[data-index]").count() < 1500
        page.keyboard.press("Home")
        wait_until(page, "document.querySelector('.sass-pane').scrollTop === 0")
        page.evaluate("document.querySelector('.sass-pane').scrollTop = 60000")
        wait_until(
            page,
            "[...document.querySelectorAll('.sass-pane tr[data-index]')].some((row) => Math.abs(row.offsetTop - 60000) < 200)",
        )
        assert list_errors(opened) == []


def test_what_became_of_the_kernels_since_an_earlier_profile(browser: Browser, tmp_path: Path) -> None:
    before, after = make_before_and_after()
    with open_page(browser, write_page(tmp_path, after, before=before)) as opened:
        page = opened.page
        page.wait_for_selector(READY)
        assert "2.00×" in page.inner_text("#kernel-table tbody tr:first-child")
        assert "new" in page.inner_text("#kernel-table tbody tr:last-child")
        assert "Only in the earlier profile: gone" in page.inner_text("#kernels")
        assert "faster" in page.inner_text("#k0-summary")
        assert list_errors(opened) == []
        assert list_violations(page) == []


def test_a_report_without_kernels_says_so(browser: Browser, tmp_path: Path) -> None:
    with open_page(browser, write_page(tmp_path, Report(problems=(), kernels=()))) as opened:
        assert "No kernel was found" in opened.page.inner_text("main")
        assert list_errors(opened) == []
        assert list_violations(opened.page) == []


def test_data_that_cannot_be_unpacked_is_said_to_be(browser: Browser, example: Path) -> None:
    with open_page(browser, example, before="delete window.DecompressionStream;") as opened:
        opened.page.wait_for_selector("#kernel .notice")
        assert "cannot unpack" in opened.page.inner_text("#kernel .notice")
        assert len(list_kernels(opened.page)) == 6


def test_times_over_runs_are_folded_under_one_sentence(browser: Browser, tmp_path: Path, pictures: Path) -> None:
    course = make_course([2.1e6, 1.6e6, 2.2e6, 1.3e6], {0: make_commit(1, MARKUP), 2: make_commit(2, "Unroll by 4")})
    file = tmp_path / "page.html"
    page = render_html_report(make_page_example(), courses={0: course})
    file.write_text(page, encoding="utf-8", errors="backslashreplace")
    with open_page(browser, file) as opened:
        opened.page.wait_for_selector(READY)
        part = opened.page.locator("#k0-history")
        assert "2.10 ms → 1.30 ms over 4 runs; slower in run 3" in part.locator(".one-line").inner_text()
        part.locator("summary").first.focus()
        opened.page.keyboard.press("Enter")
        part.locator("[data-chart] svg").wait_for()
        part.scroll_into_view_if_needed()
        opened.photograph(pictures, "report-history")
        assert part.locator("tbody tr").count() == 4
        assert list_violations(opened.page) == []
        assert list_errors(opened) == []
        opened.page.click("#kernel-table tr[data-kernel='1'] a")
        opened.page.wait_for_selector("#k1-measured")
        assert opened.page.locator("#k1-history").count() == 0
