"""Answers about a source: its hints, lenses, hovers, diagnostics, symbols, actions, and the chains through its lines."""
