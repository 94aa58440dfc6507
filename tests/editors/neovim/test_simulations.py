"""A described launch is simulated on save and by command: lens, hints, signs and hover are those of a profile, marked as simulated."""

from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

from tests.editors.neovim.conftest import NEWEST, StartNeovim
from tests.editors.neovim.embedded import Neovim
from tests.editors.neovim.reading import hover, open_source, put_cursor
from tests.editors.workspace import MOVING_LINE, VICTIM, Workspace, describe_relax, write_moving

pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")

VERSIONS = NEWEST
OFF = "{ settings = { simulation = { onSave = false } } }"
A100 = "{ settings = { emulation = { machine = 'A100' } } }"
ACTION = """
    vim.lsp.buf.code_action({ apply = true, filter = function(action)
      return action.title == 'Simulate the described launches of transpose'
    end })
"""


def open_moving(neovim: Neovim, workspace: Workspace) -> None:
    """The source, predicted. Of a line of the screen, findings may leave no room for its lens."""
    neovim.lua("vim.diagnostic.config({ virtual_text = false })")
    neovim.edit(write_moving(workspace.folder))
    neovim.wait_for_text("predicted: ")


def test_a_save_simulates_the_described_launch(start_neovim: StartNeovim, workspace: Workspace) -> None:
    neovim = start_neovim()
    open_moving(neovim, workspace)
    assert neovim.screen.find("simulated") is None, "nothing before a save"
    neovim.command("write")
    neovim.wait_for_text("s simulated")
    neovim.wait_for_line("in[x * n + y]", " simulated")
    neovim.wait_for("its sign", lambda: neovim.screen.find_line("in[x * n + y]").startswith("~"))
    put_cursor(neovim, MOVING_LINE - 1, 8)
    text = hover(neovim)
    assert "simulated, not measured" in text, text
    assert "32 sectors per request" in text, text


def test_where_saves_do_not_the_action_and_the_command_simulate(
    start_neovim: StartNeovim, workspace: Workspace
) -> None:
    neovim = start_neovim(OFF)
    open_moving(neovim, workspace)
    neovim.command("write")
    neovim.lua("vim.api.nvim_win_set_cursor(0, { 1, 0 })")
    for ask in (lambda: neovim.lua(ACTION), lambda: neovim.command("GpaLsp prediction simulate")):
        neovim.command("messages clear")
        ask()
        neovim.wait_for("words", lambda: "transpose on " in neovim.messages())
    neovim.wait_for_text("s simulated")


def test_a_measured_kernel_is_shown_beside_its_simulation(start_neovim: StartNeovim, workspace: Workspace) -> None:
    """Replace the browser by a function that keeps the address it gets."""
    describe_relax(workspace.source)
    neovim = start_neovim(A100)
    open_source(neovim, workspace.source)
    neovim.lua("vim.ui.open = function(address) _G.opened_page = address; return nil, nil end")
    put_cursor(neovim, workspace.find_line(VICTIM), 8)
    neovim.command("GpaLsp prediction compare")
    neovim.wait_for_lua("return _G.opened_page ~= nil")
    page = Path(unquote(urlparse(neovim.lua("return _G.opened_page")).path)).read_text(encoding="utf-8")
    assert "relax: measured and simulated" in page
