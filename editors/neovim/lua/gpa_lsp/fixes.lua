--- Fixes: what they change and what the compiler makes of them, in a window, before they are applied.

local rpc = require('gpa_lsp.rpc')

local M = {}

local namespace = vim.api.nvim_create_namespace('gpa_lsp.fixes')
local pause_ms = 300
local widest = 100
local timer = assert(vim.uv.new_timer())

---@class gpa_lsp.FixWindow
---@field client vim.lsp.Client
---@field source integer the buffer that is to be changed
---@field tick integer its changes until now
---@field actions lsp.CodeAction[]
---@field buffer integer of the window
---@field window integer
---@field owners table<integer, integer> line of the window (1-based) -> number of the action

---@param buffer integer
---@param line integer 0-based
---@param kind integer 1: somebody asked, 2: nobody did
local function make_params(buffer, line, kind)
  local place = { line = line, character = 0 }
  return {
    textDocument = { uri = vim.uri_from_bufnr(buffer) },
    range = { start = place, ['end'] = place },
    context = { diagnostics = {}, only = { 'quickfix' }, triggerKind = kind },
  }
end

--- The edits of a buffer, without what Neovim would say of them afterwards: it has been read.
---@param edit lsp.WorkspaceEdit
---@param uri string
---@return lsp.TextEdit[]
local function list_edits(edit, uri)
  local found = vim.deepcopy((edit.changes or {})[uri] or {})
  for _, change in ipairs(edit.documentChanges or {}) do
    if change.textDocument and change.textDocument.uri == uri then
      vim.list_extend(found, vim.deepcopy(change.edits))
    end
  end
  for _, one in ipairs(found) do
    one.annotationId = nil
  end
  return found
end

--- The lines that go and come.
---@param shown gpa_lsp.FixWindow
---@param action lsp.CodeAction
---@return string[]
local function describe_change(shown, action)
  if not action.edit then
    return {}
  end
  local before = vim.api.nvim_buf_get_lines(shown.source, 0, -1, false)
  local scratch = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(scratch, 0, -1, false, before)
  local edits = list_edits(action.edit, vim.uri_from_bufnr(shown.source))
  vim.lsp.util.apply_text_edits(edits, scratch, shown.client.offset_encoding)
  local after = vim.api.nvim_buf_get_lines(scratch, 0, -1, false)
  vim.api.nvim_buf_delete(scratch, { force = true })
  local found = {}
  local hunks = vim.diff(table.concat(before, '\n') .. '\n', table.concat(after, '\n') .. '\n', { result_type = 'indices' })
  for _, hunk in ipairs(hunks --[[@as integer[][] ]]) do
    for line = hunk[1], hunk[1] + hunk[2] - 1 do
      table.insert(found, '  - ' .. before[line])
    end
    for line = hunk[3], hunk[3] + hunk[4] - 1 do
      table.insert(found, '  + ' .. after[line])
    end
  end
  return found
end

---@param text string
---@param width integer
---@return string[]
local function wrap(text, width)
  local lines, line = {}, ''
  for word in text:gmatch('%S+') do
    if line ~= '' and vim.fn.strdisplaywidth(line .. ' ' .. word) > width then
      table.insert(lines, line)
      line = word
    else
      line = line == '' and word or line .. ' ' .. word
    end
  end
  table.insert(lines, line)
  return lines
end

local groups = { ['-'] = 'DiffDelete', ['+'] = 'DiffAdd' }

