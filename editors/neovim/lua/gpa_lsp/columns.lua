--- The columns of SASS documents, of the user's choice. The server keeps the choice for the workspace.

local rpc = require('gpa_lsp.rpc')

local M = {}

---@class gpa_lsp.Column
---@field name string
---@field title string
---@field detail string
---@field isShown boolean
---@field isNumber boolean

--- The SASS the user looks at: where the cursor is, or beside it.
---@return integer? buffer
---@return integer? window
function M.find_sass()
  local windows = vim.api.nvim_tabpage_list_wins(0)
  table.insert(windows, 1, vim.api.nvim_get_current_win())
  for _, window in ipairs(windows) do
    local buffer = vim.api.nvim_win_get_buf(window)
    if rpc.is_sass(vim.api.nvim_buf_get_name(buffer)) then
      return buffer, window
    end
  end
end

---@return any[]
local function name_document()
  local buffer = M.find_sass()
  return buffer and { vim.uri_from_bufnr(buffer) } or {}
end

--- Names for completion; those of words cannot be sorted by.
---@param only_numbers boolean
---@return string[]
function M.list_names(only_numbers)
  local client = rpc.find_clients()[1]
  local question = { command = 'gpaLsp.listColumns', arguments = name_document() }
  local columns = client and rpc.request_sync(client, 'workspace/executeCommand', question) or {}
  local names = {}
  for _, column in ipairs(columns) do
    if column.isNumber or not only_numbers then
      table.insert(names, column.name)
    end
  end
  return names
end

---@param client vim.lsp.Client
---@param names string[]? nil: the usual ones
---@param done fun()?
local function choose(client, names, done)
  rpc.execute(client, 'gpaLsp.chooseColumns', names and { names } or {}, function()
    if done then
      done()
    end
  end)
end

--- What is shown, with one column more or less.
---@param columns gpa_lsp.Column[]
---@param other gpa_lsp.Column
local function toggle(columns, other)
  local names = {}
  for _, column in ipairs(columns) do
    if column.isShown and column.name ~= other.name then
      table.insert(names, column.name)
    end
  end
  if not other.isShown then
    table.insert(names, other.name)
  end
  return names
end

--- Let the user switch columns on and off, one after the other, until there is no answer.
---@param client vim.lsp.Client
local function ask(client)
  rpc.execute(client, 'gpaLsp.listColumns', name_document(), function(columns)
    if next(columns or {}) == nil then
      rpc.say('no profile is loaded')
      return
    end
    vim.ui.select(columns, {
      prompt = 'Columns of the SASS',
      kind = 'gpa_lsp',
      format_item = function(column)
        return ('[%s] %s: %s'):format(column.isShown and 'x' or ' ', column.title, column.detail)
      end,
    }, function(column)
      if column then
        choose(client, toggle(columns, column), function()
          ask(client)
        end)
      end
    end)
  end)
end

--- Show the columns with these names; without any, ask. `usual` stands for the usual ones.
---@param names string[]
function M.choose(names)
  local client = rpc.find_client()
  if not client then
    return
  end
  if #names == 0 then
    ask(client)
  else
    choose(client, names[1] ~= 'usual' and names or nil)
  end
end

return M
