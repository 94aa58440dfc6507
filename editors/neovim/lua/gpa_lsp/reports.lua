--- Reports that are opened as files: their advice as text instead of their bytes, and the way to the page.

local rpc = require('gpa_lsp.rpc')

local M = {}

--- The command line of gpa-lsp, from that of its server.
---@param arguments string[]
---@return string[]
local function build_command(arguments)
  local server = require('gpa_lsp.options').get().cmd
  local words = { 'gpa-lsp' }
  if type(server) == 'table' and server[#server] == 'serve' then
    words = vim.list_slice(server, 1, #server - 1)
  end
  return vim.list_extend(words, arguments)
end

--- Run gpa-lsp in the background.
---@param arguments string[]
---@param answer fun(output: string, errors: string, is_done: boolean)
local function run(arguments, answer)
  local command = build_command(arguments)
  local has_started, reason = pcall(
    vim.system,
    command,
    { text = true },
    vim.schedule_wrap(function(result)
      answer(result.stdout or '', result.stderr or '', result.code == 0)
    end)
  )
  if not has_started then
    answer('', ('%s cannot be started: %s'):format(command[1], reason), false)
  end
end

---@param buffer integer
---@param parts string[]
local function fill(buffer, parts)
  if not vim.api.nvim_buf_is_valid(buffer) then
    return
  end
  vim.bo[buffer].modifiable = true
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, vim.split(table.concat(parts, '\n\n'), '\n', { plain = true }))
  vim.bo[buffer].modifiable = false
  vim.bo[buffer].modified = false
end

--- BufReadCmd.
---@param buffer integer
function M.read(buffer)
  local file = vim.api.nvim_buf_get_name(buffer)
  local head = vim.fs.basename(file) .. ' · :GpaLsp page shows all of it in a browser'
  vim.bo[buffer].buftype = 'nofile' -- what stands in the buffer must never be written over the report
  vim.bo[buffer].swapfile = false
  vim.bo[buffer].undolevels = -1
  vim.b[buffer].gpa_lsp_report = true
  if vim.fn.filereadable(file) == 0 then
    fill(buffer, { file .. ': there is no such file' })
    return
  end
  fill(buffer, { head, 'reading …' })
  run({ 'advise', '--color', 'never', file }, function(output, errors)
    local parts = vim.tbl_filter(function(part)
      return part ~= ''
    end, { head, vim.trim(output), vim.trim(errors) })
    fill(buffer, parts)
  end)
end

---@param buffer integer
function M.is_report(buffer)
  return vim.b[buffer].gpa_lsp_report == true
end

--- Show the page of a report in a browser: the server's, or where none runs, one of our own.
---@param buffer integer
function M.show_page(buffer)
  local file = vim.api.nvim_buf_get_name(buffer)
  local client = rpc.find_clients(buffer)[1]
  if client then
    rpc.execute(client, 'gpaLsp.openReport', { vim.uri_from_fname(file) })
    return
  end
  local page = vim.fn.tempname() .. '.html'
  run({ 'report', '--html', '--output', page, file }, function(_, errors, is_done)
    if is_done then
      vim.ui.open(page)
    else
      rpc.say(vim.trim(errors), vim.log.levels.ERROR)
    end
  end)
end

return M
