"""Described launches are timed on save, on a GPU of ours: asked first, and compared with before the edit."""

from pathlib import Path

import pytest

from tests.editors.made_up_gpu import make_gpu
from tests.editors.neovim.conftest import StartNeovim
from tests.editors.neovim.embedded import Neovim
from tests.editors.neovim.reading import hover
from tests.editors.neovim.test_measuring import ANSWER
from tests.editors.workspace import Workspace, write_moving

pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")

OPTIONS = "{ settings = { simulation = { onSave = false } } }"


def open_moving(neovim: Neovim, workspace: Workspace) -> None:
    neovim.lua("vim.diagnostic.config({ virtual_text = false })")
    neovim.edit(write_moving(workspace.folder))
    neovim.wait_for_text("predicted: ")


def test_a_save_times_the_described_launch(
    start_neovim: StartNeovim, workspace: Workspace, tmp_path: Path, version: str
) -> None:
    gpu = make_gpu(tmp_path / "gpu")
    neovim = start_neovim(OPTIONS, ANSWER.replace("CHOICE", "Always in this workspace"), gpu.variables)
    open_moving(neovim, workspace)
    neovim.command("write")
    neovim.wait_for(
        "the question", lambda: "asking" in neovim.lua("return require('gpa_lsp').question() ~= '' and 'asking' or ''")
    )
    neovim.command("GpaLsp allow")
    neovim.wait_for_text("measured 41.2 µs ± 0.05")
    gpu.times.write_text("36256")
    neovim.command("substitute/transpose/transpose/ | 5substitute/= in/= 2 * in/ | write")
    neovim.wait_for_text("12 % faster than before your edit")
    if version == "0.12":  # older ones draw the lens there
        neovim.wait_for_text("long_scoreboard · 36.3 µs")  # behind a share: one launch more was sampled
    neovim.lua("vim.api.nvim_win_set_cursor(0, { 1, 20 })")
    assert "before 41.2 µs" in hover(neovim)
    neovim.wait_for(
        "the status", lambda: "transpose measured 36.3 µs" in neovim.lua("return require('gpa_lsp').status()")
    )


def test_without_a_gpu_the_health_page_says_so(start_neovim: StartNeovim, workspace: Workspace) -> None:
    neovim = start_neovim(OPTIONS)
    open_moving(neovim, workspace)
    neovim.command("write")
    detail = "return (require('gpa_lsp.status').get() or {}).detail or ''"
    neovim.wait_for("the reason", lambda: "no NVIDIA driver is installed" in neovim.lua(detail))
    assert neovim.lua("return require('gpa_lsp').question()") == ""
    assert neovim.screen.find("measured") is None
