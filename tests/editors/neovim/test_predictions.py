"""A kernel that is emulated: lens, hints, problems and hover; its description in a buffer; a block that is tried; a launch that is described."""

import pytest

from tests.editors.neovim.conftest import NEWEST, StartNeovim
from tests.editors.neovim.reading import hover, put_cursor
from tests.editors.workspace import MOVING, MOVING_LAUNCH, Workspace
from tests.patience import set_limits

pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")

VERSIONS = NEWEST
LONE = """\
__global__ void lone(float *out)
{
    out[threadIdx.x] = 1;
}
"""


def test_a_described_kernel_is_emulated_as_it_is_edited(start_neovim: StartNeovim, workspace: Workspace) -> None:
    source, description = workspace.folder / "moving.cu", workspace.folder / "moving.launch.toml"
    source.write_text(MOVING + LONE)
    description.write_text(MOVING_LAUNCH)
    neovim = start_neovim(variables=set_limits(exploration_s=60))  # enough on a slow machine, too
    neovim.edit(source)
    neovim.wait_for_text("predicted: ")
    neovim.wait_for_line("32 sectors/req", "in[x * n + y]", "emulated")
    put_cursor(neovim, 4, 8)
    text = hover(neovim)
    assert "Emulated" in text and "32 sectors per request" in text
    neovim.type("<Esc>")
    neovim.lua("vim.api.nvim_win_set_cursor(0, { 5, 0 })")
    titles = "return vim.tbl_map(function(d) return d.code end, vim.diagnostic.get(0))"
    neovim.wait_for("a finding", lambda: "emulated uncoalesced" in neovim.lua(titles))
    apply = """
        local title = ...
        vim.lsp.buf.code_action({ apply = true, filter = function(action) return vim.startswith(action.title, title) end })
    """
    neovim.wait_for("a block worth a try", lambda: "Try block" in str(neovim.lua(LIST_ACTIONS)))
    neovim.lua(apply, "Try block")
    buffer = f"vim.fn.bufnr({str(description)!r})"
    neovim.wait_for_lua(
        f"return {buffer} > 0 and not vim.tbl_contains(vim.api.nvim_buf_get_lines({buffer}, 0, -1, false), 'block = [32, 8]')"
    )
    assert description.read_text() == MOVING_LAUNCH, "the edit is the user's to save"
    neovim.wait_for("another emulation", lambda: neovim.screen.find("32 sectors/req") is None)
    neovim.lua("vim.api.nvim_win_set_cursor(0, { 7, 0 })")
    neovim.lua("vim.ui.input = function(options, take) vim.g.asked = options; take('threads = 96') end")
    neovim.lua(apply, "Describe a launch of lone")
    neovim.wait_for_lua("return vim.g.asked ~= nil")
    asked = neovim.lua("return { vim.g.asked.prompt, vim.g.asked.default }")
    assert "How large is a launch of lone?" in asked[0] and asked[1].startswith("threads = "), asked
    neovim.wait_for_lua(
        f"return vim.tbl_contains(vim.api.nvim_buf_get_lines({buffer}, 0, -1, false), 'threads = 96  # as told')"
    )
    neovim.command("buffer moving.cu")
    neovim.command("GpaLsp prediction")
    neovim.wait_for_lua(
        "return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n'):find('Predictions for moving.cu')"
    )
    neovim.wait_for("words", lambda: neovim.messages() == "Workspace edit Describe a launch")


LIST_ACTIONS = """
    local found = {}
    for _, answer in pairs(vim.lsp.buf_request_sync(0, 'textDocument/codeAction', vim.tbl_extend('force', vim.lsp.util.make_range_params(0, 'utf-16'),
      { context = { diagnostics = {} } }), 5000) or {}) do
      for _, action in ipairs(answer.result or {}) do
        table.insert(found, action.title)
      end
    end
    return found
"""
