--- Neovim 0.10 shows the hover of each server in a window that replaces the one before. Here ours waits for the others and shows all.

local rpc = require('gpa_lsp.rpc')

local M = {}

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

---@param parts { name: string, lines: string[] }[] those with lines
local function show(parts, config)
  local lines = {}
  for index, part in ipairs(parts) do
    if #parts > 1 then
      table.insert(lines, ('%s# %s'):format('', part.name))
    end
    vim.list_extend(lines, part.lines)
    if index < #parts then
      table.insert(lines, '---')
    end
  end
  config = vim.tbl_extend('keep', config or {}, { focus_id = 'textDocument/hover' })
  return vim.lsp.util.open_floating_preview(lines, 'markdown', config)
end

--- Our answer to a hover has come.
---@type lsp.Handler
function M.answer(error, result, context, config)
  local own = vim.lsp.get_client_by_id(context.client_id)
  local buffer = context.bufnr
  local others = own and find_others(buffer, own.id) or {}
  if error or #others == 0 or not require('gpa_lsp.options').get().merge_hovers then
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
        show(parts, config)
      end
    end, buffer)
    open = asked and open or open - 1
  end
end

return M
