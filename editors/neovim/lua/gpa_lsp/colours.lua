--- Highlight groups: ten steps of heat between the background of the colour scheme and a colour.

local M = {}

M.levels = 10
M.least_contrast = 4.5 -- of small text, by the Web Content Accessibility Guidelines 2.2 (1.4.3)

---@alias gpa_lsp.Colour integer 0xrrggbb

--- For dark and for light backgrounds.
local hues = {
  suffers = { dark = 0xe8590c, light = 0xf76707 },
  causes = { dark = 0x3b82f6, light = 0x2f7bf5 },
}
--- Told apart with any colour vision (Okabe and Ito); as many as the server numbers.
local ties = {
  dark = { 0x56b4e9, 0xe69f00, 0x2fc296, 0xcc79a7, 0xf0e442, 0x4c8fd6, 0xe8703a, 0xa0a0a0 },
  light = { 0x3a9bd4, 0xd08f00, 0x009e73, 0xc0629a, 0xb8a800, 0x0072b2, 0xd55e00, 0x808080 },
}
local plain = { dark = 0x1c1c1c, light = 0xffffff }
local inks = { dark = 0xd0d0d0, light = 0x202020 }

---@type table<string, table> what we set last, by group
local set_last = {}

---@param colour gpa_lsp.Colour
---@return integer, integer, integer
local function split(colour)
  return math.floor(colour / 0x10000), math.floor(colour / 0x100) % 0x100, colour % 0x100
end

--- A colour between two others.
---@param from gpa_lsp.Colour
---@param to gpa_lsp.Colour
---@param share number 0: from, 1: to
---@return gpa_lsp.Colour
function M.blend(from, to, share)
  local r1, g1, b1 = split(from)
  local r2, g2, b2 = split(to)
  local function mix(one, other)
    return math.floor(one + (other - one) * share + 0.5)
  end
  return mix(r1, r2) * 0x10000 + mix(g1, g2) * 0x100 + mix(b1, b2)
end

--- The contrast of two colours as the Web Content Accessibility Guidelines 2.2 define it, 1 to 21.
---@param one gpa_lsp.Colour
---@param other gpa_lsp.Colour
---@return number
function M.measure_contrast(one, other)
  local function luminance(colour)
    local function linear(value)
      value = value / 255
      return value <= 0.03928 and value / 12.92 or ((value + 0.055) / 1.055) ^ 2.4
    end
    local r, g, b = split(colour)
    return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b)
  end
  local low, high = luminance(one), luminance(other)
  if low > high then
    low, high = high, low
  end
  return (high + 0.05) / (low + 0.05)
end

--- The faintest colour between the ground and the text that is legible on each of some grounds; the text's own where none is.
---@param ground gpa_lsp.Colour
---@param text gpa_lsp.Colour
---@param grounds gpa_lsp.Colour[]
---@return gpa_lsp.Colour
local function find_quiet(ground, text, grounds)
  for share = 60, 99 do
    local quiet = M.blend(ground, text, share / 100)
    local is_legible = true
    for _, one in ipairs(grounds) do
      is_legible = is_legible and M.measure_contrast(quiet, one) >= M.least_contrast
    end
    if is_legible then
      return quiet
    end
  end
  return text
end

--- The nearest of the 216 colours and 24 greys that terminals without true colour have.
---@param colour gpa_lsp.Colour
---@return integer 16 to 255
function M.find_terminal_colour(colour)
  local steps = { 0, 95, 135, 175, 215, 255 }
  local function nearest(value)
    local best = 1
    for index, step in ipairs(steps) do
      if math.abs(step - value) < math.abs(steps[best] - value) then
        best = index
      end
    end
    return best
  end
  local r, g, b = split(colour)
  local x, y, z = nearest(r), nearest(g), nearest(b)
  local grey = math.min(23, math.max(0, math.floor(((r + g + b) / 3 - 8) / 10 + 0.5)))
  local function distance(r2, g2, b2)
    return (r - r2) ^ 2 + (g - g2) ^ 2 + (b - b2) ^ 2
  end
  if distance(8 + 10 * grey, 8 + 10 * grey, 8 + 10 * grey) < distance(steps[x], steps[y], steps[z]) then
    return 232 + grey
  end
  return 16 + 36 * (x - 1) + 6 * (y - 1) + (z - 1)
