"""What is in a Neovim, in a test's words."""

from typing import Any

from tests.editors.neovim.embedded import Neovim

HEAT = """
    local namespace = vim.api.nvim_get_namespaces()['gpa_lsp.heat']
    local marks = {}
    for _, mark in ipairs(namespace and vim.api.nvim_buf_get_extmarks(0, namespace, 0, -1, { details = true }) or {}) do
      local details = mark[4]
      if not details.invalid then
        local stale = details.virt_text and details.virt_text[1][1] or nil
        table.insert(marks, { mark[2], details.line_hl_group or stale or details.number_hl_group })
      end
    end
    return marks
"""

FLOAT = """
    for _, window in ipairs(vim.api.nvim_list_wins()) do
      if vim.api.nvim_win_get_config(window).relative ~= '' then
        return table.concat(vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(window), 0, -1, false), '\\n')
      end
    end
"""


def open_source(neovim: Neovim, path: Any) -> None:
    """Open a file of the project and wait until the server has said what was measured of it: what its code says can come before."""
    neovim.edit(path)
    neovim.wait_for_lua("""
        for _, diagnostic in ipairs(vim.diagnostic.get(0)) do
          if diagnostic.message:find('stall') then
            return true
          end
        end
        return false
    """)


def read_heat(neovim: Neovim) -> dict[int, str]:
    """0-based line → highlight group of its background, or the words behind a stale line."""
    return dict(neovim.lua(HEAT))


def wait_for_heat(neovim: Neovim) -> dict[int, str]:
    neovim.wait_for("heat", lambda: read_heat(neovim))
    return read_heat(neovim)


def put_cursor(neovim: Neovim, line: int, column: int = 0) -> None:
    """Put the cursor on a line (0-based)."""
    neovim.lua("vim.api.nvim_win_set_cursor(0, { ... })", line + 1, column)


def cursor_line(neovim: Neovim) -> int:
    """The cursor's line, 0-based."""
    return int(neovim.lua("return vim.api.nvim_win_get_cursor(0)[1] - 1"))


def current_line(neovim: Neovim) -> str:
    return str(neovim.lua("return vim.api.nvim_get_current_line()"))


def current_name(neovim: Neovim) -> str:
    return str(neovim.lua("return vim.api.nvim_buf_get_name(0)"))


def close_float(neovim: Neovim) -> None:
    neovim.lua("""
        for _, window in ipairs(vim.api.nvim_list_wins()) do
          if vim.api.nvim_win_get_config(window).relative ~= '' then
            vim.api.nvim_win_close(window, true)
          end
        end
    """)


def hover(neovim: Neovim) -> str:
    """The text of the window that ``K`` opens."""
    close_float(neovim)
    neovim.lua("vim.lsp.buf.hover()")
    return str(neovim.wait_for_lua(FLOAT))
