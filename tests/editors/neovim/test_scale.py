"""Much of everything: a long source with many kernels, a hundred reports, two Neovims in one workspace."""

import re
from pathlib import Path

import pytest

from gpa_lsp.code.binary.tool_location import find_tool
from tests.bench.many_kernels import make_workspace as make_many_kernels
from tests.conftest import find_corpus
from tests.editors.neovim.conftest import NEWEST, ROOT, StartNeovim, make_init
from tests.editors.neovim.embedded import Neovim
from tests.editors.neovim.reading import cursor_line, hover, open_source, put_cursor, wait_for_heat
from tests.editors.neovim.test_measuring import make_options
from tests.editors.workspace import DOUBLES, VICTIM, Workspace, add_reports

VERSIONS = NEWEST
CROWD = 170  # kernels in one source: 1,800 lines, of which 300 and more are hot
SCREEN_LINES = 40

LIST_HINTS = """
    local namespace = vim.api.nvim_get_namespaces()['gpa_lsp.hints']
    return vim.tbl_map(function(mark) return mark[2] end, vim.api.nvim_buf_get_extmarks(0, namespace, 0, -1, {}))
"""


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A long source with a report of its kernels."""
    if find_tool("nvcc") is None or find_corpus() is None:
        pytest.skip("nvcc or the corpus of real reports (GPA_LSP_CORPUS) is missing")
    folder = tmp_path_factory.mktemp("crowd") / "workspace"
    folder.mkdir()
    source, _ = make_many_kernels(folder, CROWD)
    return source


def count_on_screen(lines: list[int]) -> int:
    """The most of some lines that any screen holds."""
    return max((sum(first <= line < first + SCREEN_LINES for line in lines) for first in lines), default=0)


def test_a_long_source_is_not_crowded_and_shows_all_on_demand(program: Path, crowd: Path) -> None:
    neovim = Neovim(program, crowd.parent, make_init(), {"PYTHONPATH": str(ROOT)})
    try:
        neovim.edit(crowd)
        neovim.wait_for("all of it", lambda: f"{CROWD} kernels" in neovim.lua("return require('gpa_lsp').status()"))
        text = crowd.read_text(encoding="utf-8").split("\n")
        kernels = count_on_screen([number for number, line in enumerate(text) if "__global__" in line])
        bearable = max(12, 3 * (kernels + 1))

        def find_bearable() -> list[int] | None:
            lines: list[int] = neovim.lua(LIST_HINTS)
            return lines if 0 < count_on_screen(lines) <= bearable else None

        neovim.wait_for("hints", find_bearable)
        neovim.command("GpaLsp hints on")
        neovim.wait_for("the others", lambda: count_on_screen(neovim.lua(LIST_HINTS)) > bearable)
        neovim.command("GpaLsp hints off")
        lines = neovim.wait_for("as many as before", find_bearable)

        wait_for_heat(neovim)
        put_cursor(neovim, 0)
        neovim.command("GpaLsp next")
        neovim.wait_for("a hot line", lambda: cursor_line(neovim) > 0)
        line = cursor_line(neovim)
        assert "kernel" in hover(neovim)
        neovim.lua("vim.api.nvim_buf_set_lines(0, 0, 0, false, { '// one' })")
        neovim.wait_for("hints that moved", lambda: neovim.lua(LIST_HINTS) == [one + 1 for one in lines])
        put_cursor(neovim, line + 1)
        assert "kernel" in hover(neovim)
    finally:
        neovim.quit()


def test_of_a_hundred_reports_the_newest_counts(start_neovim: StartNeovim, workspace: Workspace) -> None:
    add_reports(workspace, 99)
    neovim = start_neovim()
    open_source(neovim, workspace.source)
    neovim.wait_for("all of them", lambda: "2 kernels" in neovim.lua("return require('gpa_lsp').status()"))
    neovim.wait_for_text("relax · 186 µs")
    neovim.wait_for_text("normalise · 41.2 µs")
    put_cursor(neovim, workspace.find_line(VICTIM), 8)

    def read_page() -> str:
        """The line's page as it is now: an open one keeps what was known when it was asked for."""
        neovim.command("GpaLsp page line")
        neovim.wait_for("the page", lambda: neovim.lua("return vim.bo.filetype") == "markdown")
        text: str = neovim.lua("return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')")
        neovim.command("close")
        return text

    neovim.wait_for("its past", lambda: re.search(r"→ 186 µs over \d\d+ runs", read_page()))

    neovim.lua("vim.ui.select = function(items, _, take) _G.offered = items; take(items[2]) end")
    neovim.command("GpaLsp show measurement relax")
    neovim.wait_for("a question", lambda: neovim.lua("return _G.offered and #_G.offered") == 10)
    neovim.wait_for("an older one", lambda: "relax · 186 µs" not in neovim.screen.text)


def test_what_one_neovim_measures_the_other_shows_and_does_not_ask_again(
    start_neovim: StartNeovim, workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPA_LSP_DATA_DIR", str(tmp_path / "data"))  # one person's, as the answers are
    first, second = (start_neovim(make_options(workspace)) for _ in range(2))
    for neovim in (first, second):
        open_source(neovim, workspace.source)
        neovim.wait_for_text("relax · 186 µs")
    put_cursor(first, workspace.find_line(DOUBLES))
    first.command("substitute/0.7 + 0.1/0.7f + 0.1f/")
    first.command("write")
    first.wait_for("the question", lambda: "a save waits" in first.lua("return require('gpa_lsp').status()"))
    first.command("GpaLsp allow always")
    for neovim in (first, second):
        neovim.wait_for_text("−44 %")
    assert workspace.runs == 1

    second.command("edit!")
    second.wait_for_text("relax · 10")
    second.command("GpaLsp measure")
    second.wait_for("another run", lambda: workspace.runs == 2)
    second.wait_for("its end", lambda: workspace.find_running() == [])
    assert second.lua("return require('gpa_lsp').question()") == ""
