"""Findings in the code of sources without a profile, and the process that compiles them."""
