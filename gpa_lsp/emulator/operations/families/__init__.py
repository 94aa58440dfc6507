"""The catalogue of instruction families: every module defines ``FAMILY``, a :class:`~gpa_lsp.emulator.operations.model.Family`."""
