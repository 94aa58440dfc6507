"""ESTIMATE as the hybrid paper does: PTX and a launch → the trace of each warp by loop bounds and branches, and one time for the launch."""
