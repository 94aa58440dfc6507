"""Saving measures again: asked first, shown as it goes, cancelled, and the change shown afterwards."""

import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.editors.neovim.conftest import NEWEST, StartNeovim
from tests.editors.neovim.embedded import Neovim
from tests.editors.neovim.reading import FLOAT, hover, open_source, put_cursor, read_heat
from tests.editors.workspace import DOUBLES, VICTIM, Workspace

StartMeasuring = Callable[[str], Neovim]
"""From the title of the answer that the user gives."""

VERSIONS = NEWEST
ALLOW, REFUSE = "Run once", "Never"


def make_options(workspace: Workspace) -> str:
    words = ", ".join(repr(word) for word in [sys.executable, str(workspace.measure), "${output}"])
    return f"{{ settings = {{ profile = {{ command = {{ {words} }}, onSave = true }} }} }}"


ANSWER = """
    _G.asked = {}
    vim.ui.select = function(items, options, take)
      local titles = vim.tbl_map(options.format_item or tostring, items)
      table.insert(_G.asked, { options.prompt, titles })
      vim.schedule(function()
        take(vim.iter(items):find(function(item) return item.title == 'CHOICE' end))
      end)
    end
"""


@pytest.fixture
def start_measuring(start_neovim: StartNeovim, workspace: Workspace) -> StartMeasuring:
    def start(choice: str) -> Neovim:
        neovim = start_neovim(make_options(workspace), ANSWER.replace("CHOICE", choice))
        open_source(neovim, workspace.source)
        return neovim

    return start


def fix_doubles(neovim: Neovim, workspace: Workspace) -> None:
    put_cursor(neovim, workspace.find_line(DOUBLES))
    neovim.command("substitute/0.7 + 0.1/0.7f + 0.1f/")
    neovim.command("write")


COMMITS = (("1" * 40, 90 * 60, "Begin"), ("2" * 40, 1, "Constants of one precision"))
"""Names, how many seconds ago, and subjects: one before the profile that is there, one before the test's own."""


def make_git_log(folder: Path) -> None:
    """Write the log that git keeps of commits."""
    log = folder / ".git" / "logs" / "HEAD"
    log.parent.mkdir(parents=True)
    before, text = "0" * 40, ""
    for digest, ago_s, subject in COMMITS:
        text += f"{before} {digest} Ada <ada@example.org> {int(time.time() - ago_s)} +0000\tcommit: {subject}\n"
        before = digest
    log.write_text(text, encoding="utf-8")


def wait_for_question(neovim: Neovim) -> None:
    neovim.wait_for("the question", lambda: "a save waits" in neovim.lua("return require('gpa_lsp').status()"))


def fix_and_measure(neovim: Neovim, workspace: Workspace) -> None:
    fix_doubles(neovim, workspace)
    wait_for_question(neovim)
    neovim.command("GpaLsp allow once")


