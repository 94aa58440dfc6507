"""Described launches are timed on save, on a GPU of ours: asked first, and compared with before the edit."""

from pathlib import Path

import pytest

from tests.editors.made_up_gpu import make_gpu
from tests.editors.neovim.conftest import NEWEST, StartNeovim
from tests.editors.neovim.reading import hover
from tests.editors.neovim.test_measuring import ANSWER
from tests.editors.workspace import Workspace, write_moving

pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")

VERSIONS = NEWEST
OPTIONS = "{ settings = { simulation = { onSave = false } } }"


def test_a_save_times_the_described_launch(start_neovim: StartNeovim, workspace: Workspace, tmp_path: Path) -> None:
    gpu = make_gpu(tmp_path / "gpu")
    neovim = start_neovim(OPTIONS, ANSWER.replace("CHOICE", "Always in this workspace"), gpu.variables)
    neovim.lua("vim.diagnostic.config({ virtual_text = false })")
    neovim.edit(write_moving(workspace.folder))
    neovim.wait_for_text("predicted: ")
    neovim.command("write")
    neovim.wait_for(
        "the question", lambda: "asking" in neovim.lua("return require('gpa_lsp').question() ~= '' and 'asking' or ''")
    )
    neovim.command("GpaLsp allow")
    neovim.wait_for_text("measured 41.2 µs ± 0.05")
    gpu.times.write_text("36256")
    neovim.command("substitute/transpose/transpose/ | 5substitute/= in/= 2 * in/ | write")
    neovim.wait_for_text("12 % faster than before your edit")
    neovim.wait_for_text("long_scoreboard · 36.3 µs")  # behind a share: one launch more was sampled
    neovim.lua("vim.api.nvim_win_set_cursor(0, { 1, 20 })")
    assert "before 41.2 µs" in hover(neovim)
    neovim.wait_for(
        "the status", lambda: "transpose measured 36.3 µs" in neovim.lua("return require('gpa_lsp').status()")
    )
