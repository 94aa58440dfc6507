"""JOIN: launches of one kernel + its cubin + its architecture → :class:`~gpa_lsp.rows.model.Kernel`; refuses what does not fit."""
