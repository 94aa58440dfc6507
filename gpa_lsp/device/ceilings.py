"""What share of its peak a memory sustains: no memory reaches 100 % of it for long, so each level has a *ceiling* below its peak."""

HBM_CEILING = 0.91
"""Stacked memory (HBM). STREAM triad on a GH200 moved 3.31 of 4.02 TB/s, 0.82 (UoB-HPC/BabelStream, issue 194); Jia et al., "Dissecting the
NVIDIA Volta GPU Architecture via Microbenchmarking" (arXiv:1804.06826), read 750 of a V100's 900 GB/s, 0.83; kernels of published reports reached
0.81 on a V100 and 0.83 on a GH200, others 0.894 and 0.907: the highest seen is what counts."""

GDDR_CEILING = 0.95
"""Graphics memory (GDDR): kernels of published reports reached 0.96 on an A40 and 0.95 on an RTX 3070."""

NARROWEST_HBM_BITS = 1025
"""A bus wider than this is stacked memory: one stack alone has 1,024 bits, products two or more, and graphics memory at most 512."""

L2_CEILING = 0.94
"""The busiest published reports have 0.913 and 0.934 of the peak (RTX 4080 Laptop GPU). The same study reads 2,155 GB/s from the L2 of a V100, 0.76
of its 2,048 bytes per cycle."""

L1_CEILING = 0.97
"""A kernel of a published report kept the L1 of an A100 at 0.97 of its peak while its SMs were active. Shared memory is the same array."""


def find_dram_ceiling(bus_bits: object) -> float:
    """The share of its peak that the DRAM sustains, by the width of its bus; that of stacked memory when the width is not known.

    Args:
        bus_bits: as a device attribute states it; anything but a positive number is unknown.

    >>> find_dram_ceiling(5120), find_dram_ceiling(384), find_dram_ceiling(None)
    (0.85, 0.95, 0.85)
    """
    is_graphics_memory = isinstance(bus_bits, int | float) and 0 < bus_bits < NARROWEST_HBM_BITS
    return GDDR_CEILING if is_graphics_memory else HBM_CEILING
