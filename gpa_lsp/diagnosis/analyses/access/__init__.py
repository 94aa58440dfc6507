"""How a kernel accesses memory: sectors, wavefronts and widths by line."""
