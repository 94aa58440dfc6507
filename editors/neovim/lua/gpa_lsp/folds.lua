--- Folds of SASS documents, where the server says.

local rpc = require('gpa_lsp.rpc')

local M = {}

---@type table<integer, table<integer, string>> buffer → 1-based line → value of 'foldexpr'
local levels = {}

--- One value a line: how many ranges hold it, and '>' where one begins.
---@param ranges lsp.FoldingRange[]
---@param line_count integer
local function find_levels(ranges, line_count)
  local change, begins = {}, {}
  for _, range in ipairs(ranges) do
    local first, last = range.startLine + 1, range.endLine + 1
    if first < last and last <= line_count then
      change[first] = (change[first] or 0) + 1
      change[last + 1] = (change[last + 1] or 0) - 1
      begins[first] = true
    end
  end
  local found, depth = {}, 0
  for line = 1, line_count do
    depth = depth + (change[line] or 0)
    found[line] = (begins[line] and '>' or '') .. depth
  end
  return found
end

--- 'foldexpr'
function M.level()
  local of_buffer = levels[vim.api.nvim_get_current_buf()]
  return of_buffer and of_buffer[vim.v.lnum] or '0'
end

--- Fold in the windows that show a buffer. All folds are open at first.
local function show(buffer)
  for _, window in ipairs(vim.fn.win_findbuf(buffer)) do
    local of_window = vim.wo[window][0]
    if of_window.foldexpr ~= "v:lua.require'gpa_lsp.folds'.level()" then
      of_window.foldlevel = 99
    end
    of_window.foldmethod = 'expr' -- also makes Neovim ask for the levels again
    of_window.foldexpr = "v:lua.require'gpa_lsp.folds'.level()"
  end
end

---@param client vim.lsp.Client
---@param buffer integer
function M.update(client, buffer)
  local params = { textDocument = { uri = vim.uri_from_bufnr(buffer) } }
  rpc.request(client, 'textDocument/foldingRange', params, function(ranges)
    if ranges and vim.api.nvim_buf_is_loaded(buffer) then
      levels[buffer] = find_levels(ranges, vim.api.nvim_buf_line_count(buffer))
      show(buffer)
    end
  end, buffer)
end

vim.api.nvim_create_autocmd('BufWinEnter', {
  group = vim.api.nvim_create_augroup('gpa_lsp.folds', {}),
  pattern = 'gpa-sass://*',
  callback = function(event)
    if levels[event.buf] then
      show(event.buf)
    end
  end,
})

return M
