"""Notebooks: cells, their marks, and both magics in a real kernel."""
