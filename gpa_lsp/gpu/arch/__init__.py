"""LOOK UP: compute capability → :class:`~gpa_lsp.gpu.arch.model.Architecture`, one complete TOML table per architecture."""
