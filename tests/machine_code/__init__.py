"""Typed Python and its machine code."""
