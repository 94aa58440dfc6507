"""Traces → what their addresses and branches say: reuse, divergence of memory and branches, bank conflicts, caches, arrays and lines."""
