--- Asking the server. The only place that knows how Neovim 0.10 and later differ in that.

local M = {}

M.name = 'gpa_lsp'
M.sass_scheme = 'gpa-sass'
M.answer_limit_ms = 5000 -- how long Neovim may stand still for an answer

local has_methods = vim.fn.has('nvim-0.11') == 1

--- Say something to the user.
---@param text string
---@param level integer? of vim.log.levels
function M.say(text, level)
  vim.notify('gpa_lsp: ' .. text, level or vim.log.levels.INFO)
end

--- The clients of ours, those of the buffer first.
---@param buffer integer?
---@return vim.lsp.Client[]
function M.find_clients(buffer)
  local clients = vim.lsp.get_clients({ name = M.name })
  buffer = (buffer == nil or buffer == 0) and vim.api.nvim_get_current_buf() or buffer
  table.sort(clients, function(one, other)
    local first, second = one.attached_buffers[buffer] ~= nil, other.attached_buffers[buffer] ~= nil
    if first ~= second then
      return first
    end
    return one.id < other.id
  end)
  return clients
end

--- The client for a buffer; the user is told when there is none.
---@param buffer integer?
---@return vim.lsp.Client?
function M.find_client(buffer)
  local client = M.find_clients(buffer)[1]
  if not client then
    M.say('no server runs; open a file of a measured program, and see :checkhealth gpa_lsp', vim.log.levels.WARN)
  end
  return client
end

--- A message with nil for null: Neovim 0.12 hands out vim.NIL, which is true and no number.
---@generic T
---@param value T
---@return T
function M.without_nulls(value)
  if value == vim.NIL then
    return nil
  end
  if type(value) ~= 'table' then
    return value
  end
  for key, part in pairs(value) do
    if part == vim.NIL then
      value[key] = nil
    elseif type(part) == 'table' then
      M.without_nulls(part)
    end
  end
  return value
end

---@param client vim.lsp.Client
---@param method string
---@param params table
---@param answer fun(result: any, error: table?)
---@param buffer integer?
function M.request(client, method, params, answer, buffer)
  local function handle(error, result)
    answer(M.without_nulls(result), error)
  end
  if has_methods then
    client:request(method, params, handle, buffer)
  else
    client.request(method, params, handle, buffer)
  end
end

--- The result, or nil when there is none in time.
---@param client vim.lsp.Client
---@param method string
---@param params table
---@return any
function M.request_sync(client, method, params)
  local response
  if has_methods then
    response = client:request_sync(method, params, M.answer_limit_ms)
  else
    response = client.request_sync(method, params, M.answer_limit_ms)
  end
  return response and M.without_nulls(response.result)
end

--- Run a command of the server; errors are shown, and then there is no answer.
---@param client vim.lsp.Client
---@param command string
---@param arguments any[]
---@param answer fun(result: any)?
function M.execute(client, command, arguments, answer)
  M.request(client, 'workspace/executeCommand', { command = command, arguments = arguments }, function(result, error)
    if error then
      M.say(error.message or vim.inspect(error), vim.log.levels.ERROR)
    elseif answer then
      answer(result)
    end
  end)
end

--- The cursor's place, as the commands of the server take it.
---@return string uri
---@return integer line 0-based
function M.place()
  return vim.uri_from_bufnr(0), vim.api.nvim_win_get_cursor(0)[1] - 1
end

---@param uri string
function M.is_sass(uri)
  return vim.startswith(uri, M.sass_scheme .. ':')
end

--- The buffer of a document, if it is loaded.
---@param uri string
---@return integer?
function M.find_buffer(uri)
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buffer) and vim.uri_from_bufnr(buffer) == uri then
      return buffer
    end
  end
end

return M
