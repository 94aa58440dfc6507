"""Estimators of gains: GPA's Equations 2, 4 and 6 to 10 as published, and behind them our own clamps.

T is all samples of a kernel, L its latency samples (taken in cycles without issue), A = T − L its active samples; M and M^L are what an
optimizer matched of T and of L. W is the number of active warps of one scheduler, R_I the ratio of issued samples to all samples. A speedup
is run time before by run time after.

Source: GPA (Zhou et al., CGO 2021), section V-B; each function names its equation.
"""

import math
from collections.abc import Sequence

# Latency hiding cannot gain more (GPA, Theorem V.1): an active sample can fill at most one latency sample
MOST_HIDING = 2.0


def estimate_elimination(total: float, matched: float) -> float:
    """Equation 2: the matched samples go, S^e = T / (T − M).

    Raises:
        ValueError: M is negative or not less than T.

    >>> round(estimate_elimination(100_000, 5_805), 3)  # ExaTENSOR, GPA Figure 8: "importance 5.805%, estimate speedup 1.062x"
    1.062
    """
    _check(total, matched, matched < total)
    return total / (total - matched)


def estimate_hiding(total: float, active: float, matched_latency: float) -> float:
    """Equation 4: matched latency is filled with active samples, S^h = T / (T − min(A, M^L)). At most 2 where M^L ≤ L (Theorem V.1).

    Raises:
        ValueError: a negative number, or min(A, M^L) not less than T.

    >>> estimate_hiding(100, 25, 75), estimate_hiding(100, 50, 50)
    (1.3333333333333333, 2.0)
    """
    hidden = min(active, matched_latency)
    _check(total, hidden, hidden < total)
    return total / (total - hidden)


def change_of_warps(warps: float, new_warps: float) -> float:
    """Equation 6: C_W = W_new / W.

    Raises:
        ValueError: a number of warps is not positive.

    >>> change_of_warps(8, 4)
    0.5
    """
    if not (warps > 0 and new_warps > 0):
        raise ValueError(f"no scheduler has {warps} or {new_warps} warps")
    return new_warps / warps


def estimate_issue_rate(issue_ratio: float, warps: float) -> float:
    """Equations 8 and 9: I = 1 − (1 − R_I)^W, the share of cycles in which a scheduler issues.

    Approximation: warps are ready independently of each other. Where they wait for the same thing (a saturated memory), more warps do not
    issue more.

    Raises:
        ValueError: R_I outside 0..1, or W not positive.

    >>> round(estimate_issue_rate(0.5, 2), 9), round(estimate_issue_rate(0.1, 1), 9), estimate_issue_rate(1, 3)
    (0.75, 0.1, 1.0)
    """
    if not 0 <= issue_ratio <= 1 or not warps > 0:
        raise ValueError(f"no scheduler issues {issue_ratio} with {warps} warps")
    if issue_ratio == 1:
        return 1.0
    # Not 1 − (1 − R_I)^W: few issued samples would drown in rounding.
    return -math.expm1(warps * math.log1p(-issue_ratio))


def change_of_issue_rate(issue_ratio: float, warps: float, new_warps: float) -> float:
    """Equation 7: C_I = I_new / I; for R_I → 0 it tends to W_new / W, which is what no issued sample at all gives.

    Raises:
        ValueError: as :func:`estimate_issue_rate`.

    >>> change_of_issue_rate(0.5, 1, 2), change_of_issue_rate(0.0, 4, 8)
    (1.5, 2.0)
    """
    before = estimate_issue_rate(issue_ratio, warps)
    after = estimate_issue_rate(issue_ratio, new_warps)
    return after / before if before > 0 else change_of_warps(warps, new_warps)


def estimate_parallel(
    *, issue_ratio: float, warps: float, new_warps: float, scales_warps: bool, factor: float = 1.0
) -> float:
    """Equation 10: S^p = 1 / C_W × C_I × f.

    Raises:
        ValueError: as the equations it is made of, or f is negative.

    >>> round(estimate_parallel(issue_ratio=0.0506, warps=8, new_warps=16, scales_warps=False), 2)
    1.66
    """
    if factor < 0:
        raise ValueError(f"no factor is {factor}")
    gained = change_of_issue_rate(issue_ratio, warps, new_warps) * factor
    return gained / change_of_warps(warps, new_warps) if scales_warps else gained


def estimate_idle(saved_ratio: float) -> float:
    """A part of the run time goes: S = 1 / (1 − x).

    Raises:
        ValueError: x outside 0 ≤ x < 1.

    Source: Nsight Compute's rules, whose "estimated speedup" is x, in percent.

    >>> estimate_idle(0.2)
    1.25
    """
    if not 0 <= saved_ratio < 1:
        raise ValueError(f"{saved_ratio} is no part of the run time that can go")
    return 1 / (1 - saved_ratio)


# What follows is ours, not the paper's.


def count_hidden(parents: Sequence[int], active: Sequence[float], matched_latency: Sequence[float]) -> float:
    """Latency samples that nested scopes can hide together, with no active sample used twice.

    Equation 5 is per scope; adding it up over nested scopes would let an inner loop's instructions fill the inner loop's stalls and the outer
    loop's as well. Here a scope hides at most its A in all, scopes inside included.

    Raises:
        ValueError: a scope that does not come after the one around it.

    >>> count_hidden([-1, 0], [10, 10], [10, 10])  # all active samples are the inner loop's
    10.0
    >>> count_hidden([-1, 0], [14, 10], [10, 10])
    14.0
    >>> count_hidden([-1, -1], [10, 10], [10, 1])  # side by side
    11.0
    """
    hidden = [float(samples) for samples in matched_latency]
    at_top = 0.0
    for scope in range(len(parents) - 1, -1, -1):
        if parents[scope] >= scope:
            raise ValueError(f"scope {scope} comes before {parents[scope]}, the one around it")
        hidden[scope] = min(hidden[scope], active[scope])
        if parents[scope] < 0:
            at_top += hidden[scope]
        else:
            hidden[parents[scope]] += hidden[scope]
    return at_top


def scale_contention(contention: float, warps: float, new_warps: float) -> float:
    """The factor f of block increase, for a scheduler that keeps several warps.

    GPA takes f = 1 / (1 − c), c the share of throttle, pipe and not-selected samples, and lets them all vanish, which is right for one warp
    that is left alone. A warp contends with the W − 1 others; of the contention the part of those that leave goes.

    Raises:
        ValueError: a number outside these bounds.

    Source: GPA section V-B, the remark on f under Equation 10; the interpolation is ours.

    >>> scale_contention(0.5, 8, 1), scale_contention(0.5, 8, 8)
    (2.0, 1.0)
    """
    if not 0 <= contention < 1 or not 1 <= new_warps <= warps:
        raise ValueError(f"contention {contention}, from {warps} to {new_warps} warps")
    gone = contention * (warps - new_warps) / (warps - 1) if warps > 1 else 0.0
    return 1 / (1 - gone)


def _check(total: float, matched: float, is_less: bool) -> None:
    if matched < 0 or not is_less:
        raise ValueError(f"{matched} of {total} samples cannot go")
