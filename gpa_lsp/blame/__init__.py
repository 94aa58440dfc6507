"""BLAME: a joined kernel → stalls moved from the instructions that suffer to the instructions that cause them."""

DEFAULT_BLAMER = "scoreboard"
"""The member of :mod:`~gpa_lsp.blame.blamers` that finds causes where nobody says which."""
