--- What hints, colours and lenses show: one metric, of the user's choice. The server keeps the choice for the workspace.

local rpc = require('gpa_lsp.rpc')

local M = {}

---@class gpa_lsp.Metric
---@field name string
---@field title string
---@field detail string
---@field lack string which kernels lack it
---@field isShown boolean
---@field isKnown boolean

---@return any[]
local function name_document()
  return vim.bo.buftype ~= 'nofile' and { (rpc.place()) } or {}
end

--- Names for completion.
---@return string[]
function M.list_names()
  local client = rpc.find_clients()[1]
  local question = { command = 'gpaLsp.listMetrics', arguments = name_document() }
  local metrics = client and rpc.request_sync(client, 'workspace/executeCommand', question) or {}
  return vim.tbl_map(function(metric)
    return metric.name
  end, metrics)
end

---@param client vim.lsp.Client
---@param name string
local function choose(client, name)
  rpc.execute(client, 'gpaLsp.chooseMetric', vim.list_extend({ name }, name_document()), function(shown)
    if not shown then
      rpc.say(('nothing is called %s'):format(name), vim.log.levels.WARN)
    else
      rpc.say(('lines show %s%s'):format(shown.title, shown.lack ~= '' and ': ' .. shown.lack or ''))
    end
  end)
end

---@param metric gpa_lsp.Metric
local function describe(metric)
  local remark = metric.lack ~= '' and (' (%s)'):format(metric.lack) or ''
  return ('%s %s: %s%s'):format(metric.isShown and '*' or ' ', metric.title, metric.detail, remark)
end

---@param client vim.lsp.Client
local function ask(client)
  rpc.execute(client, 'gpaLsp.listMetrics', name_document(), function(metrics)
    vim.ui.select(metrics or {}, {
      prompt = 'Hints, colours and lenses show',
      kind = 'gpa_lsp',
      format_item = describe,
    }, function(metric)
      if metric then
        choose(client, metric.name)
      end
    end)
  end)
end

--- Show the metric with a name; without one, ask.
---@param name string?
function M.choose(name)
  local client = rpc.find_client()
  if not client then
    return
  end
  if name then
    choose(client, name)
  else
    ask(client)
  end
end

return M
