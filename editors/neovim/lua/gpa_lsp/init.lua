--- gpa_lsp: GPU stalls in the editor. This module is what users call; see `:help gpa_lsp`.

local M = {}

--- On Neovim 0.10, which has no vim.lsp.enable: a client for every buffer of our languages.
local function start_by_file_type()
  local config = require('gpa_lsp.client_config').build()
  local function start(buffer)
    if vim.bo[buffer].buftype == '' and vim.api.nvim_buf_get_name(buffer) ~= '' then
      config.root_dir = vim.fs.root(buffer, config.root_markers)
      vim.lsp.start(config, { bufnr = buffer })
    end
  end
  vim.api.nvim_create_autocmd('FileType', {
    group = vim.api.nvim_create_augroup('gpa_lsp.start', {}),
    pattern = config.filetypes,
    callback = function(event)
      start(event.buf)
    end,
  })
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buffer) and vim.list_contains(config.filetypes, vim.bo[buffer].filetype) then
      start(buffer)
    end
  end
end

--- Choose options and start the server with the files of our languages. On 0.11 and later vim.lsp.enable('gpa_lsp') does the same with the
--- defaults, those in vim.g.gpa_lsp, and what vim.lsp.config('gpa_lsp', …) says.
---@param options table? see gpa_lsp.Options
function M.setup(options)
  require('gpa_lsp.options').choose(options)
  if vim.fn.has('nvim-0.11') == 0 then
    start_by_file_type()
    return
  end
  vim.lsp.config('gpa_lsp', {}) -- what was made of the options before is forgotten
  vim.lsp.enable('gpa_lsp')
end

--- A few words for the status line: what the server is doing, or what it knows; '' where there is no server.
---@return string
function M.status()
  return require('gpa_lsp.status').text()
end

--- What hints, colours and lenses show where somebody chose, for a status line of your own; '' where nobody did.
---@return string
function M.shown()
  return require('gpa_lsp.status').shown()
end

--- The question a save waits for, for a status line of your own; '' when nothing is asked. `:GpaLsp allow` answers it.
---@return string
function M.question()
  return require('gpa_lsp.status').question()
end

return M
