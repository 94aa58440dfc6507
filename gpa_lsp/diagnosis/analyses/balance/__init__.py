"""How evenly work is spread: waves, the tail, SMs, slices and channels."""
