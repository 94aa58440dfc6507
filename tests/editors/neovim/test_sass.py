"""SASS documents: their text, what works in them, and side by side with the source."""

import pytest

from tests.editors.neovim.conftest import StartNeovim
from tests.editors.neovim.embedded import Neovim
from tests.editors.neovim.reading import (
    FLOAT,
    close_float,
    current_line,
    current_name,
    cursor_line,
    open_source,
    put_cursor,
    wait_for_heat,
)
from tests.editors.workspace import CAUSE, VICTIM, Workspace

KEYS = """
    vim.keymap.set('n', 'gS', '<Plug>(gpa-sass)')
    vim.keymap.set('n', 'gC', '<Plug>(gpa-cause)')
    vim.keymap.set('n', 'gB', '<Plug>(gpa-cause-sass)')
"""

LINKED = """
    local namespace = vim.api.nvim_get_namespaces()['gpa_lsp.linked']
    local found = {}
    for _, buffer in ipairs(namespace and vim.api.nvim_list_bufs() or {}) do
      for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(buffer, namespace, 0, -1, { details = true })) do
        local text = vim.api.nvim_buf_get_lines(buffer, mark[2], mark[2] + 1, false)[1]
        table.insert(found, { vim.api.nvim_buf_get_name(buffer), text, mark[4].line_hl_group or mark[4].hl_group or '' })
      end
    end
    return found
"""


TIES = """
    local namespace = vim.api.nvim_get_namespaces()['gpa_lsp.ties']
    local found = {}
    for _, buffer in ipairs(namespace and vim.api.nvim_list_bufs() or {}) do
      for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(buffer, namespace, 0, -1, { details = true })) do
        local text = vim.api.nvim_buf_get_lines(buffer, mark[2], mark[2] + 1, false)[1] or '' -- none, while it is replaced
        table.insert(found, { vim.api.nvim_buf_get_name(buffer), text, mark[4].sign_hl_group or mark[4].number_hl_group })
      end
    end
    return found
"""


@pytest.fixture
def beside(source: Neovim, workspace: Workspace) -> Neovim:
    """The victim's SASS beside the source, the cursor in it."""
    put_cursor(source, workspace.find_line(VICTIM))
    source.type("gS")
    source.wait_for("SASS", lambda: "FFMA" in current_line(source))
    return source


def test_the_sass_of_a_line_opens_beside_it(beside: Neovim, workspace: Workspace) -> None:
    assert current_name(beside).startswith("gpa-sass:///")
    assert beside.lua("return { vim.bo.filetype, vim.bo.buftype, vim.bo.modifiable }") == ["nvsass", "nofile", False]
    text = beside.lua("return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')")
    assert "LDG.E.CONSTANT" in text and "F2F.F64.F32" in text
    assert beside.lua("return #vim.api.nvim_tabpage_list_wins(0)") == 2
    heat = wait_for_heat(beside)
    assert heat[cursor_line(beside)].startswith("GpaHeat")
    beside.wait_for("hints", lambda: beside.screen.find("long_scoreboard"))

    beside.type("gS")
    beside.wait_for("the source", lambda: current_name(beside) == str(workspace.source))
    assert cursor_line(beside) == workspace.find_line(VICTIM)
    beside.type("gS")
    beside.wait_for("SASS", lambda: "FFMA" in current_line(beside))
    assert beside.lua("return #vim.api.nvim_tabpage_list_wins(0)") == 2, "the same window again"
    assert beside.messages() == ""


def test_one_key_from_a_victim_to_the_instruction_to_blame(beside: Neovim, workspace: Workspace) -> None:
    beside.command("wincmd p")
    put_cursor(beside, workspace.find_line(VICTIM))
    beside.type("gB")
    beside.wait_for("the load", lambda: "LDG" in current_line(beside))
    beside.type("<C-o>")
    beside.wait_for("the victim's instruction", lambda: "FFMA" in current_line(beside))
    beside.type("gC")
    beside.wait_for("the load", lambda: "LDG" in current_line(beside))
    assert current_name(beside).startswith("gpa-sass:///")


