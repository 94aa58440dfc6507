"""The plugin itself: its files, its help, its health, what it loads and when."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.editors.neovim.conftest import StartNeovim
from tests.editors.neovim.embedded import PLUGIN, Neovim
from tests.editors.neovim.reading import hover, open_source, put_cursor, wait_for_answers, wait_for_heat
from tests.editors.workspace import VICTIM, Workspace
from tests.patience import LIMIT_S

READ_HEALTH = """
    local found = vim.iter(vim.api.nvim_list_bufs()):find(function(one) return vim.bo[one].filetype == 'checkhealth' end)
    return table.concat(vim.api.nvim_buf_get_lines(found, 0, -1, false), '\\n')
"""

LUA = sorted(PLUGIN.rglob("*.lua"))


def test_every_file_is_lua(program: Path, tmp_path: Path) -> None:
    script = tmp_path / "check.lua"
    script.write_text(
        "for i = 1, #arg do local ok, reason = loadfile(arg[i]); if not ok then print(reason); os.exit(1) end end"
    )
    assert len(LUA) > 15
    done = subprocess.run([program, "-l", script, *LUA], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", LUA, ids=lambda path: str(path.relative_to(PLUGIN)))
def test_modules_are_small_and_say_what_they_are(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").split("\n")
    assert lines[0].startswith("--")
    assert len(lines) <= 400
    assert max(len(line) for line in lines) <= 150


def test_nothing_is_loaded_before_it_is_needed(start_neovim: StartNeovim) -> None:
    neovim = start_neovim()
    loaded = neovim.lua(
        "return vim.tbl_filter(function(name) return vim.startswith(name, 'gpa_lsp') end, vim.tbl_keys(package.loaded))"
    )
    assert set(loaded) <= {"gpa_lsp", "gpa_lsp.options", "gpa_lsp.client_config"}
    assert neovim.lua("return vim.fn.exists(':GpaLsp')") == 2
    assert neovim.messages() == ""


def test_the_help_has_a_tag_for_every_command_and_key(neovim: Neovim, tmp_path: Path) -> None:
    text = (PLUGIN / "doc" / "gpa_lsp.txt").read_text(encoding="utf-8")
    commands = neovim.lua("return vim.fn.getcompletion('GpaLsp ', 'cmdline')")
    assert [name for name in commands if f"*:GpaLsp-{name}*" not in text] == []
    keys = re.findall(
        r"^  \['([a-z-]+)'\] =", (PLUGIN / "plugin" / "gpa_lsp.lua").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(keys) > 8
    assert [name for name in keys if f"*<Plug>(gpa-{name})*" not in text] == []
    (tmp_path / "gpa_lsp.txt").write_text(text, encoding="utf-8")
    neovim.lua("vim.cmd.helptags(vim.fn.fnameescape(...))", str(tmp_path))  # raises for a tag that stands there twice
    assert max(len(line) for line in text.split("\n")) <= 100


def test_checkhealth_says_what_is_there(neovim: Neovim, workspace: Workspace) -> None:
    open_source(neovim, workspace.source)
    neovim.lua(
        "require('gpa_lsp.options').choose({ cmd = { ... } })",
        str(Path(sys.executable).parent / "gpa-lsp"),
    )
    neovim.lua("require('gpa_lsp.health').run_limit_ms = ...", int(1000 * LIMIT_S))
    neovim.lua("vim.cmd('checkhealth gpa_lsp')")
    text = neovim.lua("return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')")
    assert "gpa-lsp 0." in text and "nvdisasm" in text and "ncu" in text
    assert str(workspace.folder) in text and "utf-8" in text
    assert "ERROR" not in text.replace("ERROR)", "")
    neovim.lua("require('gpa_lsp.options').choose({ cmd = { '/nowhere/gpa-lsp' } })")
    neovim.command("checkhealth gpa_lsp")
    text = neovim.lua("return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')")
    assert "/nowhere/gpa-lsp is not executable" in text and "pip install" in text


@pytest.mark.parametrize(
    ("script", "limit_ms", "reason"),
    [
        ("exec sleep 3600", 100, "no answer within 0.1 s"),
        ("sleep 2; exit 0", 100, "no answer within 0.1 s"),
        ("exit 124", int(1000 * LIMIT_S), "exit status 124"),
    ],
    ids=["hangs", "waits for its child", "says 124 itself"],
)
def test_checkhealth_waits_for_no_program_for_ever(
    neovim: Neovim, tmp_path: Path, script: str, limit_ms: int, reason: str
) -> None:
    program = tmp_path / "gpa-lsp"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    neovim.lua("require('gpa_lsp.options').choose({ cmd = { ... } })", str(program))
    neovim.lua("require('gpa_lsp.health').run_limit_ms = ...", limit_ms)
    neovim.lua("vim.cmd('checkhealth gpa_lsp')")
    text = neovim.lua("return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')")
    assert f"{program} --version: {reason}" in text


def test_nothing_deprecated_is_called(neovim: Neovim, workspace: Workspace) -> None:
    open_source(neovim, workspace.source)
    neovim.wait_for_text("← line")
    put_cursor(neovim, workspace.find_line(VICTIM), 8)
    for command in (
        "cause",
        "sass",
        "next",
        "hotspots",
        "chain",
        "kernels relax",
        "heat off",
        "heat on",
        "measure log",
    ):
        neovim.command(f"GpaLsp {command}")
        wait_for_answers(neovim)
        neovim.command("1wincmd w")
    put_cursor(neovim, workspace.find_line(VICTIM), 8)
    hover(neovim)
    neovim.command("checkhealth vim.deprecated" if neovim.lua("return vim.fn.has('nvim-0.12')") else "checkhealth vim")
    assert "gpa_lsp" not in neovim.lua(READ_HEALTH)
    assert "deprecated" not in neovim.messages()


def test_enabling_it_as_neovim_does_is_enough(program: Path, workspace: Workspace, version: str) -> None:
    if version == "0.10":
        pytest.skip("Neovim 0.10 has no vim.lsp.enable")
    init = f"""
        vim.opt.runtimepath:prepend({str(PLUGIN)!r})
        vim.g.gpa_lsp = {{ cmd = {{ {sys.executable!r}, '-m', 'gpa_lsp.editor.protocol' }} }}
        vim.lsp.config('gpa_lsp', {{ settings = {{ gpaLsp = {{ inlayHints = {{ enable = false }} }} }} }})
        vim.lsp.enable('gpa_lsp')
        vim.lsp.inlay_hint.enable(true)
    """
    neovim = Neovim(program, workspace.folder, init, {"PYTHONPATH": str(PLUGIN.parents[1])})
    try:
        open_source(neovim, workspace.source)
        neovim.wait_for_text("relax · 186 µs")
        wait_for_heat(neovim)
        assert neovim.screen.find("← line") is None, "the user's settings are sent"
        assert neovim.messages() == ""
    finally:
        neovim.quit()


def test_without_a_server_commands_say_so(start_neovim: StartNeovim) -> None:
    neovim = start_neovim()
    for command in ("cause", "sass", "next", "hotspots all", "kernels", "measure", "chain"):
        neovim.command("messages clear")
        neovim.command(f"GpaLsp {command}")
        assert "no server runs" in neovim.messages(), command
    assert neovim.lua("return require('gpa_lsp').status()") == ""
