-- SASS, NVIDIA's machine code, as the server writes it.
if vim.b.did_ftplugin then
  return
end
vim.b.did_ftplugin = 1

vim.bo.commentstring = '// %s'
vim.opt_local.wrap = false
vim.opt_local.list = false
vim.opt_local.spell = false
vim.b.undo_ftplugin = 'setlocal commentstring< wrap< list< spell<'
