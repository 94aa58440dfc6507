--- Our inlay hints. Neovim draws the hints of a text once: those of a server that answers after the first drawing stay invisible until the text
--- changes, be it because there are two servers or because ours has learned something. So ours have marks of their own. Whether hints are shown
--- is still the business of vim.lsp.inlay_hint.enable().

local M = {}

local namespace = vim.api.nvim_create_namespace('gpa_lsp.hints')

---@type table<integer, true> buffers with marks
local drawn = {}

--- Byte of a column, at most the length of the line.
---@param line string
---@param column integer
---@param encoding string
local function find_byte(line, column, encoding)
  if encoding == 'utf-8' then
    return math.min(column, #line)
  end
  if vim.fn.has('nvim-0.11') == 1 then
    return vim.str_byteindex(line, encoding, column, false)
  end
  local is_inside, byte = pcall(vim.str_byteindex, line, column, encoding == 'utf-16')
  return is_inside and byte or #line
end

---@param hint lsp.InlayHint
local function find_text(hint)
  if type(hint.label) == 'string' then
    return hint.label
  end
  local values = vim.tbl_map(function(part)
    return part.value
  end, hint.label)
  return table.concat(values)
end

---@param buffer integer
local function clear(buffer)
  drawn[buffer] = nil
  if vim.api.nvim_buf_is_valid(buffer) then
    vim.api.nvim_buf_clear_namespace(buffer, namespace, 0, -1)
  end
end

--- Hints are asked for the whole buffer, so they replace what was there.
---@param buffer integer
---@param hints lsp.InlayHint[]
---@param encoding string
local function draw(buffer, hints, encoding)
  clear(buffer)
  drawn[buffer] = true
  local lines = vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
  for _, hint in ipairs(hints) do
    local line = lines[hint.position.line + 1]
    if line then
      local padding = hint.paddingLeft and ' ' or ''
      local chunks = { { padding }, { find_text(hint), 'GpaHint' }, { hint.paddingRight and ' ' or '' } }
      local byte = find_byte(line, hint.position.character, encoding)
      vim.api.nvim_buf_set_extmark(buffer, namespace, hint.position.line, byte, {
        virt_text = chunks,
        virt_text_pos = 'inline',
      })
    end
  end
end

--- Our answer has come.
---@type lsp.Handler
function M.answer(error, hints, context)
  local buffer = context.bufnr
  local client = vim.lsp.get_client_by_id(context.client_id)
  if error or not client or not buffer or not vim.api.nvim_buf_is_loaded(buffer) then
    return
  end
  local is_old = context.version and context.version ~= vim.lsp.util.buf_versions[buffer]
  if not is_old and vim.lsp.inlay_hint.is_enabled({ bufnr = buffer }) then
    draw(buffer, require('gpa_lsp.rpc').without_nulls(hints) or {}, client.offset_encoding)
  end
end

--- The server has left a buffer.
---@param buffer integer
function M.forget(buffer)
  clear(buffer)
end

-- Nobody tells when hints are turned off, but Neovim redraws then.
vim.api.nvim_set_decoration_provider(namespace, {
  on_win = function(_, _, buffer)
    if drawn[buffer] and not vim.lsp.inlay_hint.is_enabled({ bufnr = buffer }) then
      clear(buffer)
    end
    return false
  end,
})

return M