end

---@param wish string? '#rrggbb' or a group
---@return gpa_lsp.Colour?
local function read_colour(wish)
  if wish == nil then
    return nil
  end
  if vim.startswith(wish, '#') then
    return tonumber(wish:sub(2), 16)
  end
  return vim.api.nvim_get_hl(0, { name = wish, link = false }).fg
end

--- Set a group unless the user or the colour scheme has an opinion of it.
---@param name string
---@param value vim.api.keyset.highlight
---@param usual vim.api.keyset.highlight? what Neovim itself sets
local function set(name, value, usual)
  local now = vim.api.nvim_get_hl(0, { name = name })
  if next(now) == nil or vim.deep_equal(now, usual) or vim.deep_equal(now, set_last[name]) then
    vim.api.nvim_set_hl(0, name, value)
    set_last[name] = vim.api.nvim_get_hl(0, { name = name })
  end
end

---@param prefix string
---@param hue gpa_lsp.Colour
---@param ground gpa_lsp.Colour
---@param strength number
---@return gpa_lsp.Colour of the hottest line
local function set_scale(prefix, hue, ground, strength)
  for level = 0, M.levels - 1 do
    local colour = M.blend(ground, hue, strength * (0.12 + 0.88 * level / (M.levels - 1)))
    set(prefix .. level, { bg = colour, ctermbg = M.find_terminal_colour(colour) })
    local sign = M.blend(ground, hue, 0.35 + 0.65 * level / (M.levels - 1))
    set(prefix .. 'Sign' .. level, { fg = sign, ctermfg = M.find_terminal_colour(sign) })
  end
  return M.blend(ground, hue, strength)
end

--- (Re)make the groups from the colour scheme in force.
function M.apply()
  local heat = require('gpa_lsp.options').get().heat
  local light = vim.o.background == 'light' and 'light' or 'dark'
  local ground = vim.api.nvim_get_hl(0, { name = 'Normal', link = false }).bg or plain[light]
  local hottest = {
    set_scale('GpaHeat', read_colour(heat.suffers) or hues.suffers[light], ground, heat.strength),
    set_scale('GpaCause', read_colour(heat.causes) or hues.causes[light], ground, heat.strength),
  }
  local text = vim.api.nvim_get_hl(0, { name = 'Normal', link = false }).fg or inks[light]
  local quiet = find_quiet(ground, text, hottest)
  set('GpaHint', { fg = quiet, ctermfg = M.find_terminal_colour(quiet) })
  set('LspCodeLens', { link = 'GpaHint' }, { link = 'NonText' }) -- as faint as the end of a buffer otherwise, and it says most
  set('GpaStale', { link = 'GpaHint' })
  set('GpaLinked', { link = 'CursorLine' })
  set('GpaLinkedNumber', { link = 'CursorLineNr' })
  set('GpaLinkedMain', { bold = true, underline = true })
  for index, colour in ipairs(ties[light]) do
    set('GpaTie' .. (index - 1), { fg = colour, ctermfg = M.find_terminal_colour(colour) })
  end
  set('@lsp.mod.hot.nvsass', { bold = true })
end

local is_following = false

--- Make the groups now and whenever the colour scheme changes.
function M.follow_scheme()
  if is_following then
    return
  end
  is_following = true
  M.apply()
  vim.api.nvim_create_autocmd({ 'ColorScheme', 'OptionSet' }, {
    group = vim.api.nvim_create_augroup('gpa_lsp.colours', {}),
    callback = function(event)
      if event.event == 'ColorScheme' or event.match == 'background' then
        M.apply()
      end
    end,
  })
end

return M
