"""Legibility: lenses are no fainter than hints, and a page has no marks of Markdown and nothing beyond the edge."""

from pathlib import Path

import pytest

from tests.editors.neovim.conftest import NEWEST, ROOT, make_init
from tests.editors.neovim.embedded import Neovim
from tests.editors.neovim.reading import current_line, open_source, put_cursor, wait_for_heat
from tests.editors.workspace import VICTIM, Workspace, make_workspace

VERSIONS = NEWEST
LENS = "return vim.api.nvim_get_hl(0, { name = 'LspCodeLens' }).link"


@pytest.mark.parametrize("background", ["dark", "light"])
def test_hints_can_be_read_on_the_hottest_lines(source: Neovim, background: str) -> None:
    source.command(f"set background={background}")
    source.wait_for_text("87 % samples")
    source.wait_for_text("Unroll a loop")  # lenses are asked for later than hints
    wait_for_heat(source)

    def read_colour(text: str) -> int:
        """The colour of the letters of a text on the screen."""
        place = source.screen.find(text)
        assert place is not None
        return source.screen.foreground_at(*place)

    def measure(text: str) -> float:
        """The contrast of a text on the screen."""
        place = source.screen.find(text)
        assert place is not None
        ground = source.screen.background_at(*place)
        return float(
            str(source.lua(f"return require('gpa_lsp.colours').measure_contrast({read_colour(text)}, {ground})"))
        )

    source.wait_for("heat behind the hints", lambda: measure("87 % samples") < measure("Unroll a loop"))
    contrasts = {text: measure(text) for text in ("87 % samples", "← line", "→ line", "Unroll a loop")}
    assert min(contrasts.values()) >= 4.5, contrasts
    assert read_colour("Unroll a loop") == read_colour("← line"), "a lens is as legible as a hint"
    source.command("set background&")


def test_a_colour_of_your_own_stays(source: Neovim) -> None:
    neovim = source
    assert neovim.lua(LENS) == "GpaHint"
    neovim.command("highlight! link LspCodeLens Question")
    neovim.lua("require('gpa_lsp.colours').apply()")
    assert neovim.lua(LENS) == "Question"
    neovim.command("highlight! link LspCodeLens NonText")  # as Neovim has it: for the tests that come


def test_the_page_of_a_kernel_is_not_shown_as_its_markup(source: Neovim) -> None:
    neovim = source
    neovim.command("set nowrap")
    neovim.command("GpaLsp kernels relax")
    neovim.wait_for_lua("return vim.bo.filetype == 'markdown'")
    neovim.wait_for_text("limit Unknown: ")
    neovim.wait_for("a page without marks", lambda: not any(neovim.screen.find(mark) for mark in ("**", "`")))
    assert neovim.lua("return { vim.wo.wrap, vim.wo.linebreak }") == [True, True]
    neovim.command("close")
    assert neovim.lua("return vim.wo.wrap") is False, "other windows are as they were"
    neovim.command("set wrap")


WINDOW_OPTIONS = "return { vim.wo.wrap, vim.wo.list, vim.wo.spell }"


def test_sass_has_a_line_for_each_instruction_with_the_options_of_neovim_alone(
    source: Neovim, workspace: Workspace
) -> None:
    neovim = source
    neovim.command("set list spell")
    neovim.wait_for_text("← line")
    put_cursor(neovim, workspace.find_line(VICTIM))
    neovim.command("GpaLsp sass")
    neovim.wait_for("SASS", lambda: "FFMA" in current_line(neovim))
    assert neovim.lua(WINDOW_OPTIONS) == [False, False, False]
    neovim.command("wincmd p")
    assert neovim.lua(WINDOW_OPTIONS) == [True, True, True], "the source is as it was"
    neovim.command("set nolist nospell")


def test_an_option_of_your_own_for_sass_stays(program: Path, tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path / "project")
    (tmp_path / "after" / "ftplugin").mkdir(parents=True)
    (tmp_path / "after" / "ftplugin" / "nvsass.lua").write_text("vim.opt_local.wrap = true\n")
    init = make_init(more=f"vim.opt.runtimepath:append({str(tmp_path / 'after')!r})\n")
    neovim = Neovim(program, workspace.folder, init, {"PYTHONPATH": str(ROOT)})
    try:
        open_source(neovim, workspace.source)
        put_cursor(neovim, workspace.find_line(VICTIM))
        neovim.command("GpaLsp sass")
        neovim.wait_for("SASS", lambda: "FFMA" in current_line(neovim))
        assert neovim.lua(WINDOW_OPTIONS) == [True, False, False]
    finally:
        neovim.quit()
