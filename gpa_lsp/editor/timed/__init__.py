"""Described launches that a GPU of this computer was timed with: what the process that stays is asked, and what is said of its answers."""
