"""A program is run without a GPU, once its user has allowed it; its launches are emulated on the lines of its source."""

import shutil

import pytest

from tests.editors.neovim.conftest import NEWEST, StartNeovim
from tests.editors.workspace import Workspace
from tests.programs.built import SOURCES, require_compiler

pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")

VERSIONS = NEWEST
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
