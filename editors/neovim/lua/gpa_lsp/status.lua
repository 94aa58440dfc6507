--- What the server is doing, for status lines.

local M = {}

---@class gpa_lsp.Status
---@field state 'idle'|'reading'|'measuring'|'asking'|'failed'
---@field text string
---@field profiles integer
---@field kernels integer
---@field metric { name: string, title: string } what lines show
---@field question string what a save waits for; '' when nothing is asked
---@field detail string what is not done here, and why; '' for nothing

---@type table<integer, gpa_lsp.Status>
local by_client = {}

---@param status gpa_lsp.Status
---@param client_id integer
function M.take(status, client_id)
  by_client[client_id] = status
  vim.api.nvim_exec_autocmds('User', { pattern = 'GpaLspStatus', modeline = false, data = status })
  vim.cmd.redrawstatus({ bang = true })
end

--- A server that has no buffer left is on its way out.
---@param client_id integer
---@param buffer integer the one it leaves
function M.forget(client_id, buffer)
  local client = vim.lsp.get_client_by_id(client_id)
  for other in pairs(client and client.attached_buffers or {}) do
    if other ~= buffer then
      return
    end
  end
  by_client[client_id] = nil
end

--- The status of the server of a buffer, or of any.
---@param buffer integer?
---@return gpa_lsp.Status?
function M.get(buffer)
  for _, client in ipairs(require('gpa_lsp.rpc').find_clients(buffer)) do
    if by_client[client.id] then
      return by_client[client.id]
    end
  end
end

---@return string
function M.text()
  local status = M.get()
  if not status then
    return ''
  end
  local shown = M.shown()
  return shown == '' and status.text or ('%s, showing %s'):format(status.text, shown)
end

--- What lines show, where somebody chose; '' where nobody did.
---@return string
function M.shown()
  local status = M.get()
  local metric = status and status.metric
  return metric and metric.name ~= 'usual' and metric.title or ''
end

--- The question a save waits for; '' when nothing is asked.
---@return string
function M.question()
  local status = M.get()
  return status and status.question or ''
end

return M
