--- Source and SASS side by side: the line under the cursor is shown on the other side too.

local rpc = require('gpa_lsp.rpc')

local M = {}

local namespace = vim.api.nvim_create_namespace('gpa_lsp.linked')
local pause_ms = 60

---@type boolean? nil: as the options say
local wanted = nil
local timer = assert(vim.uv.new_timer())
---@type string where the cursor was when we last asked
local last_place = ''
---@type table<integer, true> buffers with marks
local marked = {}
---@type table<integer, true> buffers we listen to
local attached = {}

--- Whether source and SASS are linked: by the cursor, and by colours.
---@return boolean
function M.is_wanted()
  if wanted == nil then
    return require('gpa_lsp.options').get().window.sync
  end
  return wanted
end

local function clear()
  for buffer in pairs(marked) do
    if vim.api.nvim_buf_is_valid(buffer) then
      vim.api.nvim_buf_clear_namespace(buffer, namespace, 0, -1)
    end
  end
  marked = {}
end

--- The other windows of this tab page, by the document they show. Only if both a source and SASS are among all of them.
---@return table<string, integer[]>?
local function find_windows()
  local current = vim.api.nvim_get_current_win()
  local by_uri, has_sass, has_source = {}, false, false
  for _, window in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    local buffer = vim.api.nvim_win_get_buf(window)
    if attached[buffer] then
      local uri = vim.uri_from_bufnr(buffer)
      has_sass, has_source = has_sass or rpc.is_sass(uri), has_source or not rpc.is_sass(uri)
      if window ~= current then
        by_uri[uri] = vim.list_extend(by_uri[uri] or {}, { window })
      end
    end
  end
  return has_sass and has_source and by_uri or nil
end

--- The background stays below heat; the number and the underlined text say it on hot lines too.
---@param buffer integer
---@param line integer 0-based
---@param is_main boolean
local function mark(buffer, line, is_main)
  local text = vim.api.nvim_buf_get_lines(buffer, line, line + 1, false)[1]
  if text == nil then
    return
  end
  marked[buffer] = true
  vim.api.nvim_buf_set_extmark(buffer, namespace, line, 0, { line_hl_group = 'GpaLinked', priority = 80 })
  vim.api.nvim_buf_set_extmark(buffer, namespace, line, #text:match('^%s*'), {
    number_hl_group = 'GpaLinkedNumber',
    end_col = #text,
    hl_group = is_main and 'GpaLinkedMain' or nil,
    priority = 130,
  })
end

--- Show a link in the windows of its document.
---@param link { uri: string, ranges: lsp.Range[], primary: lsp.Range }
---@param windows integer[]
local function show_link(link, windows)
  local buffer = vim.api.nvim_win_get_buf(windows[1])
  for _, range in ipairs(link.ranges) do
    local past_end = range['end'].character == 0 and 1 or 0
    for line = range.start.line, math.max(range.start.line, range['end'].line - past_end) do
      mark(buffer, line, line == link.primary.start.line)
    end
  end
  local line = math.min(link.primary.start.line + 1, vim.api.nvim_buf_line_count(buffer))
  for _, window in ipairs(windows) do
    vim.api.nvim_win_set_cursor(window, { line, 0 }) -- no autocommand comes of it: the window is not current
  end
end

--- Where the cursor is, and in which text.
local function describe_place()
  local uri, line = rpc.place()
  return ('%s:%d:%d'):format(uri, line, vim.api.nvim_buf_get_changedtick(0))
end

--- Ask what belongs to the line under the cursor, and show it.
local function synchronise()
  local windows = M.is_wanted() and find_windows()
  if not windows then
    last_place = ''
    clear()
    return
  end
  local uri, line = rpc.place()
  local place = describe_place()
  local client = rpc.find_clients(0)[1]
  if place == last_place or not client then
    return
  end
  last_place = place
  local question = { command = 'gpaLsp.findLinked', arguments = { uri, line } }
  rpc.request(client, 'workspace/executeCommand', question, function(links)
    if place ~= last_place or place ~= describe_place() then
      return -- the cursor has moved on, perhaps into one of these windows
    end
    clear()
    local shown = {}
    for _, link in ipairs(links or {}) do
      if windows[link.uri] and not shown[link.uri] and vim.api.nvim_win_is_valid(windows[link.uri][1]) then
        shown[link.uri] = true
        show_link(link, windows[link.uri])
      end
    end
  end)
end

--- Listen to the cursor in a buffer of ours.
---@param buffer integer
function M.attach(buffer)
  attached[buffer] = true
  vim.api.nvim_create_autocmd({ 'CursorMoved', 'BufEnter' }, {
    group = vim.api.nvim_create_augroup('gpa_lsp.sync.' .. buffer, {}),
    buffer = buffer,
    callback = function()
      if next(vim.lsp.get_clients({ bufnr = buffer, name = rpc.name })) == nil then
        attached[buffer] = nil
        return true
      end
      timer:start(pause_ms, 0, vim.schedule_wrap(synchronise))
    end,
  })
end

--- Turn it on or off.
---@param value boolean? nil: the other way round
---@return boolean on
function M.show(value)
  wanted = value == nil and not M.is_wanted() or value == true
  last_place = ''
  synchronise()
  require('gpa_lsp.ties').schedule()
  return wanted
end

return M
