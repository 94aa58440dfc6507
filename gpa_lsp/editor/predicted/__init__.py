"""Emulation of sources: results on their lines, and the process that emulates."""