def test_registers_have_definitions_and_references(beside: Neovim) -> None:
    text = current_line(beside)
    loaded = beside.lua(
        "return vim.iter(vim.api.nvim_buf_get_lines(0, 0, -1, false)):find(function(l) return l:find('LDG.E.CONSTANT R') end)"
    )
    register = loaded.split("LDG.E.CONSTANT ")[1].split(",")[0]
    put_cursor(beside, cursor_line(beside), text.encode().rindex(register.encode()))
    beside.lua("vim.lsp.buf.definition()")
    beside.wait_for("the definition", lambda: current_line(beside) == loaded)
    column = beside.lua("return vim.api.nvim_win_get_cursor(0)[2]")
    put_cursor(beside, cursor_line(beside), current_line(beside).encode().index(register.encode()))
    assert column > 0
    beside.lua("vim.lsp.buf.references()")
    beside.wait_for_lua("return #vim.fn.getqflist() > 0")
    lines = beside.lua("return vim.tbl_map(function(item) return item.text end, vim.fn.getqflist())")
    assert any("FFMA" in line for line in lines)
    beside.command("cclose")
    beside.command("wincmd b")  # 0.10 goes to the first window

    beside.lua("vim.lsp.buf.document_highlight()")
    beside.wait_for(
        "highlights",
        lambda: beside.lua(
            "return vim.iter(vim.api.nvim_get_namespaces()):any(function(name, id) return name:find('references') and "
            "#vim.api.nvim_buf_get_extmarks(0, id, 0, -1, {}) > 0 end)"
        ),
    )
    close_float(beside)
    beside.lua("vim.lsp.buf.hover()")
    assert "LDG" in beside.wait_for_lua(FLOAT)


def test_the_other_side_follows_the_cursor(beside: Neovim, workspace: Workspace) -> None:
    beside.command("wincmd p")
    put_cursor(beside, workspace.find_line(CAUSE))
    beside.command("doautocmd CursorMoved")
    linked = beside.wait_for("links", lambda: [row for row in beside.lua(LINKED) if "LDG" in row[1]])
    assert {name.split(":")[0] for name, _, _ in linked} == {"gpa-sass"}
    assert {group for _, _, group in linked} == {"GpaLinked", "GpaLinkedMain"}
    beside.wait_for(
        "the other cursor",
        lambda: (
            "LDG"
            in beside.lua(
                "local w = vim.fn.win_getid(vim.fn.winnr('#')); local b = vim.api.nvim_win_get_buf(w); "
                "local l = vim.api.nvim_win_get_cursor(w)[1]; return vim.api.nvim_buf_get_lines(b, l - 1, l, false)[1]"
            )
        ),
    )
    assert current_name(beside) == str(workspace.source), "the cursor stays here"

    beside.command("wincmd p")
    beside.type("gg")
    beside.wait_for("no link", lambda: beside.lua(LINKED) == [] or "relax.cu" in str(beside.lua(LINKED)))
    beside.command("GpaLsp sync off")
    assert beside.lua(LINKED) == []


def test_sections_fold(beside: Neovim) -> None:
    folded = beside.wait_for_lua(
        "return vim.iter(vim.fn.range(1, vim.fn.line('$'))):filter(function(l) return vim.fn.foldlevel(l) > 0 end):totable()"
    )
    assert beside.lua("return vim.fn.foldclosed(...)", folded[0]) == -1, "open at first"
    beside.command("normal! zM")
    assert beside.lua("return vim.fn.foldclosed(...)", folded[0]) > 0


def read_text(neovim: Neovim) -> str:
    return str(neovim.lua("return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')"))


def test_operands_are_near_lines_of_other_files_named_and_padding_is_folded(beside: Neovim) -> None:
    rows = [line for line in read_text(beside).split("\n") if line.startswith("/*")]
    assert all(line.index(line[8:].strip(" ·│%<.0123456789")[0], 8) < 24 for line in rows)
    assert any("curves.cuh:" in line.partition("//")[2] for line in rows)
    assert sum("NOP" in line for line in rows) == 1 and "padding," in rows[-1]


