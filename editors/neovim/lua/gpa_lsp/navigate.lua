--- From a line to what it waits for, to who waits for it, to the same code on the other side, and from hot line to hot line.

local rpc = require('gpa_lsp.rpc')

local M = {}

---@class gpa_lsp.Jump
---@field uri string
---@field range lsp.Range
---@field text string
---@field ratio number
---@field samples integer
---@field sass { uri: string, range: lsp.Range }?

---@class gpa_lsp.JumpWishes
---@field sass boolean to the instruction instead of the line
---@field pick boolean let the user choose
---@field number integer which one, most samples first; 0: the first

---@param text string
local function echo(text)
  vim.api.nvim_echo({ { text } }, false, {})
end

---@generic T
---@param items T[]
---@param prompt string
---@param describe fun(item: T): string
---@param take fun(item: T)
local function offer(items, prompt, describe, take)
  vim.ui.select(items, { prompt = prompt, format_item = describe, kind = 'gpa_lsp' }, function(item)
    if item then
      take(item)
    end
  end)
end

---@param jump gpa_lsp.Jump
local function describe_jump(jump)
  return jump.text
end

---@param client vim.lsp.Client
---@param jumps gpa_lsp.Jump[]
---@param prompt string
---@param wishes gpa_lsp.JumpWishes
local function follow(client, jumps, prompt, wishes)
  local function go(jump, position)
    require('gpa_lsp.windows').show(client, wishes.sass and jump.sass or jump)
    echo(#jumps > 1 and ('%s (%s of %d)'):format(jump.text, position, #jumps) or jump.text)
  end
  if wishes.pick and #jumps > 1 then
    offer(jumps, prompt, describe_jump, function(jump)
      go(jump, 'chosen')
    end)
    return
  end
  local number = math.min(math.max(wishes.number, 1), #jumps)
  go(jumps[number], number)
end

---@param command string 'gpaLsp.findCauses' or 'gpaLsp.findVictims'
---@param nothing string what to say when there are none
---@param prompt string
---@param wishes gpa_lsp.JumpWishes
local function jump_along(command, nothing, prompt, wishes)
  local client = rpc.find_client()
  if not client then
    return
  end
  local uri, line = rpc.place()
  rpc.execute(client, command, { uri, line }, function(jumps)
    if next(jumps or {}) == nil then
      rpc.say(nothing)
    else
      follow(client, jumps, prompt, wishes)
    end
  end)
end

--- Go to what the line under the cursor is stalled on.
---@param wishes gpa_lsp.JumpWishes
function M.cause(wishes)
  jump_along('gpaLsp.findCauses', 'this line is not known to be stalled on another one', 'Stalled on', wishes)
end

--- Go to the lines that are stalled on the line under the cursor.
---@param wishes gpa_lsp.JumpWishes
function M.victim(wishes)
  jump_along('gpaLsp.findVictims', 'no line is known to be stalled on this one', 'Stalled on this', wishes)
end

--- Go to the SASS of the line under the cursor, or from SASS to its source. Several kernels may have been made of a line: they are offered. Of
--- several lines an instruction was inlined through, the innermost is first.
---@param number integer which kernel or which line; 0: ask, or the innermost
function M.other_side(number)
  local client = rpc.find_client()
  if not client then
    return
  end
  local uri, line = rpc.place()
  local function go(link)
    require('gpa_lsp.windows').show(client, { uri = link.uri, range = link.primary })
  end
  rpc.execute(client, 'gpaLsp.findLinked', { uri, line }, function(links)
    if next(links or {}) == nil then
      if rpc.is_sass(uri) then
        rpc.say('no source line is known for this instruction')
      else -- a line without code: the server knows the kernel it is in
        rpc.execute(client, 'gpaLsp.openSass', { uri, line }, function(shown)
          if not shown then
            rpc.say('no measured kernel has code of this line')
          end
        end)
      end
    elseif #links > 1 and number == 0 and not rpc.is_sass(uri) then
      offer(links, 'SASS of', function(link)
        return link.text
      end, go)
    else
      go(links[math.min(math.max(number, 1), #links)])
    end
  end)
end

--- The distinct lines of hot spots, ascending, with a text for each.
---@param spots table[]
---@return { line: integer, spot: table }[]
local function find_lines(spots)
  local by_line, lines = {}, {}
  for _, spot in ipairs(spots) do
    local line = spot.range.start.line
    if not by_line[line] then
      by_line[line] = spot
      table.insert(lines, { line = line, spot = spot })
    end
  end
  table.sort(lines, function(one, other)
    return one.line < other.line
  end)
  return lines
end

--- Go to the next or the previous hot line of this document; at its end it goes on at the other end.
---@param forward boolean
---@param count integer
function M.hot_line(forward, count)
  local client = rpc.find_client()
  if not client then
    return
  end
  local uri, here = rpc.place()
  rpc.execute(client, 'gpaLsp.listHotSpots', { uri }, function(spots)
    local lines = find_lines(spots or {})
    if #lines == 0 then
      rpc.say('no hot line here')
      return
    end
    local before, upto = 0, 0 -- lines above the cursor, and those with the one it is on
    for _, entry in ipairs(lines) do
      before = before + (entry.line < here and 1 or 0)
      upto = upto + (entry.line <= here and 1 or 0)
    end
    local steps = math.max(count, 1)
    local index = (forward and upto + steps - 1 or before - steps) % #lines + 1
    local entry = lines[index]
    vim.cmd("normal! m'")
    vim.api.nvim_win_set_cursor(0, { math.min(entry.line + 1, vim.api.nvim_buf_line_count(0)), 0 })
    vim.cmd('normal! ^zv')
    echo(('%s (%d of %d)'):format(entry.spot.text, index, #lines))
  end)
end

return M
