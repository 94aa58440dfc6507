"""BLAME: a joined kernel → stalls moved from the instructions that suffer to the instructions that cause them."""

# The member of :mod:`~gpa_lsp.diagnosis.blame.blamers` that finds causes by default
DEFAULT_BLAMER = "scoreboard"

PAPER = "paper"  # The member that finds them as published
