"""Warp-level accesses: the memory they touch, the order of warps, and the contents of caches, for all analyses and models."""