def test_signs_of_the_same_colour_tie_a_line_to_its_instructions(beside: Neovim) -> None:
    def find_ties() -> list[tuple[str, str, str]]:
        return [(name, text, group) for name, text, group in beside.lua(TIES)]

    ties = beside.wait_for("ties", find_ties)
    (colour,) = {group for name, text, group in ties if name.endswith("relax.cu") and CAUSE in text}
    tied = [text for name, text, group in ties if name.startswith("gpa-sass:") and group == colour]
    assert any("LDG.E.CONSTANT" in text for text in tied)
    assert len({group for _, _, group in ties}) > 4
    beside.command("GpaLsp sync off")
    beside.wait_for("no ties", lambda: not find_ties())
    beside.command("GpaLsp sync on")
    beside.wait_for("ties", find_ties)
    beside.command("close")
    beside.wait_for("no ties", lambda: not find_ties())


def test_columns_are_chosen_and_kept(beside: Neovim) -> None:
    def read_title() -> str:
        return next((line for line in read_text(beside).split("\n") if line.startswith("// addr")), "")

    assert "stalled by" in read_title()
    beside.command("GpaLsp columns registers line wait")
    beside.wait_for("the columns", lambda: "alive" in read_title())
    assert "stalled by" not in read_title() and "wait" in read_title()
    assert wait_for_heat(beside), "heat is drawn on the new text"
    beside.wait_for("ties of the new text", lambda: any("LDG" in text for _, text, _ in beside.lua(TIES)))
    offered = beside.lua("return vim.fn.getcompletion('GpaLsp columns ', 'cmdline')")
    assert {"usual", "sectors", "not-issued", "long_scoreboard"} <= set(offered)

    beside.lua("""
        _G.seen = {}
        vim.ui.select = function(items, options, choose)
          table.insert(_G.seen, vim.tbl_map(options.format_item, items))
          choose(#_G.seen == 1 and vim.iter(items):find(function(one) return one.name == 'samples' end) or nil)
        end
    """)
    beside.command("GpaLsp columns")
    beside.wait_for("one column more", lambda: "samples" in read_title())
    beside.wait_for_lua("return #_G.seen == 2")
    first, second = beside.lua("return _G.seen")
    assert "[x] alive: registers that hold a value at it, from the code" in first
    assert any(line.startswith("[ ] samples") for line in first) and any(
        line.startswith("[x] samples") for line in second
    )
    beside.command("GpaLsp columns usual")
    beside.wait_for("the usual columns", lambda: "stalled by" in read_title())


def test_the_hottest_instructions_are_a_list_that_jumps(beside: Neovim) -> None:
    beside.command("GpaLsp hotspots")
    beside.wait_for_lua("return vim.bo.buftype == 'quickfix'")
    entries = beside.lua("return vim.tbl_map(function(item) return item.text end, vim.fn.getloclist(0))")
    shares = [float(entry.split(" %")[0].strip("<>").replace("·", "0")) for entry in entries if "%" in entry]
    assert shares == sorted(shares, reverse=True) and "FFMA" in entries[0]
    beside.type("<CR>")
    beside.wait_for(
        "the instruction", lambda: current_name(beside).startswith("gpa-sass:") and "FFMA" in current_line(beside)
    )
    beside.command("lclose")
    assert "registers" in beside.lua("return vim.fn.getcompletion('GpaLsp hotspots ', 'cmdline')")
    beside.command("GpaLsp hotspots registers")
    beside.wait_for_lua("return vim.fn.getloclist(0, { title = 0 }).title == 'Instructions by registers'")


def test_a_document_that_no_server_knows_says_so_and_comes_later(
    start_neovim: StartNeovim, workspace: Workspace
) -> None:
    first = start_neovim(more=KEYS)
    open_source(first, workspace.source)
    name = first.wait_for_lua("""
        local client = require('gpa_lsp.rpc').find_client()
        local kernels = require('gpa_lsp.rpc').request_sync(client, 'workspace/executeCommand', { command = 'gpaLsp.listKernels', arguments = {} })
        return kernels and kernels[1] and kernels[1].sassUri
    """)
    first.quit()
    second = start_neovim(more=KEYS)
    second.lua("vim.cmd.edit(...)", name)
    assert "No running server" in current_line(second)
    second.command("split")
    open_source(second, workspace.source)
    second.command("wincmd p")
    second.wait_for("the text", lambda: second.lua("return vim.fn.line('$')") > 20)
    assert second.lua("return #vim.lsp.get_clients({ bufnr = 0 })") == 1
    assert second.lua("return #vim.lsp.get_clients()") == 1
    wait_for_heat(second)
