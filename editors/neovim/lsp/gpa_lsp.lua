-- For Neovim 0.11 and later: vim.lsp.enable('gpa_lsp'). Change it with vim.lsp.config('gpa_lsp', { … }) or require('gpa_lsp').setup().
return require('gpa_lsp.client_config').build()
