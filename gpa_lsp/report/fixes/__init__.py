"""Trials of the edits that answer advice: compiled, emulated and simulated before a person makes them."""
