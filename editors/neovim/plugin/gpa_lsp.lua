-- What there is before anything of ours is needed: one command, keys without defaults, and who opens SASS documents.
if vim.g.loaded_gpa_lsp or vim.fn.has('nvim-0.10') == 0 then
  return
end
vim.g.loaded_gpa_lsp = true

vim.api.nvim_create_user_command('GpaLsp', function(call)
  require('gpa_lsp.commands').run(call)
end, {
  nargs = '*',
  count = true,
  desc = 'GPU stalls: causes, victims, SASS, hot lines, measuring',
  complete = function(...)
    return require('gpa_lsp.commands').complete(...)
  end,
})

local keys = {
  ['cause'] = 'cause',
  ['cause-sass'] = 'cause sass',
  ['victim'] = 'victim',
  ['victim-sass'] = 'victim sass',
  ['sass'] = 'sass',
  ['next'] = 'next',
  ['previous'] = 'previous',
  ['hotspots'] = 'hotspots',
  ['columns'] = 'columns',
  ['show'] = 'show',
  ['chain'] = 'chain',
  ['measure'] = 'measure',
  ['cancel'] = 'cancel',
  ['heat'] = 'heat',
}
for key, words in pairs(keys) do
  vim.keymap.set('n', ('<Plug>(gpa-%s)'):format(key), function()
    require('gpa_lsp.commands').run_words(words, vim.v.count)
  end, { desc = 'GpaLsp ' .. words })
end

local group = vim.api.nvim_create_augroup('gpa_lsp', {})

vim.api.nvim_create_autocmd('BufReadCmd', {
  group = group,
  pattern = 'gpa-sass://*',
  nested = true, -- so that the file type takes effect
  callback = function(event)
    require('gpa_lsp.sass').read(event.buf)
  end,
})

vim.api.nvim_create_autocmd('BufReadCmd', {
  group = group,
  pattern = { '*.ncu-rep', '*.ncu-repz' },
  callback = function(event)
    require('gpa_lsp.reports').read(event.buf)
  end,
})

vim.api.nvim_create_autocmd({ 'BufReadPost', 'BufNewFile' }, {
  group = group,
  pattern = '*.launch.toml',
  callback = function(event)
    for _, client in ipairs(vim.lsp.get_clients({ name = 'gpa_lsp' })) do
      require('gpa_lsp.attach').attach_description(client, event.buf)
    end
  end,
})

vim.api.nvim_create_autocmd('LspAttach', {
  group = group,
  callback = function(event)
    local client = vim.lsp.get_client_by_id(event.data.client_id)
    if client and client.name == 'gpa_lsp' then
      require('gpa_lsp.attach').attach(client, event.buf)
    end
  end,
})

vim.api.nvim_create_autocmd('LspDetach', {
  group = group,
  callback = function(event)
    local client = vim.lsp.get_client_by_id(event.data.client_id)
    if client and client.name == 'gpa_lsp' then
      require('gpa_lsp.attach').detach(client, event.buf)
    end
  end,
})
