"""The plugin in real Neovims."""
