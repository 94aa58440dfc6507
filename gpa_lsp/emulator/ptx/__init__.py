"""PARSE: PTX text → :class:`~gpa_lsp.emulator.ptx.model.PtxModule`."""
