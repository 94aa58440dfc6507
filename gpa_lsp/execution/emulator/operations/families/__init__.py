"""The catalogue of instruction families: every module defines ``FAMILY``, a :class:`~gpa_lsp.execution.emulator.operations.model.Family`."""
