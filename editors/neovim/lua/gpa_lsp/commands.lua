--- `:GpaLsp WORD …`

local rpc = require('gpa_lsp.rpc')

local M = {}

---@class gpa_lsp.Subcommand
---@field run fun(arguments: string[], count: integer)
---@field complete (fun(): string[])? what can follow

---@param words string[]
local function offer(words)
  return function()
    return words
  end
end

--- Run a command of the server, and say what came of it.
---@param command string
---@param arguments any[]
---@param describe (fun(result: any): string?)?
local function execute(command, arguments, describe)
  local client = rpc.find_client()
  if client then
    rpc.execute(client, command, arguments, function(result)
      local text = describe and describe(result)
      if text then
        rpc.say(text)
      end
    end)
  end
end

--- 'on', 'off' or nothing, and what it is now.
local function read_switch(arguments)
  if arguments[1] == nil or arguments[1] == 'toggle' then
    return nil
  end
  return arguments[1] == 'on'
end

---@return gpa_lsp.JumpWishes
local function read_wishes(arguments, count)
  return { sass = vim.list_contains(arguments, 'sass'), pick = vim.list_contains(arguments, 'pick'), number = count }
end

---@type string[] names for completion, as of the last time somebody asked
local known_names = {}

--- Names can only be completed from what came before: a completion cannot wait.
local function complete_kernels()
  local client = rpc.find_clients()[1]
  if client then
    local kernels = rpc.request_sync(client, 'workspace/executeCommand', { command = 'gpaLsp.listKernels', arguments = {} })
    known_names = vim.tbl_map(function(kernel)
      return kernel.name
    end, kernels or {})
  end
  return known_names
end

--- Call with the mangled name of the kernel that is meant: by name, or the one the cursor is in, or the only one, or the one chosen.
---@param words string[] a name, which may hold spaces, or nothing
---@param take fun(kernel: table)
local function with_kernel(words, take)
  local wanted = table.concat(words, ' ')
  local uri, line = rpc.place()
  require('gpa_lsp.lists').with_kernels(function(kernels)
    local here
    for _, kernel in ipairs(kernels) do
      if wanted ~= '' and (kernel.name == wanted or kernel.mangled == wanted) then
        take(kernel)
        return
      end
      local place = kernel.location
      local is_before = place and place.uri == uri and place.range.start.line <= line
      if is_before and (not here or place.range.start.line > here.location.range.start.line) then
        here = kernel
      end
      here = kernel.sassUri == uri and kernel or here
    end
    if wanted ~= '' then
      rpc.say(('no measured kernel is named %s'):format(wanted))
    elseif here or #kernels == 1 then
      take(here or kernels[1])
    else
      vim.ui.select(kernels, {
        prompt = 'Kernel',
        kind = 'gpa_lsp',
        format_item = require('gpa_lsp.lists').describe_kernel,
      }, function(kernel)
        if kernel then
          take(kernel)
        end
      end)
    end
  end)
end

---@param command string
---@param words string[]
---@param done string
local function pin(command, words, done)
  if #words > 0 then
    with_kernel(words, function(kernel)
      execute(command, { kernel.mangled }, offer(('%s: %s'):format(kernel.name, done)))
    end)
  else
    execute(command, {}, function(count)
      return ('%d %s: %s'):format(count or 0, count == 1 and 'kernel' or 'kernels', done)
    end)
  end
end

