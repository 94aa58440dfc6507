"""Starlight's Equations 2 to 4, as published: what part of the run a line takes, what resolving its stalls gains, and what rate that makes.

N_op of a line are its samples in which the warp issued an instruction (``selected``), and N_stall all its other samples: the paper counts
operations and stalls by sampling alone, and every sample is one or the other, so that both together are all samples T. Equation 3 then reads
T / (T − M), which is GPA's Equation 2 of the same M. Two things it leaves out, and GPA does not: that stalls can be hidden behind other warps
(no bound by the samples in which something was issued), and that a stalled instruction suffers from another one (no def-use).

Source: A. Zeni et al., "Starlight: A kernel optimizer for GPU processing", section 4.4.
"""


def measure_line_share(operations: float, stalls: float, total: float) -> float:
    """Equation 2: the part of the run that a line takes, 0..1 (the paper writes percent).

    Raises:
        ValueError: a negative count, or more in the line than there is.

    >>> measure_line_share(20, 180, 1000)
    0.2
    """
    _check(operations, stalls, operations + stalls, total)
    return (operations + stalls) / total


def estimate_line_speedup(total: float, removed: float) -> float:
    """Equation 3: run time before by run time after, when the stalls of one kind are gone from a line, S = T / (T − N).

    Raises:
        ValueError: a negative count, or not less than the total: nothing would be left to run.

    >>> estimate_line_speedup(1000, 200)
    1.25
    """
    _check(removed, 0, removed, total)
    if removed >= total:
        raise ValueError(f"of {total} samples {removed} cannot go: nothing would be left")
    return total / (total - removed)


def estimate_new_rate(speedup: float, rate_per_s: float) -> float:
    """Equation 4: the rate of operations after a change that leaves their number as it is, in operations per second.

    >>> estimate_new_rate(1.25, 800e9)
    1000000000000.0
    """
    return speedup * rate_per_s


def _check(first: float, second: float, part: float, total: float) -> None:
    if first < 0 or second < 0 or part > total or total <= 0:
        raise ValueError(f"{part} of {total} samples is no part of them")
