"""State of a Neovim, in a test's words."""

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

FORGET = """
    if vim.fn.bufloaded(...) == 1 then
      local buffer = vim.uri_to_bufnr(vim.uri_from_fname(...))
      vim.api.nvim_win_set_buf(0, buffer)  -- to edit what is in the window already is to read it again
      vim.diagnostic.reset(nil, buffer)
      require('gpa_lsp.heat').forget(buffer)
    end
"""

OPEN_REQUESTS = """
    for _, client in ipairs(vim.lsp.get_clients()) do
      for _, request in pairs(client.requests) do
        if request.type == 'pending' then
          return true
        end
      end
    end
    return false
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


def open_source_anew(neovim: Neovim, path: Any) -> None:
    """The same for a file that may be open already.

    To read it again closes and opens it for the server, which takes back what it said and says it again a little later. All of the earlier
    reading goes first: what stands then is of the new one, and nothing takes it back.
    """
    neovim.lua(FORGET, str(path))
    open_source(neovim, path)


def read_heat(neovim: Neovim) -> dict[int, str]:
    """0-based line → highlight group of its background, or the words behind a stale line."""
    return dict(neovim.lua(HEAT))


def wait_for_heat(neovim: Neovim) -> dict[int, str]:
    """The first heat that is drawn. What was drawn of an earlier reading of the file is to be forgotten before (:func:`open_source_anew`)."""
    found: dict[int, str] = neovim.wait_for("heat", lambda: read_heat(neovim))
    return found


def wait_for_answers(neovim: Neovim) -> None:
    """Wait until no request is open, and what answers do is done: windows that they open come no later."""
    neovim.wait_for("answers to all requests", lambda: not neovim.lua(OPEN_REQUESTS))
    neovim.lua("vim.wait(0)")


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
