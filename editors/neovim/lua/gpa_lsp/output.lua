--- What measuring prints, in a buffer.

local M = {}

local name = 'gpa-lsp://output'
local most_lines = 10000

---@return integer
local function find_buffer()
  local buffer = vim.fn.bufadd(name)
  if not vim.api.nvim_buf_is_loaded(buffer) then
    vim.fn.bufload(buffer)
    vim.bo[buffer].buftype = 'nofile'
    vim.bo[buffer].swapfile = false
    vim.bo[buffer].bufhidden = 'hide'
    vim.bo[buffer].undolevels = -1
    vim.bo[buffer].modifiable = false
  end
  return buffer
end

--- Windows whose cursor is on the last line follow what comes.
local function find_followers(buffer)
  local last = vim.api.nvim_buf_line_count(buffer)
  return vim.tbl_filter(function(window)
    return vim.api.nvim_win_get_cursor(window)[1] == last
  end, vim.fn.win_findbuf(buffer))
end

---@param message { text: string, clear: boolean? }
function M.take(message)
  local buffer = find_buffer()
  local followers = find_followers(buffer)
  local lines = vim.split(message.text, '\n', { plain = true })
  if lines[#lines] == '' then
    table.remove(lines)
  end
  vim.bo[buffer].modifiable = true
  local is_empty = message.clear or vim.deep_equal(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), { '' })
  vim.api.nvim_buf_set_lines(buffer, is_empty and 0 or -1, -1, false, lines)
  local surplus = vim.api.nvim_buf_line_count(buffer) - most_lines
  if surplus > 0 then
    vim.api.nvim_buf_set_lines(buffer, 0, surplus, false, {})
  end
  vim.bo[buffer].modifiable = false
  for _, window in ipairs(followers) do
    vim.api.nvim_win_set_cursor(window, { vim.api.nvim_buf_line_count(buffer), 0 })
  end
end

--- Show it.
function M.show()
  local buffer = find_buffer()
  require('gpa_lsp.windows').show_buffer(buffer)
  vim.api.nvim_win_set_cursor(0, { vim.api.nvim_buf_line_count(buffer), 0 })
end

return M
