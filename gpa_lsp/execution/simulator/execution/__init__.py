"""Machine code and memory → the execution of every lane of some warps, many warps at a time."""
