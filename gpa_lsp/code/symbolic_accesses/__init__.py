"""Addresses that a kernel's threads access, by its PTX alone: each a sum over thread index, block index and parameters.

Nothing is executed and no launch is needed: unknown values stay symbols.
"""
