"""READ: Nsight Compute report or our own JSON → :class:`~gpa_lsp.profile.model.Profile`."""
