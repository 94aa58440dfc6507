--- What the server tells the user. A message that does not fit into one line would stop Neovim until a key is pressed; of such a message the
--- beginning is shown, and the log has the whole.

local M = {}

---@type table<integer, integer> lsp.MessageType → vim.log.levels
local levels = {
  vim.log.levels.ERROR,
  vim.log.levels.WARN,
  vim.log.levels.INFO,
  vim.log.levels.INFO,
  vim.log.levels.DEBUG,
}

local ending = '… (:GpaLsp measure log)'

---@param text string
---@param room integer cells
local function cut(text, room)
  local length = vim.fn.strchars(text)
  while length > 0 and vim.fn.strdisplaywidth(vim.fn.strcharpart(text, 0, length)) > room do
    length = length - 1
  end
  return vim.fn.strcharpart(text, 0, length)
end

--- window/showMessage
---@param message { type: integer, message: string }
function M.show(message)
  local text = message.message:gsub('^gpa%-lsp: ', '')
  text = text:gsub('gpaLsp%.chooseSources', ':GpaLsp show sources'):gsub('gpaLsp%.answerMeasuring', ':GpaLsp allow')
  local line = 'gpa_lsp: ' .. text:gsub('%s*\n%s*', ' ')
  local room = math.max(20, vim.v.echospace)
  if text:find('\n') or vim.fn.strdisplaywidth(line) > room then
    require('gpa_lsp.output').take({ text = text, clear = false })
    line = cut(line, room - vim.fn.strdisplaywidth(ending)) .. ending
  end
  vim.notify(line, levels[message.type] or vim.log.levels.INFO)
end

return M
