"""SIMULATE: machine code of a launch as its warps execute it, with no GPU."""
