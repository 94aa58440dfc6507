"""FOLLOW: the rows of a kernel → where values come from, what could change places, what an operation was compiled to."""
