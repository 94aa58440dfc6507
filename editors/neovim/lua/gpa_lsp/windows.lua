--- Where documents are shown: SASS beside the source, pages below it, each in a window of its own that is used again.

local rpc = require('gpa_lsp.rpc')
local options = require('gpa_lsp.options')

local M = {}

---@param buffer integer
---@return 'sass'|'page'|'source'|'other'
local function find_kind(buffer)
  if vim.b[buffer].gpa_lsp_page then
    return 'page'
  end
  if rpc.is_sass(vim.api.nvim_buf_get_name(buffer)) then
    return 'sass'
  end
  return vim.bo[buffer].buftype == '' and 'source' or 'other'
end

---@param kind string
---@return integer? window of this tab page
local function find_window(kind)
  local windows = vim.api.nvim_tabpage_list_wins(0)
  table.insert(windows, 1, vim.fn.win_getid(vim.fn.winnr('#')))
  table.insert(windows, 1, vim.api.nvim_get_current_win())
  for _, window in ipairs(windows) do
    if window ~= 0 and vim.api.nvim_win_get_config(window).relative == '' then
      if find_kind(vim.api.nvim_win_get_buf(window)) == kind then
        return window
      end
    end
  end
end

--- Make the window current in which a buffer of some kind is to be shown.
---@param buffer integer
---@param kind string
local function enter_window(buffer, kind)
  local here = vim.tbl_filter(function(window)
    return vim.api.nvim_win_get_tabpage(window) == vim.api.nvim_get_current_tabpage()
  end, vim.fn.win_findbuf(buffer))
  local window = vim.list_contains(here, vim.api.nvim_get_current_win()) and vim.api.nvim_get_current_win()
    or here[1]
    or find_window(kind)
  if window then
    vim.api.nvim_set_current_win(window)
    return
  end
  local split = kind == 'source' and 'split' or options.get().window[kind]
  if split ~= '' then
    vim.cmd(split)
  end
end

--- Show a place. The way back is in the jump list and in the tag stack.
---@param client vim.lsp.Client
---@param location { uri: string, range: lsp.Range? }
function M.show(client, location)
  local buffer = vim.uri_to_bufnr(location.uri)
  local is_sass = rpc.is_sass(location.uri)
  local is_new = is_sass and not vim.api.nvim_buf_is_loaded(buffer)
  if is_new then
    vim.fn.bufload(buffer) -- before its window opens: SASS waits for the server, and whoever goes elsewhere meanwhile stays there
  end
  enter_window(buffer, is_sass and 'sass' or 'source')
  local is_shown = vim.lsp.util.show_document(location, client.offset_encoding, { focus = true })
  if is_new and is_shown then
    vim.bo[buffer].filetype = vim.bo[buffer].filetype -- options of the window were set when it had none: ours, and those of the user's after/ftplugin
  end
  return is_shown
end

--- Markdown as it is meant to be read: without its marks, and nothing beyond the edge of the window.
---@param buffer integer shown in the current window
local function dress_markdown(buffer)
  vim.wo[0][0].wrap = true
  vim.wo[0][0].linebreak = true
  vim.wo[0][0].breakindent = true
  vim.wo[0][0].conceallevel = 2
  vim.wo[0][0].concealcursor = 'nc'
  local has_parsers = pcall(vim.treesitter.language.add, 'markdown') and pcall(vim.treesitter.language.add, 'markdown_inline')
  if has_parsers and pcall(vim.treesitter.start, buffer, 'markdown') then
    -- what is seen first is parsed before it is drawn: Neovim 0.12 parses later, and draws the marks until then
    pcall(function()
      vim.treesitter.get_parser(buffer, 'markdown'):parse({ 0, vim.o.lines })
    end)
    return
  end
  vim.bo[buffer].syntax = 'markdown'
end

--- Show a page, such as what is known of a kernel or the log.
---@param buffer integer
function M.show_buffer(buffer)
  vim.b[buffer].gpa_lsp_page = true
  enter_window(buffer, 'page')
  vim.api.nvim_win_set_buf(0, buffer)
  vim.wo[0][0].number = false
  vim.wo[0][0].relativenumber = false
  vim.wo[0][0].signcolumn = 'no'
end

---@param uri string
local function is_page(uri)
  return vim.startswith(uri, 'file:') and vim.endswith(uri, '.md')
end

--- The server asks to show something.
---@type lsp.Handler
function M.answer_show_document(error, params, context)
  local client = vim.lsp.get_client_by_id(context.client_id)
  params = rpc.without_nulls(params)
  if client and not params.external and params.takeFocus ~= false then
    if rpc.is_sass(params.uri) then
      return { success = M.show(client, { uri = params.uri, range = params.selection }) }
    end
    if is_page(params.uri) then
      local buffer = vim.uri_to_bufnr(params.uri)
      vim.fn.bufload(buffer)
      vim.bo[buffer].autoread = true
      M.show_buffer(buffer)
      vim.cmd('silent! checktime')
      dress_markdown(buffer)
      vim.bo[buffer].modifiable = false
      return { success = true }
    end
  end
  return vim.lsp.handlers['window/showDocument'](error, params, context)
end

return M
