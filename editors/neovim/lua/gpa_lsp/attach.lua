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
  require('gpa_lsp.sync').attach(buffer)
  require('gpa_lsp.sass').retry()
end

---@param client vim.lsp.Client
---@param buffer integer
function M.detach(client, buffer)
  require('gpa_lsp.heat').forget(buffer)
  require('gpa_lsp.hints').forget(buffer)
  require('gpa_lsp.status').forget(client.id, buffer)
end

return M
