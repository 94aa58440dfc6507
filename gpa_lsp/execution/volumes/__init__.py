"""Data volumes of a kernel without running it: address expressions in, bytes through each level of the memory and a performance out."""
