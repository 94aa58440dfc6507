"""Clangd in the same buffer: nothing of its answers is lost, doubled or spoiled."""

import shutil
import sys
from pathlib import Path

import pytest

from tests.editors.neovim.conftest import StartNeovim, find_editors
from tests.editors.neovim.embedded import Neovim
from tests.editors.neovim.reading import (
    FLOAT,
    close_float,
    current_line,
    cursor_line,
    hover,
    open_source,
    put_cursor,
    wait_for_answers,
)
from tests.editors.workspace import CAUSE, VICTIM, Workspace

FAKE = Path(__file__).resolve().parent / "fake_clangd.py"

START = """
    vim.api.nvim_create_autocmd('FileType', { pattern = 'cuda', callback = function(event)
      local capabilities = vim.lsp.protocol.make_client_capabilities()
      capabilities.general.positionEncodings = { 'utf-8', 'utf-16' }
      vim.lsp.start({ name = 'clangd', cmd = COMMAND, capabilities = capabilities, root_dir = vim.fn.getcwd(),
        get_language_id = function() return 'cuda-cpp' end }, { bufnr = event.buf })
    end })
    _G.said = {}
    local say = vim.notify
    vim.notify = function(text, ...)
      table.insert(_G.said, text)
      return say(text, ...)
    end
    vim.notify_once = vim.notify
"""


def find_clangd() -> str | None:
    installed = find_editors() / "clangd"
    return str(installed) if installed.exists() else shutil.which("clangd")


@pytest.fixture
def neighbours(start_neovim: StartNeovim, workspace: Workspace) -> Neovim:
    """A Neovim with both servers in the source; where clangd is not installed, one that answers like it."""
    clangd = find_clangd()
    if clangd is None:
        command = f"{{ {sys.executable!r}, {str(FAKE)!r} }}"
    else:
        command = f"{{ {clangd!r}, '--background-index=false', '--log=error' }}"
    neovim = start_neovim(more=START.replace("COMMAND", command))
    open_source(neovim, workspace.source)
    neovim.wait_for_lua(
        "return #vim.lsp.get_clients({ bufnr = 0 }) == 2 and vim.iter(vim.lsp.get_clients()):all(function(c) return c.initialized end)"
    )
    neovim.wait_for_text("← line")
    return neovim


def test_definitions_references_and_hovers_are_those_of_clangd(neighbours: Neovim, workspace: Workspace) -> None:
    neovim = neighbours
    victim = workspace.find_line(VICTIM)
    word = workspace.source.read_text(encoding="utf-8").split("\n")[victim].index("signal")

    put_cursor(neovim, victim, word)
    neovim.lua("vim.lsp.buf.definition()")
    neovim.wait_for("the definition", lambda: cursor_line(neovim) == workspace.find_line(CAUSE))
    assert neovim.lua("return vim.fn.getqflist({ size = 0 }).size") == 0, "one definition, so no list"
    assert neovim.lua("return #vim.api.nvim_tabpage_list_wins(0)") == 1
    column = neovim.lua("return vim.api.nvim_win_get_cursor(0)[2]")
    assert current_line(neovim).encode()[column:].startswith(b"signal"), "columns are counted alike"

    put_cursor(neovim, victim, word)
    neovim.lua("vim.lsp.buf.references()")
    neovim.wait_for_lua("return #vim.fn.getqflist() > 0")
    assert neovim.lua("return vim.tbl_map(function(item) return item.lnum end, vim.fn.getqflist())") == [
        victim,
        victim + 1,
    ]
    neovim.command("cclose")

    put_cursor(neovim, victim, word)
    text = hover(neovim)
    neovim.wait_for("both hovers", lambda: _has_both(neovim.lua(FLOAT) or ""))
    assert text
    neovim.lua("vim.lsp.buf.hover()")
    neovim.wait_for("the cursor in it", lambda: neovim.lua("return vim.api.nvim_win_get_config(0).relative") != "")
    wait_for_answers(neovim)
    assert _has_both(neovim.lua("return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')")), (
        "still both"
    )
    close_float(neovim)

    put_cursor(neovim, workspace.find_line("if (i >= n)"), 8)
    text = hover(neovim)
    wait_for_answers(neovim)
    assert "long_scoreboard" not in (neovim.lua(FLOAT) or text), "we are silent there"

    said = neovim.lua("return _G.said")
    assert [line for line in said if "encoding" in line or "found" in line or "No information" in line] == []
    assert neovim.messages() == ""


def _has_both(text: str) -> bool:
    is_clangds = "the type of" in text or "float" in text
    return "long_scoreboard" in text and is_clangds and "# clangd" in text and "# gpa_lsp" in text
