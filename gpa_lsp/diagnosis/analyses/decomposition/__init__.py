"""Decomposition of warp time: counters and samples → stall reasons, their sources, and the memory behind them."""
