"""C and Python that stands for a GPU, its driver and the programs that use them."""
