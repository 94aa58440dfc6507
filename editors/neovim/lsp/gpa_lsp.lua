-- gpa_lsp for Neovim 0.11 and later. Put this folder's parent on 'runtimepath', then: vim.lsp.enable('gpa_lsp')

return {
  cmd = { 'gpa-lsp', 'serve' },
  -- The languages GPU code is written in. The server stays silent in every file that no profile mentions.
  filetypes = { 'cuda', 'cpp', 'c', 'python', 'julia', 'fortran', 'rust' },
  root_markers = { '.git', 'compile_commands.json', 'pyproject.toml', 'Project.toml', 'Makefile' },
  -- The same encoding as clangd in the same buffer, or Neovim 0.11 warns about two of them.
  capabilities = { general = { positionEncodings = { 'utf-8', 'utf-16' } } },
  settings = {
    -- See editors/README.md for all options.
    gpaLsp = vim.empty_dict(),
  },
}