def test_a_save_measures_again_and_the_change_is_shown(start_measuring: StartMeasuring, workspace: Workspace) -> None:
    make_git_log(workspace.folder)
    neovim = start_measuring(ALLOW)
    neovim.wait_for_text("relax · 186 µs")
    fix_doubles(neovim, workspace)
    wait_for_question(neovim)
    neovim.wait_for("words", lambda: "a save waits for your answer (:GpaLsp allow)" in neovim.messages())
    assert "measure.py" in neovim.lua("return require('gpa_lsp').question()")
    assert neovim.lua("return #_G.asked") == 0, "a save puts nothing in the way"
    neovim.command("GpaLsp allow")
    prompt, titles = neovim.wait_for_lua("return _G.asked[1]")
    assert "measure.py" in prompt and titles[0] == "Run once" and len(titles) == 3
    neovim.wait_for("a run", lambda: workspace.runs == 1)
    neovim.wait_for_lua("return require('gpa_lsp').question() == ''")
    neovim.wait_for_text("relax · 10")
    neovim.wait_for("the change in the lens", lambda: _has_change(neovim.screen.text))
    neovim.command("GpaLsp measure log")
    neovim.wait_for_text("größer geht es nicht")
    neovim.command("close")
    put_cursor(neovim, workspace.find_line(VICTIM), 8)
    text = hover(neovim)
    assert "long_scoreboard" in text
    neovim.command("GpaLsp page line")
    neovim.wait_for_text("stall reason")
    text = neovim.lua("return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')")
    assert re.search(r"history\W+█╎▁ 186 µs → 10\d µs over 2 runs; no regression; ╎ 2 commits", text), text
    neovim.command("close")
    neovim.lua("vim.cmd('silent write')")
    wait_for_question(neovim)
    assert workspace.runs == 1, "once was once"
    neovim.command("GpaLsp allow always")
    neovim.wait_for("another run", lambda: workspace.runs == 2)
    neovim.lua("vim.cmd('silent write')")
    neovim.wait_for("a third, unasked", lambda: workspace.runs == 3)
    neovim.command("GpaLsp history")
    neovim.wait_for_lua("return vim.bo.filetype == 'markdown'")


def test_a_run_is_cancelled_with_all_its_processes_and_one_that_fails_is_explained(
    start_measuring: StartMeasuring, workspace: Workspace
) -> None:
    workspace.behave("hang")
    neovim = start_measuring(ALLOW)
    neovim.command("GpaLsp measure")
    neovim.wait_for("the profiler and its child", lambda: len(workspace.find_running()) == 2)
    neovim.wait_for("the status", lambda: neovim.lua("return require('gpa_lsp.status').get().state") == "measuring")
    neovim.command("GpaLsp cancel")
    neovim.wait_for("silence", lambda: workspace.find_running() == [])
    neovim.wait_for("the status", lambda: neovim.lua("return require('gpa_lsp.status').get().state") != "measuring")

    def cancel_again() -> bool:
        """The status changes a moment before the run is put away; until then there is still something to cancel."""
        neovim.command("GpaLsp cancel")
        return "nothing is being measured or recorded" in neovim.messages()

    neovim.wait_for("words", cancel_again)
    workspace.behave("fail")
    neovim.command("GpaLsp measure")
    neovim.wait_for(
        "words", lambda: "performance counters" in neovim.messages() or "ERR_NVGPUCTRPERM" in neovim.messages()
    )
    neovim.wait_for("the status", lambda: neovim.lua("return require('gpa_lsp.status').get().state") == "failed")
    neovim.command("GpaLsp pin")
    neovim.wait_for("words", lambda: "2 kernels" in neovim.messages())
    neovim.command("messages clear")
    neovim.command("GpaLsp pin off relax")
    neovim.wait_for("words", lambda: "relax" in neovim.messages())


def test_quitting_ends_a_run(start_measuring: StartMeasuring, workspace: Workspace) -> None:
    workspace.behave("hang")
    neovim = start_measuring(ALLOW)
    neovim.command("GpaLsp measure")
    neovim.wait_for("the profiler and its child", lambda: len(workspace.find_running()) == 2)
    neovim.quit()
    workspace.wait_for_the_end()


def test_nothing_runs_without_a_yes(start_measuring: StartMeasuring, workspace: Workspace) -> None:
    neovim = start_measuring(REFUSE)
    neovim.command("write")
    wait_for_question(neovim)
    neovim.command("GpaLsp allow never")
    neovim.wait_for_lua("return require('gpa_lsp').question() == ''")
    neovim.command("GpaLsp measure")
    neovim.wait_for_lua("return #_G.asked == 1")
    neovim.command("write")
    neovim.lua("vim.wait(1000)")
    assert neovim.lua("return require('gpa_lsp').question()") == "", "who said never is not asked with each save"
    assert workspace.runs == 0


