"""What a warp-level access touches, in which order warps make them, and what a cache keeps of it: the same for every analysis and model."""
