"""Pictures of what a user sees, for people to look at: SVG and text, in the folder that GPA_LSP_SCREENSHOTS names."""

import os
from pathlib import Path

import pytest

from tests.editors.neovim.conftest import NEWEST, StartNeovim
from tests.editors.neovim.embedded import Neovim
from tests.editors.neovim.reading import (
    close_float,
    current_line,
    hover,
    open_source,
    put_cursor,
    read_heat,
    wait_for_heat,
)
from tests.editors.neovim.test_measuring import ALLOW, ANSWER, fix_and_measure, make_options
from tests.editors.neovim.test_sass import KEYS, TIES
from tests.editors.test_page_pictures import make_workspace_for_pictures
from tests.editors.workspace import VICTIM, Workspace, make_workspace

VERSIONS = NEWEST
pytestmark = pytest.mark.skipif(
    "GPA_LSP_SCREENSHOTS" not in os.environ, reason="pictures for people: GPA_LSP_SCREENSHOTS says where"
)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return make_workspace(tmp_path / "project")


@pytest.fixture
def folder(version: str) -> Path:
    return Path(os.environ["GPA_LSP_SCREENSHOTS"]) / f"neovim-{version}"


@pytest.mark.parametrize("background", ["dark", "light"])
def test_pictures(start_neovim: StartNeovim, workspace: Workspace, folder: Path, background: str) -> None:
    user = KEYS + ANSWER.replace("CHOICE", ALLOW) + f"vim.o.background = {background!r}\n"
    neovim = start_neovim(make_options(workspace), user)

    def take(name: str) -> str:
        neovim.command("redraw")
        neovim.screen.save(folder / f"{name}-{background}.svg")
        return neovim.screen.text

    open_source(neovim, workspace.source)
    neovim.wait_for_text("← line")
    wait_for_heat(neovim)
    neovim.wait_for_text("Unroll a loop")  # lenses are asked for later than hints
    assert "Unroll a loop" in take("source")
    put_cursor(neovim, workspace.find_line(VICTIM), 8)
    hover(neovim)
    assert "stalled on line" in take("hover")
    close_float(neovim)
    neovim.type("gS")
    neovim.wait_for("SASS", lambda: "FFMA" in current_line(neovim))
    neovim.wait_for("heat", lambda: read_heat(neovim))
    neovim.wait_for_lua(TIES)
    assert "LDG.E.CONSTANT" in take("sass")
    hover(neovim)
    take("sass-hover")
    close_float(neovim)
    neovim.command("wincmd p | only")
    _measure_again(neovim, workspace)
    neovim.command("GpaLsp measure log")
    neovim.wait_for_text("profiler: done")
    assert "−44 %" in take("measured")
    neovim.command("close")
    neovim.command("GpaLsp kernels relax")
    neovim.wait_for_lua("return vim.bo.filetype == 'markdown'")
    take("kernel")


STATUS_LINE = "vim.o.statusline = '%t%=%{v:lua.require(\"gpa_lsp\").status()}'\n"


def test_the_picture_of_the_readme(start_neovim: StartNeovim, tmp_path: Path, folder: Path) -> None:
    """A source beside its SASS."""
    workspace = make_workspace_for_pictures(tmp_path / "project")
    neovim = start_neovim(make_options(workspace), f"{KEYS}{STATUS_LINE}vim.o.background = 'dark'\n")
    neovim.lua("vim.diagnostic.config({ virtual_text = false, signs = false })")
    open_source(neovim, workspace.source)
    neovim.wait_for_text("Unroll a loop")
    put_cursor(neovim, workspace.find_line(VICTIM), 8)
    neovim.type("gS")
    neovim.wait_for("SASS", lambda: "FFMA" in current_line(neovim))
    neovim.wait_for("heat", lambda: read_heat(neovim))
    neovim.command("normal! zz")
    neovim.wait_for_text("2 kernels from 1 profile")
    neovim.wait_for_lua(TIES)
    neovim.command("redraw!")
    neovim.screen.save(folder / "readme.svg")


def _measure_again(neovim: Neovim, workspace: Workspace) -> None:
    fix_and_measure(neovim, workspace)
    neovim.wait_for_text("−44 %")
    neovim.wait_for_text("samples, long_scoreboard")
    neovim.command("normal! gg")
