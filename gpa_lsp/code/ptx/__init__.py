"""PARSE: PTX text → :class:`~gpa_lsp.code.ptx.model.PtxModule`."""