def test_the_question_can_be_answered_at_the_prompt(start_neovim: StartNeovim, workspace: Workspace) -> None:
    neovim = start_neovim(make_options(workspace))
    open_source(neovim, workspace.source)
    neovim.request("nvim_input", ":GpaLsp measure<CR>")
    neovim.wait_for_text("measure.py")
    neovim.type("1<CR>")
    neovim.wait_for("a run", lambda: workspace.runs == 1)
    neovim.wait_for("its end", lambda: workspace.find_running() == [])
    assert neovim.lua(FLOAT) is None


def test_a_workspace_that_is_not_trusted_runs_nothing(start_neovim: StartNeovim, workspace: Workspace) -> None:
    options = make_options(workspace)[:-2] + ", trusted = function() return false end }"
    neovim = start_neovim(options, ANSWER.replace("CHOICE", ALLOW))
    open_source(neovim, workspace.source)
    neovim.command("write")
    neovim.command("GpaLsp measure")
    neovim.lua("vim.wait(1000)")
    assert workspace.runs == 0
    assert neovim.lua("return #_G.asked") == 0, "not even asked"


def test_a_hostile_workspace_changes_nothing(start_neovim: StartNeovim, workspace: Workspace, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    lua = f"io.open({str(trap)!r}, 'w'):close(); vim.g.gpa_lsp = {{ cmd = {{ 'touch', {str(trap)!r} }} }}"
    for name in (".nvim.lua", ".exrc", ".nvimrc"):
        (workspace.folder / name).write_text(lua, encoding="utf-8")
    settings = f'{{"gpaLsp": {{"profile": {{"command": ["touch", "{trap}"], "onSave": true}}}}}}'
    for name in (".vscode/settings.json", ".gpa-lsp.json", "gpa-lsp.json", ".neoconf.json", ".nlsp.json"):
        path = workspace.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(settings, encoding="utf-8")
    text = workspace.source.read_text(encoding="utf-8")
    modeline = f"// vim: set makeprg=touch\\ {trap} statusline=%!writefile([],'{trap}') foldmethod=expr foldexpr=writefile([],'{trap}'):\n"
    workspace.source.write_text(text + modeline, encoding="utf-8")
    neovim = start_neovim(more="vim.o.modeline = true\n" + ANSWER.replace("CHOICE", ALLOW))
    neovim.lua("vim.cmd('silent! edit ' .. vim.fn.fnameescape(...))", str(workspace.source))
    neovim.wait_for("the server", lambda: neovim.lua("return #vim.lsp.get_clients({ bufnr = 0 }) == 1"))
    neovim.wait_for_lua("return require('gpa_lsp').status()")
    neovim.command("write")
    neovim.command("GpaLsp measure")
    neovim.lua("vim.wait(1500)")
    assert not trap.exists()
    assert workspace.runs == 0
    assert neovim.lua("return #_G.asked") == 0


def _has_change(text: str) -> bool:
    return "−44 %" in text


def test_sass_that_is_open_becomes_that_of_the_new_code(start_measuring: StartMeasuring, workspace: Workspace) -> None:
    neovim = start_measuring(ALLOW)
    put_cursor(neovim, workspace.find_line(DOUBLES))
    neovim.command("GpaLsp sass")
    text = "return table.concat(vim.fn.getbufline('gpa-sass:', 1, '$'), '\\n')"
    neovim.wait_for("the doubles", lambda: "DFMA" in neovim.lua(text))
    neovim.command("wincmd p")
    fix_and_measure(neovim, workspace)
    neovim.wait_for("no doubles", lambda: "FFMA" in neovim.lua(text) and "DFMA" not in neovim.lua(text))
    neovim.command("wincmd p")
    assert not neovim.lua("return vim.bo.modifiable")
    neovim.wait_for("heat", lambda: read_heat(neovim))
    neovim.wait_for("hovers", lambda: "long_scoreboard" in _hover_on(neovim, "FFMA R6"))


def _hover_on(neovim: Neovim, text: str) -> str:
    neovim.lua("vim.fn.cursor(1, 1); vim.fn.search(..., 'c')", text)
    return hover(neovim)
