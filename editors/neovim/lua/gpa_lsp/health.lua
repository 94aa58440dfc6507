--- :checkhealth gpa_lsp

local M = {}

local health = vim.health

M.run_limit_ms = 20000 -- how long Neovim may stand still for a program

--- What a program prints, or nil and why it did not.
---@param command string[]
---@return string?, string?
local function run(command)
  local is_started, process = pcall(vim.system, command, { text = true })
  if not is_started then
    return nil, tostring(process)
  end
  local result = process:wait(M.run_limit_ms)
  -- it was ended; what it started itself may still hold its output, and then there is no result
  if not result or (result.code == 124 and result.signal ~= 0) then
    return nil, ('no answer within %g s'):format(M.run_limit_ms / 1000)
  end
  if result.code ~= 0 then
    return nil, ('exit status %d %s'):format(result.code, result.stderr or '')
  end
  return result.stdout
end

---@param program string
local function check_server(program)
  health.start('gpa_lsp: server')
  if vim.fn.executable(program) == 0 then
    health.error(('%s is not executable from here'):format(program), {
      'install the server (README.md of this plugin: pip install), into an environment that is on $PATH',
      "or name it: require('gpa_lsp').setup({ cmd = { '/…/gpa-lsp', 'serve' } })",
    })
    return
  end
  local version, reason = run({ program, '--version' })
  if not version then
    health.error(('%s --version: %s'):format(program, reason))
    return
  end
  health.ok(('%s: %s'):format(vim.fn.exepath(program), vim.trim(version)))
  local found
  found, reason = run({ program, 'doctor', '--color', 'never' })
  if not found then
    health.warn(('%s doctor: %s'):format(program, reason))
    return
  end
  for _, line in ipairs(vim.split(vim.trim(found), '\n', { trimempty = true })) do
    if line ~= '' then
      health.info(line)
    end
  end
end

local function check_clients()
  health.start('gpa_lsp: clients')
  local clients = require('gpa_lsp.rpc').find_clients()
  if #clients == 0 then
    local filetypes = table.concat(require('gpa_lsp.options').get().filetypes, ', ')
    health.info('No server runs. It starts with the first file of ' .. filetypes)
  end
  for _, client in ipairs(clients) do
    health.ok(('client %d, %s, positions in %s, %d buffers'):format(
      client.id,
      client.root_dir or (client.config and client.config.root_dir) or 'no root folder',
      client.offset_encoding,
      vim.tbl_count(client.attached_buffers)
    ))
  end
  local status = require('gpa_lsp.status').get()
  if status then
    local words = '%s: %s (%d profiles, %d kernels)'
    health.info(words:format(status.state, status.text, status.profiles, status.kernels))
    if (status.detail or '') ~= '' then
      health.info(status.detail)
    end
    if #clients > 0 and status.profiles == 0 then
      health.warn('No profile was found', {
        'Profiles are looked for below the root folder: *.ncu-rep, *.ncu-repz, *.gpa-profile.json',
        'or set gpaLsp.profileGlobs',
      })
    end
  end
end

local function check_editor()
  health.start('gpa_lsp: editor')
  if vim.fn.has('nvim-0.10') == 0 then
    health.error('Neovim 0.10 or later is needed')
    return
  end
  health.ok('Neovim ' .. tostring(vim.version()))
  if vim.lsp.is_enabled and not vim.lsp.is_enabled('gpa_lsp') then
    health.warn('the client is not enabled', { "vim.lsp.enable('gpa_lsp'), or require('gpa_lsp').setup()" })
  end
  if vim.lsp.inlay_hint.is_enabled() then
    health.ok('inlay hints are on: shares stand at line ends')
  else
    health.info('inlay hints are off; vim.lsp.inlay_hint.enable(true) shows shares at line ends')
  end
  if not vim.o.termguicolors then
    health.info("'termguicolors' is off: heat has fewer steps")
  end
end

--- Called by :checkhealth.
function M.check()
  check_editor()
  check_server(require('gpa_lsp.options').get().cmd[1])
  check_clients()
end

return M
