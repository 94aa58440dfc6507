--- What happens when our client meets a buffer, or leaves one.

local M = {}

---@param client vim.lsp.Client
---@param buffer integer
function M.attach(client, buffer)
  local options = require('gpa_lsp.options').get()
  require('gpa_lsp.colours').follow_scheme()
  if options.code_lenses then
    require('gpa_lsp.lenses').attach(client, buffer)
  end
  if options.try_fixes then
    require('gpa_lsp.fixes').attach(client, buffer)
  end
  require('gpa_lsp.sync').attach(buffer)
  require('gpa_lsp.ties').listen()
  require('gpa_lsp.sass').retry()
  for _, other in ipairs(vim.api.nvim_list_bufs()) do
    M.attach_description(client, other)
  end
end

--- Descriptions of launches beside sources go to the client of those sources, and to no other of all TOML files.
---@param client vim.lsp.Client
---@param buffer integer
function M.attach_description(client, buffer)
  local name = vim.api.nvim_buf_get_name(buffer)
  local is_ours = vim.endswith(name, '.launch.toml') and vim.bo[buffer].buftype == ''
  if not is_ours or not vim.api.nvim_buf_is_loaded(buffer) or client.attached_buffers[buffer] then
    return
  end
  local folder = vim.fs.dirname(name)
  for other in pairs(client.attached_buffers) do
    if vim.fs.dirname(vim.api.nvim_buf_get_name(other)) == folder then
      vim.lsp.buf_attach_client(buffer, client.id)
      return
    end
  end
end

---@param client vim.lsp.Client
---@param buffer integer
function M.detach(client, buffer)
  require('gpa_lsp.heat').forget(buffer)
  require('gpa_lsp.hints').forget(buffer)
  require('gpa_lsp.status').forget(client.id, buffer)
end

return M
