"""Where a kernel's threads read and write, by its PTX alone: each address as a sum over thread index, block index and parameters.

Nothing is executed and no launch is needed: what nobody knows stays a symbol.
"""
