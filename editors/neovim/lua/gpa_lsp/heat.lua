--- Heat: coloured lines, as the server says. The marks move with the text until it says more.

local M = {}

local namespace = vim.api.nvim_create_namespace('gpa_lsp.heat')

---@class gpa_lsp.Mark
---@field line integer 0-based
---@field ratio number
---@field level integer 0 to 9
---@field kind 'suffers'|'causes'
---@field kernel string
---@field text string

---@class gpa_lsp.Heat
---@field uri string
---@field version integer?
---@field marks gpa_lsp.Mark[]
---@field stale integer[]
---@field unverified integer[]?
---@field simulated integer[]?

---@type table<integer, gpa_lsp.Heat> the last message for each buffer
local latest = {}
---@type boolean? nil: as the options say
local shown = nil

local function is_shown()
  if shown == nil then
    return require('gpa_lsp.options').get().heat.enable
  end
  return shown
end

--- Whether a message is about a text that has changed since.
local function is_old(buffer, message)
  local version = vim.lsp.util.buf_versions[buffer]
  return message.version ~= nil and version ~= nil and message.version < version
end

---@param buffer integer
---@param line integer
---@param properties vim.api.keyset.set_extmark
local function set_mark(buffer, line, properties)
  local text = vim.api.nvim_buf_get_lines(buffer, line, line + 1, false)[1]
  if text == nil then
    return
  end
  properties.end_row, properties.end_col = line, #text
  properties.invalidate = #text > 0 -- a line that is deleted takes its colour with it
  properties.undo_restore = true
  properties.priority = 90 -- below diagnostics, semantic tokens and what the user selects
  vim.api.nvim_buf_set_extmark(buffer, namespace, line, 0, properties)
end

---@param buffer integer
---@param message gpa_lsp.Heat
local function draw(buffer, message)
  vim.api.nvim_buf_clear_namespace(buffer, namespace, 0, -1)
  local heat = require('gpa_lsp.options').get().heat
  local doubted = {}
  for _, line in ipairs(message.unverified or {}) do
    doubted[line] = heat.unverified ~= '' and heat.unverified or nil
  end
  for _, line in ipairs(message.simulated or {}) do
    doubted[line] = heat.simulated ~= '' and heat.simulated or doubted[line]
  end
  for _, mark in ipairs(message.marks) do
    local sign = doubted[mark.line] or heat.sign
    local prefix = mark.kind == 'causes' and 'GpaCause' or 'GpaHeat'
    set_mark(buffer, mark.line, {
      line_hl_group = heat.line and prefix .. mark.level or nil,
      number_hl_group = heat.number and prefix .. mark.level or nil,
      sign_text = sign ~= '' and sign or nil,
      sign_hl_group = sign ~= '' and prefix .. 'Sign' .. mark.level or nil,
    })
  end
  local is_hinted = vim.lsp.inlay_hint.is_enabled({ bufnr = buffer }) -- then a hint says it
  for _, line in ipairs(message.stale) do
    set_mark(buffer, line, {
      number_hl_group = heat.number and 'GpaStale' or nil,
      virt_text = heat.stale ~= '' and not is_hinted and { { heat.stale, 'GpaStale' } } or nil,
      virt_text_pos = 'eol',
      hl_mode = 'combine',
    })
  end
end

--- A message of the server's: it replaces what was said of that document before.
---@param message gpa_lsp.Heat
function M.take(message)
  local buffer = require('gpa_lsp.rpc').find_buffer(message.uri)
  if buffer == nil or is_old(buffer, message) then
    return
  end
  latest[buffer] = message
  require('gpa_lsp.ties').schedule() -- the server has seen the text as it is, or another measurement
  if is_shown() then
    draw(buffer, message)
  end
end

--- Turn heat on or off everywhere.
---@param wanted boolean? nil: the other way round
---@return boolean shown
function M.show(wanted)
  shown = wanted == nil and not is_shown() or wanted == true
  for buffer, message in pairs(latest) do
    if not vim.api.nvim_buf_is_loaded(buffer) then
      latest[buffer] = nil
    elseif not shown then
      vim.api.nvim_buf_clear_namespace(buffer, namespace, 0, -1)
    elseif not is_old(buffer, message) then -- otherwise the server is about to send a newer one
      draw(buffer, message)
    end
  end
  return shown
end

--- The server has left a buffer.
---@param buffer integer
function M.forget(buffer)
  latest[buffer] = nil
  if vim.api.nvim_buf_is_valid(buffer) then
    vim.api.nvim_buf_clear_namespace(buffer, namespace, 0, -1)
  end
end

return M
