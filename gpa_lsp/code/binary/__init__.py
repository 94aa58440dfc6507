"""DECODE: cubin, fatbin, host executable → :class:`~gpa_lsp.code.binary.model.Cubin`, its instructions and its line tables."""
