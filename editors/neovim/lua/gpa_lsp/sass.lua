--- SASS documents: buffers the server fills.

local rpc = require('gpa_lsp.rpc')

local M = {}

---@type table<integer, true> buffers that no server could fill yet
local waiting = {}

---@param buffer integer
---@param lines string[]
local function fill(buffer, lines)
  local views = {}
  for _, window in ipairs(vim.fn.win_findbuf(buffer)) do
    views[window] = vim.api.nvim_win_call(window, vim.fn.winsaveview)
  end
  vim.bo[buffer].modifiable = true
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
  vim.bo[buffer].modifiable = false
  vim.bo[buffer].modified = false
  for window, view in pairs(views) do
    vim.api.nvim_win_call(window, function()
      vim.fn.winrestview(view)
    end)
  end
end

---@param text string
local function split_lines(text)
  local lines = vim.split(text, '\n', { plain = true })
  if #lines > 1 and lines[#lines] == '' then
    table.remove(lines)
  end
  return lines
end

--- Everything but the text.
local function prepare(buffer)
  vim.bo[buffer].buftype = 'nofile'
  vim.bo[buffer].swapfile = false
  vim.bo[buffer].bufhidden = 'hide'
  vim.bo[buffer].undolevels = -1
  if vim.bo[buffer].filetype ~= 'nvsass' then
    vim.bo[buffer].filetype = 'nvsass'
  end
end

--- Fill a buffer from the first server that knows its document. Waits for the answer: who opened the buffer goes on to a line of it.
---@param buffer integer
---@return boolean
local function load(buffer)
  local uri = vim.api.nvim_buf_get_name(buffer)
  for _, client in ipairs(rpc.find_clients(buffer)) do
    local content = rpc.request_sync(client, 'workspace/textDocumentContent', { uri = uri })
    if content and content.text then
      waiting[buffer] = nil
      fill(buffer, split_lines(content.text))
      prepare(buffer)
      vim.lsp.buf_attach_client(buffer, client.id)
      require('gpa_lsp.folds').update(client, buffer)
      return true
    end
  end
  return false
end

--- BufReadCmd.
---@param buffer integer
function M.read(buffer)
  if not load(buffer) then
    waiting[buffer] = true
    fill(buffer, { '// No running server knows this SASS. It comes when one does: open a source of the program.' })
    prepare(buffer)
  end
end

--- There may be a server now, or it may know more.
function M.retry()
  for buffer in pairs(waiting) do
    waiting[buffer] = nil
    vim.schedule(function()
      if vim.api.nvim_buf_is_loaded(buffer) and not load(buffer) then
        waiting[buffer] = true
      end
    end)
  end
end

--- The server has a new text for a document.
---@param uri string
function M.refresh(uri)
  local buffer = rpc.find_buffer(uri)
  local client = buffer and rpc.find_clients(buffer)[1]
  if not (buffer and client) then
    return
  end
  rpc.request(client, 'workspace/textDocumentContent', { uri = uri }, function(content)
    if content and content.text and vim.api.nvim_buf_is_loaded(buffer) then
      fill(buffer, split_lines(content.text))
      require('gpa_lsp.folds').update(client, buffer)
    end
  end)
end

return M
