"""From counters and samples to where the time of a kernel's warps goes: reasons, their sources, and the memory behind them."""
