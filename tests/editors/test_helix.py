"""Page for Helix, tried in a real one that runs in a terminal of Neovim: diagnostics and hints."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.editors.documented import EDITORS, read_blocks
from tests.editors.neovim.conftest import find_editors, find_program
from tests.editors.neovim.embedded import Neovim
from tests.editors.workspace import VICTIM, Workspace


@pytest.fixture
def terminal(workspace: Workspace, tmp_path: Path) -> Iterator[Neovim]:
    """Helix with the source open, configured as the page says, except that the server is started from here and that there is no clangd."""
    program, helix = find_program("0.12"), find_editors() / "hx"
    if program is None or not helix.exists():
        pytest.skip(
            "Helix is not installed: tests/editors/install_neovim.sh and install_others.sh install it beside the system"
        )
    languages, editor = read_blocks("helix.md", "toml")
    started = f'command = "{sys.executable}"\nargs = ["-m", "gpa_lsp.editor.protocol"]'
    assert 'command = "gpa-lsp"\nargs = ["serve"]' in languages and '["clangd", "gpa-lsp"]' in languages
    languages = languages.replace('command = "gpa-lsp"\nargs = ["serve"]', started).replace('"clangd", ', "")
    configuration = tmp_path / "configuration" / "helix"
    configuration.mkdir(parents=True)
    (configuration / "languages.toml").write_text(languages, encoding="utf-8")
    (configuration / "config.toml").write_text(editor, encoding="utf-8")
    environment = {
        "XDG_CONFIG_HOME": str(configuration.parent),
        "PYTHONPATH": str(EDITORS.parent),
        "XDG_CACHE_HOME": str(tmp_path),
    }
    neovim = Neovim(program, workspace.folder, "vim.o.shell = '/bin/sh'")
    try:
        neovim.lua(
            "local command, environment = ...; vim.cmd.enew(); vim.fn.jobstart(command, { term = true, env = environment }); vim.cmd.startinsert()",
            [str(helix), str(workspace.source)],
            {**environment, "TERM": "xterm-256color", "PATH": os.environ["PATH"]},
        )
        yield neovim
        neovim.type("<Esc>:quit!<CR>")
        neovim.lua("vim.wait(60000, function() return vim.fn.jobwait({ vim.bo.channel }, 0)[1] ~= -1 end)")
    finally:
        neovim.quit()


def test_helix_shows_causes_and_shares(terminal: Neovim, workspace: Workspace) -> None:
    terminal.wait_for_text("stalls caused here")
    # It asks for hints when a key is pressed, once: an answer before the profile is read would be the last.
    terminal.type("jk")
    row, _ = terminal.wait_for_text("← line")
    assert VICTIM in terminal.screen.line(row)
    terminal.type(" d")
    terminal.wait_for_text("of the samples of relax are sta")  # the list cuts what is long
    terminal.type("<Esc>")
    terminal.type(f"{workspace.find_line(VICTIM) + 1}ggw k")
    terminal.wait_for_text("stalled on line")
