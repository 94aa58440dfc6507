--- Colours that tie the lines of a source to their instructions, where both are visible: a sign and a number of the same colour.

local rpc = require('gpa_lsp.rpc')

local M = {}

local namespace = vim.api.nvim_create_namespace('gpa_lsp.ties')
local pause_ms = 100

local timer = assert(vim.uv.new_timer())
local turn = 0
---@type table<integer, true> buffers with signs
local marked = {}

local function clear()
  for buffer in pairs(marked) do
    if vim.api.nvim_buf_is_valid(buffer) then
      vim.api.nvim_buf_clear_namespace(buffer, namespace, 0, -1)
    end
  end
  marked = {}
end

--- The documents of ours in this tab page: SASS, and sources.
---@return { buffer: integer, uri: string, client: vim.lsp.Client }[]
---@return { buffer: integer, uri: string }[]
local function find_documents()
  local sass, sources, seen = {}, {}, {}
  for _, window in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    local buffer = vim.api.nvim_win_get_buf(window)
    local client = vim.lsp.get_clients({ bufnr = buffer, name = rpc.name })[1]
    if client and not seen[buffer] then
      seen[buffer] = true
      local uri = vim.uri_from_bufnr(buffer)
      table.insert(rpc.is_sass(uri) and sass or sources, { buffer = buffer, uri = uri, client = client })
    end
  end
  return sass, sources
end

---@param buffer integer
---@param line integer 0-based
---@param colour integer
local function mark(buffer, line, colour)
  if line < vim.api.nvim_buf_line_count(buffer) then
    marked[buffer] = true
    vim.api.nvim_buf_set_extmark(buffer, namespace, line, 0, {
      sign_text = '▌',
      sign_hl_group = 'GpaTie' .. colour,
      priority = 5, -- signs of diagnostics are in front of it, and then the number has the colour
    })
    vim.api.nvim_buf_set_extmark(buffer, namespace, line, 0, {
      number_hl_group = 'GpaTie' .. colour,
      priority = 95, -- the background of a hot line is seen beside its number, too
    })
  end
end

---@param found { sass: integer, source: integer, ties: table[] }[]
local function draw(found)
  clear()
  local has_colours = {}
  for _, pair in ipairs(found) do
    for _, tie in ipairs(pair.ties) do
      if not has_colours[pair.source] then -- beside several kernels a source keeps the colours of the first
        mark(pair.source, tie.line, tie.colour)
      end
      for _, stretch in ipairs(tie.ranges) do
        for line = stretch.first, stretch.last do
          mark(pair.sass, line, tie.colour)
        end
      end
    end
    has_colours[pair.source] = has_colours[pair.source] or #pair.ties > 0
  end
end

--- Ask which lines belong together, and show it.
local function follow()
  turn = turn + 1
  local asked_in = turn
  local sass, sources = find_documents()
  local waiting, found = #sass * #sources, {}
  if not require('gpa_lsp.sync').is_wanted() or waiting == 0 then
    clear()
    return
  end
  for _, one in ipairs(sass) do
    for _, other in ipairs(sources) do
      local question = { command = 'gpaLsp.listTies', arguments = { one.uri, other.uri } }
      local pair = { sass = one.buffer, source = other.buffer, ties = {} }
      table.insert(found, pair)
      rpc.request(one.client, 'workspace/executeCommand', question, function(ties)
        pair.ties = ties or {}
        waiting = waiting - 1
        local are_there = vim.api.nvim_buf_is_loaded(pair.sass) and vim.api.nvim_buf_is_loaded(pair.source)
        if waiting == 0 and asked_in == turn and are_there then
          draw(found)
        end
      end)
    end
  end
end

--- Something is shown, or known, that was not before.
function M.schedule()
  timer:start(pause_ms, 0, vim.schedule_wrap(follow))
end

--- Listen to windows, once.
function M.listen()
  vim.api.nvim_create_autocmd({ 'BufWinEnter', 'WinClosed', 'TabEnter' }, {
    group = vim.api.nvim_create_augroup('gpa_lsp.ties', {}),
    callback = M.schedule,
  })
  M.schedule()
end

return M
