"""C code, and its compiler."""
