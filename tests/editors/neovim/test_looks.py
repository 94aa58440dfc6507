"""What is shown can be read: lenses are no fainter than hints, and a page has no marks of Markdown and nothing beyond the edge."""

from tests.editors.neovim.embedded import Neovim
from tests.editors.neovim.reading import open_source
from tests.editors.workspace import Workspace

LENS = "return vim.api.nvim_get_hl(0, { name = 'LspCodeLens' }).link"


def read_colour(neovim: Neovim, text: str) -> int:
    """Of the letters of a text on the screen."""
    place = neovim.screen.find(text)
    assert place is not None
    row, column = place
    return neovim.screen.foreground_at(row, column)


def test_a_line_above_a_kernel_is_as_legible_as_a_hint(neovim: Neovim, workspace: Workspace) -> None:
    neovim.lua("vim.diagnostic.config({ virtual_text = false })")
    neovim.command("set nowrap")
    open_source(neovim, workspace.source)
    neovim.wait_for_text("← line")
    neovim.wait_for_text("Unroll a loop")
    assert read_colour(neovim, "Unroll a loop") == read_colour(neovim, "← line")


def test_a_colour_of_your_own_stays(neovim: Neovim, workspace: Workspace) -> None:
    open_source(neovim, workspace.source)
    assert neovim.lua(LENS) == "GpaHint"
    neovim.command("highlight! link LspCodeLens Question")
    neovim.lua("require('gpa_lsp.colours').apply()")
    assert neovim.lua(LENS) == "Question"
    neovim.command("highlight! link LspCodeLens NonText")  # as Neovim has it: for the tests that come


def test_the_page_of_a_kernel_is_not_shown_as_its_markup(neovim: Neovim, workspace: Workspace) -> None:
    neovim.command("set nowrap")
    open_source(neovim, workspace.source)
    neovim.command("GpaLsp kernel relax")
    neovim.wait_for_lua("return vim.bo.filetype == 'markdown'")
    neovim.wait_for_text("limit Unknown: ")
    neovim.wait_for("a page without marks", lambda: not any(neovim.screen.find(mark) for mark in ("**", "`")))
    assert neovim.lua("return { vim.wo.wrap, vim.wo.linebreak }") == [True, True]
    neovim.command("close")
    assert neovim.lua("return vim.wo.wrap") is False, "other windows are as they were"
