"""Machine code and memory → what every lane of some warps does, many warps at a time."""
