--- Neovim 0.10 opens a window for the hover of the server that answers first, and goes into it when the next one answers. Here ours waits for
--- the others and shows all.

local rpc = require('gpa_lsp.rpc')

local M = {}

local focus_id = 'textDocument/hover'

---@param result lsp.Hover?
---@return string[] no lines when there is nothing
local function find_lines(result)
  if not (result and result.contents) then
    return {}
  end
  return vim.lsp.util.convert_input_to_markdown_lines(result.contents)
end

--- Those who answer hovers in a buffer, ours left out.
local function find_others(buffer, own_id)
  return vim.tbl_filter(function(client)
    return client.id ~= own_id and client.supports_method('textDocument/hover', { bufnr = buffer })
  end, vim.lsp.get_clients({ bufnr = buffer }))
end

---@type integer? the last window of ours
local own_window = nil

--- Make room: Neovim would go into the window of another server's hover instead of opening one.
local function close_others(buffer)
  for _, window in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    local is_hover, of_buffer = pcall(vim.api.nvim_win_get_var, window, focus_id)
    if is_hover and of_buffer == buffer and window ~= own_window then
      vim.api.nvim_win_close(window, true)
    end
  end
end

---@param parts { name: string, lines: string[] }[] those with lines
---@param buffer integer
---@param config table?
local function show(parts, buffer, config)
  local lines = {}
  for index, part in ipairs(parts) do
    if #parts > 1 then
      table.insert(lines, '# ' .. part.name)
    end
    vim.list_extend(lines, part.lines)
    if index < #parts then
      table.insert(lines, '---')
    end
  end
  close_others(buffer)
  local most = math.floor(vim.o.lines / 2) -- the code it is about stays in sight
  config = vim.tbl_extend('keep', config or {}, { focus_id = focus_id, max_height = most })
  local _, window = vim.lsp.util.open_floating_preview(lines, 'markdown', config)
  own_window = window
end

--- Our answer to a hover has come.
---@type lsp.Handler
function M.answer(error, result, context, config)
  local own = vim.lsp.get_client_by_id(context.client_id)
  local buffer = context.bufnr
  local others = own and find_others(buffer, own.id) or {}
  if error or #others == 0 or not require('gpa_lsp.options').get().merge_hovers then
    config = vim.tbl_extend('keep', config or {}, { max_height = math.floor(vim.o.lines / 2) })
    return vim.lsp.handlers['textDocument/hover'](error, result, context, config)
  end
  local lines = find_lines(result)
  if #lines == 0 then
    return -- the others say what there is, or that there is nothing
  end
  local parts, open = { { name = rpc.name, lines = lines } }, #others
  for _, other in ipairs(others) do
    local params = vim.lsp.util.make_position_params(0, other.offset_encoding)
    local asked = other.request('textDocument/hover', params, function(_, theirs)
      local their_lines = find_lines(theirs)
      if #their_lines > 0 then
        table.insert(parts, { name = other.name, lines = their_lines })
      end
      open = open - 1
      if open == 0 and vim.api.nvim_get_current_buf() == buffer then
        show(parts, buffer, config)
      end
    end, buffer)
    open = asked and open or open - 1
  end
end

return M
