"""FOLLOW: the rows of a kernel → origins of values, instructions that could change places, expansions of operations."""
