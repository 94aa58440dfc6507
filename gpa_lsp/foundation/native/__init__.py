"""COMPILE and call what of us is written in C: optional, and equal to the numpy code it stands in for."""