---@type table<string, gpa_lsp.Subcommand>
local subcommands = {
  cause = {
    run = function(arguments, count)
      require('gpa_lsp.navigate').cause(read_wishes(arguments, count))
    end,
    complete = offer({ 'sass', 'pick' }),
  },
  victim = {
    run = function(arguments, count)
      require('gpa_lsp.navigate').victim(read_wishes(arguments, count))
    end,
    complete = offer({ 'sass', 'pick' }),
  },
  sass = {
    run = function(_, count)
      require('gpa_lsp.navigate').other_side(count)
    end,
  },
  next = {
    run = function(_, count)
      require('gpa_lsp.navigate').hot_line(true, count)
    end,
  },
  previous = {
    run = function(_, count)
      require('gpa_lsp.navigate').hot_line(false, count)
    end,
  },
  hotspots = {
    run = function(arguments)
      local all, pick = vim.list_contains(arguments, 'all'), vim.list_contains(arguments, 'pick')
      local lists = require('gpa_lsp.lists')
      if rpc.is_sass((rpc.place())) and not all then
        local names = vim.tbl_filter(function(word)
          return word ~= 'pick'
        end, arguments)
        lists.instructions(names[1], pick)
      else
        lists.hot_spots(all, pick)
      end
    end,
    complete = function()
      local words = { 'all', 'pick' }
      return rpc.is_sass((rpc.place())) and vim.list_extend(words, require('gpa_lsp.columns').list_names(true)) or words
    end,
  },
  columns = {
    run = function(arguments)
      require('gpa_lsp.columns').choose(arguments)
    end,
    complete = function()
      return vim.list_extend({ 'usual' }, require('gpa_lsp.columns').list_names(false))
    end,
  },
  chain = {
    run = function(arguments)
      require('gpa_lsp.lists').chain(arguments[1] == 'outgoing' and 'outgoing' or 'incoming')
    end,
    complete = offer({ 'incoming', 'outgoing' }),
  },
  fix = {
    run = function()
      require('gpa_lsp.fixes').show()
    end,
  },
  kernels = {
    run = function(arguments)
      if #arguments == 0 then
        require('gpa_lsp.lists').kernels()
      else
        with_kernel(arguments, function(kernel)
          execute('gpaLsp.showKernel', { kernel.mangled })
        end)
      end
    end,
    complete = complete_kernels,
  },
  page = {
    run = function(arguments)
      local reports = require('gpa_lsp.reports')
      if arguments[1] == 'line' then
        execute('gpaLsp.showLine', { rpc.place() })
        return
      end
      if #arguments == 0 and reports.is_report(0) then
        reports.show_page(vim.api.nvim_get_current_buf())
      elseif #arguments == 0 then
        execute('gpaLsp.showPage', { rpc.place() }) -- at the kernel the cursor is in
      else
        with_kernel(arguments, function(kernel)
          execute('gpaLsp.showPage', { kernel.mangled })
        end)
      end
    end,
    complete = complete_kernels,
  },
  prediction = {
    run = function(arguments)
      local word = table.remove(arguments, 1)
      if word == 'compare' then
        with_kernel(arguments, function(kernel)
          execute('gpaLsp.compareSimulated', { kernel.mangled })
        end)
      elseif word == 'simulate' then
        execute('gpaLsp.simulate', vim.bo.buftype == '' and { (rpc.place()) } or {}, function() end)
      elseif word == 'page' then
        execute('gpaLsp.showPrediction', { (rpc.place()), vim.NIL, 'page' })
      else
        execute('gpaLsp.showPrediction', { (rpc.place()) })
      end
    end,
    complete = offer({ 'compare', 'page', 'simulate' }),
  },
  history = {
    run = function(arguments)
      if #arguments == 0 then
        execute('gpaLsp.showHistory', {})
      else
        with_kernel(arguments, function(kernel)
          execute('gpaLsp.showHistory', { kernel.mangled })
        end)
      end
    end,
    complete = complete_kernels,
  },
  measure = {
    run = function(arguments)
      if arguments[1] == 'log' then
        require('gpa_lsp.output').show()
        return
      end
      execute('gpaLsp.measure', vim.bo.buftype == '' and { (rpc.place()) } or {}, function(started)
        return not started and 'nothing was started' or nil
      end)
    end,
    complete = offer({ 'log' }),
  },
  record = {
    run = function(arguments)
      require('gpa_lsp.recording').record(table.concat(arguments, ' '))
    end,
  },
  cancel = {
    run = function()
      execute('gpaLsp.cancelMeasuring', {}, function(was_running)
        return was_running and 'the run is cancelled' or 'nothing is being measured or recorded'
      end)
    end,
  },
  allow = {
    run = function(arguments)
      execute('gpaLsp.answerMeasuring', arguments, function(outcome)
        return outcome == 'nothing' and 'there is nothing to answer' or nil
      end)
    end,
    complete = offer({ 'once', 'always', 'never' }),
  },
  show = {
    run = function(arguments)
      if arguments[1] == 'measurement' then
        with_kernel(vim.list_slice(arguments, 2), function(kernel)
          execute('gpaLsp.chooseMeasurement', { kernel.mangled }, function(profile)
            return profile and 'the measurement shown now: ' .. vim.fs.basename(profile)
          end)
        end)
      elseif arguments[1] == 'sources' then
        execute('gpaLsp.chooseSources', vim.list_slice(arguments, 2), function(chosen)
          return chosen and 'sources that may have changed: ' .. chosen
        end)
      else
        require('gpa_lsp.metrics').choose(arguments[1])
      end
    end,
    complete = function()
      return vim.list_extend({ 'measurement', 'sources' }, require('gpa_lsp.metrics').list_names())
    end,
  },
  pin = {
    run = function(arguments)
      if arguments[1] == 'off' then
        pin('gpaLsp.unpinBaseline', vim.list_slice(arguments, 2), 'measurements are compared with the one before')
      else
        pin('gpaLsp.pinBaseline', arguments, 'later measurements are compared with this one')
      end
    end,
    complete = function()
      return vim.list_extend({ 'off' }, complete_kernels())
    end,
  },
  hints = {
    run = function(arguments)
      execute('gpaLsp.showAllHints', { read_switch(arguments) }, function(are_all)
        return are_all and 'every line above the threshold has its hint' or 'as many hints as a screen bears'
      end)
    end,
    complete = offer({ 'on', 'off', 'toggle' }),
  },
  heat = {
    run = function(arguments)
      local shown = require('gpa_lsp.heat').show(read_switch(arguments))
      rpc.say(shown and 'heat is shown' or 'heat is hidden')
    end,
    complete = offer({ 'on', 'off', 'toggle' }),
  },
  sync = {
    run = function(arguments)
      local on = require('gpa_lsp.sync').show(read_switch(arguments))
      rpc.say(on and 'source and SASS follow each other, tied by colours' or 'source and SASS do not follow each other')
    end,
    complete = offer({ 'on', 'off', 'toggle' }),
  },
}

