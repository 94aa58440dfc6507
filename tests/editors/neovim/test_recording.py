"""A program is run without a GPU, once its user has allowed it; its launches are emulated on the lines of its source."""

import os
import shutil
from pathlib import Path

import pytest

from tests.editors.neovim.conftest import StartNeovim
from tests.editors.neovim.embedded import Neovim
from tests.editors.neovim.reading import hover, put_cursor
from tests.editors.workspace import Workspace
from tests.programs.built import SOURCES, require_compiler

pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")

SOURCE = SOURCES / "allocations.cu"
OPTIONS = """{ settings = { simulation = { onSave = false }, emulation = {
    recordBuildCommand = { 'nvcc', '-std=c++17', 'symbols.cu', '-o', 'symbols' },
} } }"""
ANSWER = """
    _G.asked = {}
    vim.ui.input = function(options, take)
      table.insert(_G.asked, { options.prompt, options.default })
      vim.schedule(function() take(_G.typed) end)
    end
    vim.ui.select = function(items, options, take)
      table.insert(_G.asked, { options.prompt })
      vim.schedule(function()
        take(vim.iter(items):find(function(item) return item.title == _G.choice end))
      end)
    end
"""


def test_a_program_is_run_and_its_kernels_are_emulated(start_neovim: StartNeovim, workspace: Workspace) -> None:
    require_compiler()
    for name in ("symbols.cu", "checking.h"):
        shutil.copy(SOURCES / name, workspace.folder)
    neovim = start_neovim(OPTIONS, ANSWER)
    neovim.lua("vim.diagnostic.config({ virtual_text = false })")  # which may leave no room for lenses on the screen
    neovim.edit(workspace.folder / "symbols.cu")
    neovim.wait_for_lua("return #vim.lsp.get_clients({ bufnr = 0 }) > 0")
    neovim.lua("_G.choice = 'Never'")
    neovim.command("GpaLsp record ./symbols")
    neovim.wait_for_lua("return #_G.asked == 1")
    assert "Recording launches runs a program" in neovim.lua("return _G.asked[1][1]")
    neovim.wait_for_lua("return require('gpa_lsp').question() == ''")
    assert not (workspace.folder / "symbols").exists(), "not even built"
    neovim.lua("_G.choice, _G.typed = 'Run once', './symbols'")
    neovim.command("GpaLsp record")
    neovim.wait_for_lua("return #_G.asked == 3")
    assert neovim.lua("return _G.asked[2][2]") == "./symbols", "what was used last is offered"
    neovim.wait_for("words", lambda: "recorded launches of 1 kernel: filter" in neovim.messages())
    neovim.wait_for_text("predicted: ")


def find_line(text: str) -> int:
    (line,) = (number for number, one in enumerate(SOURCE.read_text().splitlines(), 1) if text in one)
    return line


def save_picture(neovim: Neovim, name: str) -> None:
    """Where pictures are wanted."""
    folder = os.environ.get("GPA_LSP_SCREENSHOTS")
    if folder:
        neovim.screen.save(Path(folder) / f"{name}.svg")


def test_findings_about_allocations_stand_on_their_lines(start_neovim: StartNeovim, workspace: Workspace) -> None:
    """Of a run in the editor, with the plugin's own options; the hover has the other lines that they are about."""
    require_compiler()
    for name in ("allocations.cu", "checking.h"):
        shutil.copy(SOURCES / name, workspace.folder)
    neovim = start_neovim(OPTIONS.replace("symbols", "allocations"), ANSWER)
    neovim.edit(workspace.folder / "allocations.cu")
    neovim.wait_for_lua("return #vim.lsp.get_clients({ bufnr = 0 }) > 0")
    neovim.lua("_G.choice = 'Run once'")
    neovim.command("GpaLsp record ./allocations")
    neovim.wait_for_lua("""
      return #vim.tbl_filter(function(one) return one.code == 'emulated unused' end, vim.diagnostic.get(0)) == 1
    """)
    save_picture(neovim, "allocations")
    told = neovim.lua(
        "return vim.tbl_map(function(one) return { one.lnum + 1, one.message } end, vim.diagnostic.get(0))"
    )
    assert [
        find_line("// partly used"),
        "`result` partly used: kernels access 1 MiB (25 %) of 4 MiB (emulated)",
    ] in told
    put_cursor(neovim, find_line("// partly used") - 1)
    neovim.lua("vim.diagnostic.open_float()")
    neovim.wait_for_text("1 MiB (25 %) of 4 MiB")
    save_picture(neovim, "allocations-problem")
    put_cursor(neovim, find_line("// never read") - 1)
    assert f"allocated here: line {find_line('// partly used')}" in hover(neovim)
    save_picture(neovim, "allocations-hover")
