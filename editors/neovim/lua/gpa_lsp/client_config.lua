--- The language client's configuration.

local M = {}

--- Lambdas, so that a module is loaded when its first message comes.
---@type table<string, fun(params: any, client: vim.lsp.Client)>
local notifications = {
  ['gpaLsp/heat'] = function(params)
    require('gpa_lsp.heat').take(params)
  end,
  ['gpaLsp/status'] = function(params, client)
    require('gpa_lsp.status').take(params, client.id)
    require('gpa_lsp.sass').retry()
  end,
  ['gpaLsp/output'] = function(params)
    require('gpa_lsp.output').take(params)
  end,
  ['window/showMessage'] = function(params)
    require('gpa_lsp.messages').show(params)
  end,
  ['gpaLsp/documentChanged'] = function(params)
    require('gpa_lsp.sass').refresh(params.uri)
  end,
}

---@return table<string, lsp.Handler>
local function build_handlers()
  local handlers = {}
  for method, take in pairs(notifications) do
    handlers[method] = function(_, params, context)
      local client = vim.lsp.get_client_by_id(context.client_id)
      if client and params then
        take(require('gpa_lsp.rpc').without_nulls(params), client)
      end
      return params
    end
  end
  handlers['workspace/textDocumentContent/refresh'] = function(_, params)
    require('gpa_lsp.sass').refresh(params.uri)
    return vim.NIL
  end
  handlers['window/showDocument'] = function(error, params, context)
    return require('gpa_lsp.windows').answer_show_document(error, params, context)
  end
  handlers['gpaLsp/askForText'] = function(_, params)
    local running = coroutine.running()
    vim.ui.input({ prompt = params.text .. ': ', default = params.value }, function(typed)
      vim.schedule(function()
        coroutine.resume(running, typed or vim.NIL)
      end)
    end)
    return coroutine.yield()
  end
  handlers['textDocument/inlayHint'] = function(error, hints, context)
    require('gpa_lsp.hints').answer(error, hints, context)
  end
  if vim.fn.has('nvim-0.11') == 0 then
    handlers['textDocument/hover'] = function(...)
      require('gpa_lsp.hover').answer(...)
    end
  end
  if vim.fn.has('nvim-0.12') == 0 then
    handlers['workspace/codeLens/refresh'] = function(_, _, context)
      require('gpa_lsp.lenses').refresh_client(context.client_id)
      return vim.NIL
    end
  end
  return handlers
end

--- Beyond what Neovim says by itself. The same encoding as clangd's in the same buffer, or Neovim warns about two of them; and features
--- that are only for SASS documents can be registered for those alone, so that source buffers keep the answers of their own server.
local function build_capabilities()
  local late = { dynamicRegistration = true }
  local capabilities = {
    general = { positionEncodings = { 'utf-8', 'utf-16' } },
    textDocument = {
      definition = late,
      references = late,
      documentHighlight = late,
      documentSymbol = late,
      foldingRange = late,
      callHierarchy = late,
      -- Not semantic tokens: Neovim up to 0.12 only knows the legend a server names at the start.
    },
  }
  if vim.fn.has('nvim-0.12') == 0 then
    capabilities.workspace = { codeLens = { refreshSupport = true } } -- see `build_handlers`
  end
  if vim.fn.has('nvim-0.11') == 1 then
    return capabilities
  end
  -- Neovim 0.10 takes what it is given as all there is.
  return vim.tbl_deep_extend('force', vim.lsp.protocol.make_client_capabilities(), capabilities)
end

--- The configuration, for vim.lsp.config and for vim.lsp.start.
---@return vim.lsp.ClientConfig
function M.build()
  local options = require('gpa_lsp.options').get()
  local wanted = { heat = true, status = true, output = true, typing = true, callHierarchyTree = true, lineEndLenses = vim.fn.has('nvim-0.12') == 0 }
  return {
    name = 'gpa_lsp',
    cmd = options.cmd,
    filetypes = options.filetypes,
    root_markers = options.root_markers,
    capabilities = build_capabilities(),
    handlers = build_handlers(),
    settings = { gpaLsp = next(options.settings) and options.settings or vim.empty_dict() },
    init_options = { client = wanted },
    before_init = function(params, config)
      local trusted = options.trusted
      if type(trusted) == 'function' then
        trusted = trusted(config.root_dir)
      end
      params.initializationOptions = vim.tbl_deep_extend(
        'force',
        params.initializationOptions or {},
        { client = { trusted = trusted == true } }
      )
    end,
  }
end

return M