---@type table<string, string> former words, and what says the same now
local moved = {
  instructions = 'hotspots, in the SASS',
  kernel = 'kernels NAME',
  report = 'kernels',
  simulate = 'prediction simulate',
  compare = 'prediction compare',
  unpin = 'pin off',
  sources = 'show sources',
  colours = 'sync',
  log = 'measure log',
}

---@param words string a subcommand and its arguments
---@param count integer 0: none was given
function M.run_words(words, count)
  local arguments = vim.split(words, '%s+', { trimempty = true })
  local name = table.remove(arguments, 1) or 'hotspots'
  local subcommand = subcommands[name]
  if subcommand then
    subcommand.run(arguments, count)
  elseif moved[name] then
    rpc.say(('`:GpaLsp %s` is now `:GpaLsp %s`'):format(name, moved[name]), vim.log.levels.ERROR)
  else
    rpc.say(('there is no `:GpaLsp %s`'):format(name), vim.log.levels.ERROR)
  end
end

--- The user command.
---@param call vim.api.keyset.create_user_command.command_args
function M.run(call)
  M.run_words(call.args, call.count > 0 and call.count or 0)
end

--- Completion of the user command.
---@param lead string
---@param line string
---@return string[]
function M.complete(lead, line)
  local words = vim.split((line:gsub("^[%s%d,.$%%']*%a+%s+", '', 1)), '%s+')
  local offered
  if #words <= 1 then
    offered = vim.tbl_keys(subcommands)
    table.sort(offered)
  else
    local subcommand = subcommands[words[1]]
    offered = subcommand and subcommand.complete and subcommand.complete() or {}
  end
  return vim.tbl_filter(function(word)
    return vim.startswith(word, lead)
  end, offered)
end

return M
