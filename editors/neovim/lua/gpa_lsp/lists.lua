--- Lists: hot spots, kernels, and chains of definitions and uses.

local rpc = require('gpa_lsp.rpc')

local M = {}

local deepest_chain = 6
local longest_chain = 200

---@param uri string
---@param range lsp.Range
---@param text string
local function make_entry(uri, range, text)
  return { bufnr = vim.uri_to_bufnr(uri), lnum = range.start.line + 1, col = 1, text = text }
end

---@param title string
---@param entries table[]
---@param of_window boolean in the location list instead of the quickfix list
local function open(title, entries, of_window)
  local what = { title = title, items = entries }
  if of_window then
    vim.fn.setloclist(0, {}, ' ', what)
    vim.cmd.lopen()
  else
    vim.fn.setqflist({}, ' ', what)
    vim.cmd('botright copen')
  end
end

--- Hot spots, hottest first: of this document in the location list, or of all in the quickfix list.
---@param all boolean
---@param pick boolean choose one instead of opening a list
function M.hot_spots(all, pick)
  local client = rpc.find_client()
  if not client then
    return
  end
  local uri = rpc.place()
  rpc.execute(client, 'gpaLsp.listHotSpots', all and {} or { uri }, function(spots)
    if next(spots or {}) == nil then
      rpc.say(all and 'no hot spots are known' or 'no hot spots here; `:GpaLsp hotspots all` lists those of all files')
      return
    end
    if pick then
      vim.ui.select(spots, {
        prompt = 'Hot spots',
        kind = 'gpa_lsp',
        format_item = function(spot)
          local name = vim.fn.fnamemodify(vim.uri_to_fname(spot.uri), ':t')
          return ('%s:%d  %s'):format(name, spot.range.start.line + 1, spot.text)
        end,
      }, function(spot)
        if spot then
          require('gpa_lsp.windows').show(client, spot)
        end
      end)
      return
    end
    open(all and 'Hot spots' or 'Hot spots of this file', vim.tbl_map(function(spot)
      return make_entry(spot.uri, spot.range, spot.text)
    end, spots), not all)
  end)
end

--- The instructions of the SASS, hottest first, in the location list of its window.
---@param column string? by which they are sorted; nil: their share of the samples
---@param pick boolean choose one instead of opening a list
function M.instructions(column, pick)
  local client = rpc.find_client()
  local buffer, window = require('gpa_lsp.columns').find_sass()
  if not (client and buffer and window) then
    rpc.say('no SASS is visible; `:GpaLsp sass` shows that of a line')
    return
  end
  rpc.execute(client, 'gpaLsp.listInstructions', { vim.uri_from_bufnr(buffer), column }, function(found)
    if next(found or {}) == nil then
      rpc.say(('nothing is known of %s here'):format(column or 'samples'))
      return
    end
    local function describe(one)
      return ('%s  %s  %s'):format(one.value, one.name, one.detail)
    end
    if pick then
      vim.ui.select(found, { prompt = 'Instructions', kind = 'gpa_lsp', format_item = describe }, function(one)
        if one then
          require('gpa_lsp.windows').show(client, one)
        end
      end)
      return
    end
    vim.api.nvim_set_current_win(window)
    open(('Instructions by %s'):format(column or 'share'), vim.tbl_map(function(one)
      return make_entry(one.uri, one.range, describe(one))
    end, found), true)
  end)
end

--- The kernels, longest first.
---@param take fun(kernels: table[], client: vim.lsp.Client)
function M.with_kernels(take)
  local client = rpc.find_client()
  if client then
    rpc.execute(client, 'gpaLsp.listKernels', {}, function(kernels)
      if next(kernels or {}) == nil then
        rpc.say('no profile is loaded')
      else
        take(kernels, client)
      end
    end)
  end
end

---@param kernel { name: string, text: string }
---@return string
function M.describe_kernel(kernel)
  return ('%s  %s'):format(kernel.name, kernel.text)
end

--- Choose a kernel and go to it.
function M.kernels()
  M.with_kernels(function(kernels, client)
    vim.ui.select(kernels, {
      prompt = 'Kernels',
      kind = 'gpa_lsp',
      format_item = M.describe_kernel,
    }, function(kernel)
      if kernel then
        require('gpa_lsp.windows').show(client, kernel.location or { uri = kernel.sassUri })
      end
    end)
  end)
end

--- Add a chain's items to entries, each followed by what it leads to.
---@param client vim.lsp.Client
---@param direction 'incoming'|'outgoing'
---@param items { item: lsp.CallHierarchyItem, text: string }[]
---@param finish fun(entries: table[])
local function walk(client, direction, items, finish)
  local entries, seen = {}, {}
  local method = direction == 'incoming' and 'callHierarchy/incomingCalls' or 'callHierarchy/outgoingCalls'
  local side = direction == 'incoming' and 'from' or 'to'
  local stack = {}
  for index = #items, 1, -1 do
    local item = items[index].item
    table.insert(stack, { item = item, text = ('%s  %s'):format(items[index].text, item.name), depth = 0 })
  end
  local function step()
    local top = table.remove(stack)
    if top == nil or #entries >= longest_chain then
      finish(entries)
      return
    end
    local item = top.item
    table.insert(entries, make_entry(item.uri, item.selectionRange, ('  '):rep(top.depth) .. top.text))
    local key = ('%s:%d'):format(item.uri, item.selectionRange.start.line)
    if seen[key] or top.depth + 1 >= deepest_chain then
      step()
      return
    end
    seen[key] = true
    rpc.request(client, method, { item = item }, function(calls)
      for index = #(calls or {}), 1, -1 do
        local next_item = calls[index][side]
        local text = next_item.detail and ('%s  %s'):format(next_item.detail, next_item.name) or next_item.name
        table.insert(stack, { item = next_item, text = text, depth = top.depth + 1 })
      end
      step()
    end)
  end
  step()
end

--- What the line under the cursor is stalled on, what stalls that, and so on; or the lines that are stalled on it.
---@param direction 'incoming'|'outgoing'
function M.chain(direction)
  local client = rpc.find_client()
  if not client then
    return
  end
  local uri, line = rpc.place()
  rpc.execute(client, 'gpaLsp.findChain', { uri, line, direction }, function(items)
    if next(items or {}) == nil then
      rpc.say(direction == 'incoming' and 'this line is not known to be stalled on another one'
        or 'no line is known to be stalled on this one')
      return
    end
    walk(client, direction, items, function(entries)
      open(direction == 'incoming' and 'Stalled on' or 'Stalled on this', entries, false)
    end)
  end)
end

return M
