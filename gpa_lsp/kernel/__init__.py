"""JOIN: launches of one kernel + its cubin + its architecture → :class:`~gpa_lsp.kernel.model.Kernel`; refuses what does not fit."""
