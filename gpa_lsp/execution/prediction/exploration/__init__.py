"""RANK: a kernel and a space of launch configurations → their predicted performance, best first."""
