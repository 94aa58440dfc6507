"""PARSE: PTX text → :class:`~gpa_lsp.ptx.model.PtxModule`."""
