--- What users can choose, and the defaults.

---@class gpa_lsp.HeatOptions
---@field enable boolean draw heat at all; `:GpaLsp heat` turns it on and off
---@field line boolean colour the background of the whole line
---@field number boolean colour the line number
---@field sign string a sign before hot lines, one or two cells wide; '' for none
---@field unverified string the sign before hot lines of a source that may not be what was measured; '' for none of its own
---@field simulated string the sign before hot lines whose numbers a model says; '' for none of its own
---@field stale string what stands behind a line that was changed since it was measured; '' for nothing
---@field suffers? string colour of lines that wait: '#rrggbb' or a highlight group, whose foreground is taken
---@field causes? string colour of lines others wait for
---@field strength number how much of the colour the hottest line gets, 0 to 1

---@class gpa_lsp.WindowOptions
---@field sass string the command that makes a window for SASS when there is none; '' for the current window
---@field page string the same for pages about kernels and for the log
---@field sync boolean source and SASS that are both visible follow each other's cursor, and signs of one colour tie lines to instructions

---@class gpa_lsp.Options
---@field cmd string[] the server
---@field filetypes string[] languages GPU code is written in; the server is silent in files that no profile mentions
---@field root_markers string[] what lies in the folder in which profiles are looked for
---@field settings table the server's options, without `gpaLsp` before them; see editors/README.md
---@field trusted boolean|fun(root: string?): boolean whether commands of the workspace may be run at all, each after a question
---@field heat gpa_lsp.HeatOptions
---@field window gpa_lsp.WindowOptions
---@field code_lenses boolean show and refresh our code lenses; those of other servers are left alone
---@field try_fixes boolean have the fixes of the line the cursor rests on compiled, so that every list of them says what came of it
---@field merge_hovers boolean Neovim 0.10 only: one window for the hovers of all servers, as later versions have it

local M = {}

---@type gpa_lsp.Options
local defaults = {
  cmd = { 'gpa-lsp', 'serve' },
  filetypes = { 'cuda', 'cpp', 'c', 'python', 'julia', 'fortran', 'rust' },
  root_markers = { '.git', 'compile_commands.json', 'pyproject.toml', 'Project.toml', 'Makefile' },
  settings = {},
  trusted = true,
  heat = { enable = true, line = true, number = true, sign = '', unverified = '?', simulated = '~', stale = 'edited', strength = 0.42 },
  window = { sass = 'botright vsplit', page = 'botright split', sync = true },
  code_lenses = true,
  try_fixes = true,
  merge_hovers = true,
}

---@type table
local chosen = {}

--- Choose; what is not mentioned stays as it was.
---@param options table?
function M.choose(options)
  chosen = vim.tbl_deep_extend('force', chosen, options or {})
end

--- The options in force: defaults, then `vim.g.gpa_lsp`, then what setup() was given.
---@return gpa_lsp.Options
function M.get()
  return vim.tbl_deep_extend('force', defaults, vim.g.gpa_lsp or {}, chosen)
end

return M