---@param shown gpa_lsp.FixWindow
local function draw(shown)
  if not vim.api.nvim_buf_is_valid(shown.buffer) then
    return
  end
  local width = math.min(widest, vim.o.columns - 4)
  local lines, owners, marks = {}, {}, {}
  local function add(text, group, number)
    table.insert(lines, text)
    owners[#lines] = number
    if group then
      table.insert(marks, { #lines - 1, group })
    end
  end
  for number, action in ipairs(shown.actions) do
    add(('%d  %s'):format(number, (action.data or {}).title or action.title), 'Title', number)
    for _, line in ipairs(describe_change(shown, action)) do
      add(line, groups[line:sub(3, 3)], number)
    end
    for _, sentence in ipairs((action.data or {}).sentences or {}) do
      for _, line in ipairs(wrap(sentence, width - 4)) do
        add('  ' .. line, nil, number)
      end
    end
  end
  add('<CR> applies the fix under the cursor, q closes', 'Comment', nil)
  shown.owners = owners
  vim.bo[shown.buffer].modifiable = true
  vim.api.nvim_buf_set_lines(shown.buffer, 0, -1, false, lines)
  vim.bo[shown.buffer].modifiable = false
  vim.api.nvim_buf_clear_namespace(shown.buffer, namespace, 0, -1)
  for _, mark in ipairs(marks) do
    vim.api.nvim_buf_set_extmark(shown.buffer, namespace, mark[1], 0, { line_hl_group = mark[2] })
  end
  if vim.api.nvim_win_is_valid(shown.window) then
    vim.api.nvim_win_set_config(shown.window, { height = math.min(#lines, math.max(vim.o.lines - 6, 3)) })
  end
end

--- Ask until the compiler has said something, as long as somebody looks.
---@param shown gpa_lsp.FixWindow
---@param number integer
local function resolve(shown, number)
  rpc.request(shown.client, 'codeAction/resolve', shown.actions[number], function(found)
    if found and vim.api.nvim_win_is_valid(shown.window) then
      shown.actions[number] = found
      draw(shown)
      if (found.data or {}).state == 'pending' then
        resolve(shown, number)
      end
    end
  end, shown.source)
end

---@param shown gpa_lsp.FixWindow
local function apply(shown)
  local number = shown.owners[vim.api.nvim_win_get_cursor(shown.window)[1]]
  local action = number and shown.actions[number]
  if not action then
    return
  end
  vim.api.nvim_win_close(shown.window, true)
  if not action.edit then
    rpc.say('the fix is not here yet; ask again')
  elseif vim.api.nvim_buf_get_changedtick(shown.source) ~= shown.tick then
    rpc.say('the source was changed meanwhile; ask again')
  else
    local edits = list_edits(action.edit, vim.uri_from_bufnr(shown.source))
    vim.lsp.util.apply_text_edits(edits, shown.source, shown.client.offset_encoding)
  end
end

---@param client vim.lsp.Client
---@param source integer
---@param actions lsp.CodeAction[]
local function open(client, source, actions)
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.bo[buffer].bufhidden = 'wipe'
  local window = vim.api.nvim_open_win(buffer, true, {
    relative = 'cursor',
    row = 1,
    col = 0,
    width = math.min(widest, vim.o.columns - 4),
    height = #actions * 4 + 1,
    style = 'minimal',
    border = 'rounded',
    title = ' Fixes ',
  })
  local tick = vim.api.nvim_buf_get_changedtick(source)
  local shown = { client = client, source = source, tick = tick, actions = actions, buffer = buffer, window = window }
  local function close()
    if vim.api.nvim_win_is_valid(window) then
      vim.api.nvim_win_close(window, true)
    end
  end
  for _, key in ipairs({ 'q', '<Esc>' }) do
    vim.keymap.set('n', key, close, { buffer = buffer, nowait = true })
  end
  vim.keymap.set('n', '<CR>', function()
    apply(shown)
  end, { buffer = buffer, nowait = true })
  vim.api.nvim_create_autocmd('WinLeave', { buffer = buffer, once = true, callback = vim.schedule_wrap(close) })
  draw(shown)
  vim.wo[window].cursorline = true
  for number, action in ipairs(actions) do
    if action.data then
      resolve(shown, number)
    end
  end
end

--- Show the fixes of the line the cursor is on.
function M.show()
  local client = rpc.find_client()
  local source = vim.api.nvim_get_current_buf()
  if not client then
    return
  end
  local _, line = rpc.place()
  rpc.request(client, 'textDocument/codeAction', make_params(source, line, 1), function(actions)
    if next(actions or {}) == nil then
      rpc.say('no fix is known for this line; `:GpaLsp next` goes to the next hot one')
    elseif vim.api.nvim_get_current_buf() == source then
      open(client, source, actions)
    end
  end, source)
end

--- Let the server try the fixes of the line the cursor rests on, so that `vim.lsp.buf.code_action()` says what came of it.
---@param client vim.lsp.Client
---@param buffer integer
function M.attach(client, buffer)
  if rpc.is_sass(vim.api.nvim_buf_get_name(buffer)) then
    return
  end
  local last = -1
  local function ask()
    if vim.api.nvim_get_current_buf() ~= buffer or not client.attached_buffers[buffer] then
      return
    end
    local _, line = rpc.place()
    if line ~= last and vim.api.nvim_get_mode().mode == 'n' then
      last = line
      rpc.request(client, 'textDocument/codeAction', make_params(buffer, line, 2), function() end, buffer)
    end
  end
  vim.api.nvim_create_autocmd({ 'CursorMoved', 'TextChanged', 'InsertLeave' }, {
    group = vim.api.nvim_create_augroup('gpa_lsp.fixes.' .. buffer, {}),
    buffer = buffer,
    callback = function(event)
      last = event.event == 'CursorMoved' and last or -1
      timer:start(pause_ms, 0, vim.schedule_wrap(ask))
    end,
  })
end

return M
