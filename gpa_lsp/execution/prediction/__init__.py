"""PREDICT: a source, how it is built and a launch → what the kernel does to memory and where its warps part, with no GPU."""
