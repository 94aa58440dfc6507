"""Results of compiling fixes, in Neovim: in a window of ours, and in the menu of every server's actions."""

from tests.editors.neovim.conftest import NEWEST
from tests.editors.neovim.embedded import Neovim
from tests.editors.neovim.reading import put_cursor
from tests.editors.workspace import DOUBLES, LOOP, Workspace

VERSIONS = NEWEST
MENU = """
    local chosen = ...
    vim.ui.select = function(items, options) vim.g.offered = vim.tbl_map(options.format_item, items) end
    vim.lsp.buf.code_action({ context = { only = { 'quickfix' }, diagnostics = {} } })
"""


def test_a_window_shows_what_changes_and_what_the_compiler_says(source: Neovim, workspace: Workspace) -> None:
    put_cursor(source, workspace.find_line(LOOP), 4)
    source.command("GpaLsp fix")
    source.wait_for_text("- #pragma unroll 1")
    source.wait_for_text("+ #pragma unroll 8")
    source.wait_for_text("Compiled: 16 → 32 registers, occupancy unchanged, loads in flight 1 → 8")
    source.wait_for_text("Estimated gain: ")
    assert not source.lua("return vim.bo[vim.fn.bufnr('relax.cu')].modified")
    source.type("<CR>")
    source.wait_for("the pragma", lambda: source.lua("return vim.fn.search('unroll 8', 'nw')") > 0)
    assert source.messages() == ""


def test_the_menu_of_all_servers_says_it_too(source: Neovim, workspace: Workspace) -> None:
    put_cursor(source, workspace.find_line(DOUBLES), 10)

    def list_titles() -> str:
        source.lua(MENU)
        return str(source.lua("return vim.g.offered or {}"))

    source.wait_for("a verdict", lambda: "16 → 12 registers" in list_titles())


def test_a_line_without_a_fix_says_so(source: Neovim) -> None:
    put_cursor(source, 2, 0)
    source.command("GpaLsp fix")
    source.wait_for("a word", lambda: "no fix is known" in source.messages())
