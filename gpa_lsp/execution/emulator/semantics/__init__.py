"""Meanings of PTX instructions: the results of the lanes' operands, once, in typed Python, which the core compiles."""
