"""LOOK UP: compute capability → :class:`~gpa_lsp.arch.model.Architecture`, one complete TOML table per architecture."""
