--- Launches of a program are recorded: which one, where the settings name none.

local rpc = require('gpa_lsp.rpc')

local M = {}

---@type string what was run last
local last_used = ''

---@param client vim.lsp.Client
---@return boolean whether the settings name a program
local function is_configured(client)
  local settings = client.config.settings or {}
  local found = vim.tbl_get(settings, 'gpaLsp', 'emulation', 'recordCommand')
  return found ~= nil and found ~= vim.NIL and #found > 0
end

---@param client vim.lsp.Client
---@param command string? nil for that of the settings
local function run(client, command)
  local uri = vim.bo.buftype == '' and (rpc.place()) or vim.NIL
  rpc.execute(client, 'gpaLsp.recordLaunches', { uri, command or vim.NIL }, function() end)
end

--- Run a program; the server asks before it runs.
---@param command string '' for that of the settings, else one is asked for
function M.record(command)
  local client = rpc.find_client()
  if not client then
    return
  end
  if command == '' and is_configured(client) then
    run(client)
    return
  end
  local function take(typed)
    if typed and vim.trim(typed) ~= '' then
      last_used = typed
      run(client, typed)
    end
  end
  if command ~= '' then
    take(command)
  else
    vim.ui.input({ prompt = 'Record launches by running: ', default = last_used, completion = 'shellcmd' }, take)
  end
end

return M
