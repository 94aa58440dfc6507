"""How many warps of a block should use L1, when the others bypass it: CUDAAdvisor's Equation 1.

``warps = floor(L1 bytes / (mean reuse distance · line bytes · mean memory divergence · blocks per SM))``: each warp is thought to need the lines it
touches between two uses of the same one. Source: CUDAAdvisor (CGO 2018), section 4.2 (D), Equation 1; there within 4.3 to 6.7 % of the best
number found by trying, for kernels that bypassing helps.

With our own definitions the reuse distance is counted in lines and within one warp, by request, so that the lines a divergent request touches are
in it already and the divergence is no factor; only loads whose lines L1 keeps count, since no other access can make use of it. With the paper's it
counts elements, by thread, and the divergence turns them into lines.
"""

import math

from msgspec import Struct

from gpa_lsp.execution.traces.model import TraceContext
from gpa_lsp.execution.traces.reuse_distance import ReuseDistances
from gpa_lsp.execution.traces.segments import LINE_BYTES


class BypassingAdvice(Struct, frozen=True, kw_only=True):
    """What the equation says."""

    mean_distance: float  # the reuse distance that went into it
    warps: int  # of each block that should use L1, 0 to ``warps_per_block``; the equation's value cut to that
    equation_warps: int  # the equation's value
    warps_per_block: int  # of the launch


def count_caching_warps(
    *, l1_bytes: int, mean_distance: float, line_bytes: int, mean_divergence: float, blocks_per_sm: int
) -> int:
    """Equation 1.

    Raises:
        ValueError: a factor of the denominator is not above zero.

    >>> count_caching_warps(l1_bytes=16384, mean_distance=4, line_bytes=128, mean_divergence=2.0, blocks_per_sm=2)
    8
    """
    footprint = mean_distance * line_bytes * mean_divergence * blocks_per_sm
    if footprint <= 0:
        raise ValueError(f"no footprint of {footprint} bytes divides a cache")
    return math.floor(l1_bytes / footprint)


def advise_bypassing(reuse: ReuseDistances, context: TraceContext, warps_per_block: int) -> BypassingAdvice | None:
    """The equation with our own definitions.

    Returns:
        None where the size of L1 is unknown or no line is used again: there is nothing to keep.
    """
    mean = reuse.total.mean_distance
    if mean is None or context.l1_bytes is None:
        return None
    distance = mean + 1.0  # the line itself has to stay; the paper's code has 1 as its least distance, too
    equation = count_caching_warps(
        l1_bytes=context.l1_bytes,
        mean_distance=distance,
        line_bytes=LINE_BYTES,
        mean_divergence=1.0,
        blocks_per_sm=context.blocks_per_sm,
    )
    return BypassingAdvice(
        mean_distance=distance,
        warps=min(equation, warps_per_block),
        equation_warps=equation,
        warps_per_block=warps_per_block,
    )
