--- Code lenses of our server, which Neovim shows only when somebody asks. Those of other servers are the user's business.

local M = {}

local has_provider = vim.fn.has('nvim-0.12') == 1
local method = 'textDocument/codeLens'

--- Ask and show, on 0.10 and 0.11.
---@param client vim.lsp.Client
---@param buffer integer
local function refresh(client, buffer)
  if not vim.api.nvim_buf_is_loaded(buffer) then
    return
  end
  local params = { textDocument = vim.lsp.util.make_text_document_params(buffer) }
  if vim.fn.has('nvim-0.11') == 1 then
    client:request(method, params, vim.lsp.codelens.on_codelens, buffer)
  else
    client.request(method, params, vim.lsp.codelens.on_codelens, buffer)
  end
end

--- The server's lenses have changed.
---@param client_id integer
function M.refresh_client(client_id)
  local client = vim.lsp.get_client_by_id(client_id)
  for buffer in pairs(client and client.attached_buffers or {}) do
    refresh(assert(client), buffer)
  end
end

---@param client vim.lsp.Client
---@param buffer integer
function M.attach(client, buffer)
  if has_provider then
    vim.lsp.codelens.enable(true, { client_id = client.id })
    return
  end
  refresh(client, buffer)
  vim.api.nvim_create_autocmd({ 'BufEnter', 'InsertLeave', 'TextChanged' }, {
    group = vim.api.nvim_create_augroup('gpa_lsp.lenses.' .. buffer, {}),
    buffer = buffer,
    callback = function()
      local known = vim.lsp.get_client_by_id(client.id)
      if known == nil or not known.attached_buffers[buffer] then
        return true
      end
      refresh(known, buffer)
    end,
  })
end

return M
