"""The frame of all pages in a real browser: colours, embedded data, the policy, the way into an editor."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from gpa_lsp.document.page import embed_compressed, embed_json, make_environment, render_page
from gpa_lsp.foundation.visible_text import make_visible
from tests.pages.accessibility import list_violations
from tests.pages.browser import open_page, wait_until

NASTY = "</script><img src=x onerror='window.hit = 1'><!-- \u2028 \U0001f600 &amp;"
FRAME = "gpa_lsp.document.page/frame.html.jinja"
VS_CODE = (
    "window.heard = []; window.acquireVsCodeApi = () => ({ postMessage: (message) => window.heard.push(message) });"
)


@pytest.fixture
def shell(tmp_path: Path) -> Path:
    """A page with nothing in it but nasty data."""
    page = render_page(FRAME, title=NASTY, values={}, scripts=["window.ours = 1;"])
    data = f'<script type="application/json" id="plain">{embed_json([NASTY])}</script>'
    data += f'<script type="text/plain" id="packed">{embed_compressed([NASTY])}</script>'
    data += "<script>window.foreign = 1;</script>"
    file = tmp_path / "a page #1 %20.html"
    file.write_text(page.replace("<script>", data + "<script>", 1), encoding="utf-8")
    return file


def test_data_arrives_as_it_is_shown_and_runs_nothing(browser: Browser, shell: Path) -> None:
    with open_page(browser, shell) as opened:
        page = opened.page
        assert page.title() == make_visible(NASTY)
        assert page.evaluate("gpaPage.readJson('plain')") == [make_visible(NASTY)]
        assert page.evaluate("gpaPage.readCompressed('packed')") == [make_visible(NASTY)]
        assert page.evaluate("[window.hit, window.ours]") == [None, 1]


def test_a_script_the_policy_does_not_name_does_not_run(browser: Browser, shell: Path) -> None:
    with open_page(browser, shell) as opened:
        assert opened.page.evaluate("window.foreign") is None
        assert any("Content Security Policy" in text for text in opened.complaints)


def test_a_browser_that_cannot_unpack_says_so(browser: Browser, shell: Path) -> None:
    with open_page(browser, shell, before="delete window.DecompressionStream;") as opened:
        said = opened.page.evaluate("gpaPage.readCompressed('packed').catch((error) => error.message)")
        assert "cannot unpack" in said


@pytest.mark.parametrize("dark", [False, True])
def test_colours_follow_the_system_and_then_the_reader(browser: Browser, shell: Path, dark: bool) -> None:
    with open_page(browser, shell, dark=dark) as opened:
        page = opened.page
        ground = "getComputedStyle(document.body).backgroundColor"
        before = page.evaluate(ground)
        assert page.evaluate("gpaPage.theme()") == ("dark" if dark else "light")
        page.click("#theme")
        assert page.evaluate("gpaPage.theme()") == ("light" if dark else "dark")
        assert page.evaluate(ground) != before
        assert list_violations(page) == []
        kept = page.evaluate("Object.entries(localStorage)")
    # What a page wrote just before it is loaded again, Chromium may lose on a busy machine: what is kept is handed on here.
    again = f"for (const [key, value] of {json.dumps(kept)}) localStorage.setItem(key, value);"
    with open_page(browser, shell, dark=dark, before=again) as opened:
        assert opened.page.evaluate("gpaPage.theme()") == ("light" if dark else "dark")


def test_without_storage_the_reader_still_chooses(browser: Browser, shell: Path) -> None:
    forbid = "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('no'); } });"
    with open_page(browser, shell, before=forbid) as opened:
        opened.page.click("#theme")
        assert opened.page.evaluate("gpaPage.theme()") == "dark"


def test_in_an_editor_the_editors_colours_count_and_places_are_sent_to_it(browser: Browser, shell: Path) -> None:
    with open_page(browser, shell, before=VS_CODE) as opened:
        page = opened.page
        page.evaluate("document.body.dataset.vscodeThemeKind = 'vscode-dark'")
        wait_until(page, "gpaPage.theme() === 'dark'")
        assert page.is_hidden("#theme")
        page.evaluate("gpaPage.openPlace({ file: 'k.cu', line: 3 })")
        assert page.evaluate("window.heard") == [{"command": "open", "file": "k.cu", "line": 3}]


VS_CODES_STYLE = "@layer vscode-default { code { color: white; background: navy; } }"
"""Style of its webviews, in the colours of its light theme of high contrast."""


def test_code_has_the_colour_of_its_text_in_an_editor(browser: Browser, shell: Path) -> None:
    with open_page(browser, shell, before=VS_CODE) as opened:
        look = opened.page.evaluate(
            """(style) => {
                const sheet = new CSSStyleSheet();
                sheet.replaceSync(style);
                document.adoptedStyleSheets = [sheet];
                const code = document.body.appendChild(document.createElement("code"));
                const { color, backgroundColor } = getComputedStyle(code);
                return [color === getComputedStyle(document.body).color, backgroundColor];
            }""",
            VS_CODES_STYLE,
        )
        assert look == [True, "rgba(0, 0, 0, 0)"]


def test_outside_an_editor_places_go_nowhere(browser: Browser, shell: Path) -> None:
    with open_page(browser, shell) as opened:
        assert opened.page.evaluate("gpaPage.openPlace({ file: 'k.cu', line: 3 })") is None


def test_templates_escape_and_miss_nothing() -> None:
    environment = make_environment()
    assert environment.from_string("{{ name }}").render(name=NASTY).count("<") == 0
    with pytest.raises(Exception, match="undefined"):
        environment.from_string("{{ nothing }}").render()
