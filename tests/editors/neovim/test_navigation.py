"""Navigation by key: to causes and victims, hot line to hot line, lists."""

from tests.editors.neovim.embedded import Neovim
from tests.editors.neovim.reading import current_line, current_name, cursor_line, put_cursor
from tests.editors.workspace import CAUSE, DIVIDING, DOUBLES, VICTIM, Workspace

KEYS = """
    vim.keymap.set('n', 'gC', '<Plug>(gpa-cause)')
    vim.keymap.set('n', 'gV', '<Plug>(gpa-victim)')
    vim.keymap.set('n', ']g', '<Plug>(gpa-next)')
    vim.keymap.set('n', '[g', '<Plug>(gpa-previous)')
    _G.offered = {}
    vim.ui.select = function(items, options, take)
      _G.offered = vim.tbl_map(options.format_item or tostring, items)
      take(items[_G.choice or 1], _G.choice or 1)
    end
"""


def test_one_key_from_a_victim_to_its_cause_and_one_back(source: Neovim, workspace: Workspace) -> None:
    victim, cause = workspace.find_line(VICTIM), workspace.find_line(CAUSE)
    put_cursor(source, victim, 10)
    source.type("gC")
    source.wait_for("the cause", lambda: cursor_line(source) == cause)
    assert source.lua("return #vim.api.nvim_tabpage_list_wins(0)") == 1
    source.type("<C-o>")
    source.wait_for("the way back", lambda: cursor_line(source) == victim)
    assert source.lua("return vim.api.nvim_win_get_cursor(0)[2]") == 10
    source.type("gC")
    source.wait_for("the cause", lambda: cursor_line(source) == cause)
    source.type("gV")
    source.wait_for("the victim", lambda: cursor_line(source) == victim)
    source.type("<C-t>")
    source.wait_for("the tag stack", lambda: cursor_line(source) == cause)


def test_a_count_or_the_user_chooses_among_causes(source: Neovim, workspace: Workspace) -> None:
    dividing = workspace.find_line(DIVIDING)
    put_cursor(source, dividing)
    source.type("2gC")
    source.wait_for("words about it", lambda: "(2 of " in source.screen.text)
    second = (current_name(source), cursor_line(source))
    source.edit(workspace.source)
    put_cursor(source, dividing)
    source.lua("_G.choice = 2")
    source.command("GpaLsp cause pick")
    assert len(source.wait_for_lua("return _G.offered")) > 1
    source.wait_for("the second", lambda: (current_name(source), cursor_line(source)) == second)


def test_a_line_without_a_cause_says_so(source: Neovim, workspace: Workspace) -> None:
    put_cursor(source, 0)
    source.type("gC")
    source.wait_for("a message", lambda: "this line is not known to be stalled on another one" in source.messages())


def test_hot_lines_go_round(source: Neovim, workspace: Workspace) -> None:
    put_cursor(source, 0)
    visited = []
    for _ in range(8):
        before = cursor_line(source)
        source.type("]g")
        source.wait_for("another line", lambda before=before: cursor_line(source) != before)
        visited.append(cursor_line(source))
    around = len(set(visited))
    assert {workspace.find_line(VICTIM), workspace.find_line(DOUBLES)} <= set(visited)
    assert visited[:around] == sorted(visited[:around]) and visited[around:] == visited[: len(visited) - around]
    source.wait_for("its words", lambda: " of " in source.screen.line(source.screen.rows - 1))

    put_cursor(source, 0)
    source.type("2]g")
    source.wait_for("the second", lambda: cursor_line(source) == visited[1])
    source.type("[g")
    source.wait_for("the first", lambda: cursor_line(source) == visited[0])
    source.type("[g")
    source.wait_for("the last", lambda: cursor_line(source) == max(visited))


def test_hot_spots_in_lists(source: Neovim, workspace: Workspace) -> None:
    source.command("GpaLsp hotspots")
    source.wait_for_lua("return #vim.fn.getloclist(0) > 0")
    lines = source.lua("return vim.tbl_map(function(item) return item.lnum - 1 end, vim.fn.getloclist(0))")
    assert workspace.find_line(VICTIM) in lines and workspace.find_line(DOUBLES) in lines
    source.type("<CR>")
    source.wait_for(
        "the hottest", lambda: cursor_line(source) == lines[0] and current_name(source) == str(workspace.source)
    )
    source.command("lclose")

    source.command("GpaLsp hotspots all")
    source.wait_for_lua("return #vim.fn.getqflist() > 0")
    names = source.lua(
        "return vim.tbl_map(function(item) return vim.api.nvim_buf_get_name(item.bufnr) end, vim.fn.getqflist())"
    )
    assert {str(workspace.source), str(workspace.header)} <= set(names)
    source.command("cclose")

    put_cursor(source, 0)
    source.command("GpaLsp hotspots pick")
    source.wait_for("the hottest", lambda: cursor_line(source) == lines[0])


def test_kernels_are_offered_and_gone_to(source: Neovim, workspace: Workspace) -> None:
    source.lua("_G.choice = 2")
    source.command("GpaLsp kernels")
    offered = source.wait_for_lua("return _G.offered")
    assert "relax" in offered[0] and "normalise" in offered[1]
    source.wait_for("the kernel", lambda: "normalise" in current_line(source))


def test_the_chain_of_a_victim_is_a_list(source: Neovim, workspace: Workspace) -> None:
    put_cursor(source, workspace.find_line(VICTIM))
    source.command("GpaLsp chain")
    source.wait_for_lua("return #vim.fn.getqflist() > 1")
    lines = source.lua("return vim.tbl_map(function(item) return item.lnum - 1 end, vim.fn.getqflist())")
    texts = source.lua("return vim.tbl_map(function(item) return item.text end, vim.fn.getqflist())")
    assert lines[0] == workspace.find_line(CAUSE)
    assert not texts[0].startswith(" ") and any(text.startswith("  ") for text in texts), "and what that waits for"
    source.command("cclose")
    put_cursor(source, workspace.find_line(CAUSE))
    source.command("GpaLsp chain outgoing")
    source.wait_for_lua("return vim.fn.getqflist({ title = 0 }).title == 'Stalled on this'")
    lines = source.lua("return vim.tbl_map(function(item) return item.lnum - 1 end, vim.fn.getqflist())")
    assert workspace.find_line(VICTIM) in lines


def test_a_quick_fix_removes_the_doubles(source: Neovim, workspace: Workspace) -> None:
    line = workspace.find_line(DOUBLES)
    put_cursor(source, line, 10)
    source.lua("""
        vim.lsp.buf.code_action({ apply = true, filter = function(action)
          return action.edit ~= nil or action.data ~= nil and (action.kind or ''):find('quickfix') ~= nil
        end })
    """)
    source.wait_for("the literals", lambda: "value * 0.7f + 0.1f" in current_line(source))
    assert source.lua("return vim.bo.modified")


def test_completion_offers_what_there_is(source: Neovim) -> None:
    words = source.lua("return vim.fn.getcompletion('GpaLsp ', 'cmdline')")
    assert {"cause", "victim", "sass", "measure", "cancel", "pin", "heat", "sync"} <= set(words)
    assert source.lua("return vim.fn.getcompletion('GpaLsp heat o', 'cmdline')") == ["on", "off"]
    kernels = source.lua("return vim.fn.getcompletion('GpaLsp kernels ', 'cmdline')")
    assert len(kernels) == 2 and any("relax" in name for name in kernels)
    refused = source.lua("local _, reason = pcall(vim.cmd.GpaLsp, 'nonsense'); return reason")
    assert "there is no `:GpaLsp nonsense`" in str(refused) + source.messages()
