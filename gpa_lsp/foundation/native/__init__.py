"""COMPILE machine code of ours: C, which is optional and equal to the numpy code it stands in for, and loops of Python."""
