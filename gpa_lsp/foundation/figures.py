"""Numbers with their uncertainty: shares with intervals, and spreads over launches. How they are written stands in :mod:`.numbers`."""

import math
from collections.abc import Iterable, Sequence
from typing import TypeVar

from msgspec import Struct

_Z_95 = 1.959963984540054  # Two-sided 95 % quantile of the normal distribution

Number = TypeVar("Number", int, float)


def sum_known(values: Iterable[Number | None]) -> Number | None:
    """The sum of some numbers; None when one of them is unknown.

    >>> sum_known([1, 2]), sum_known([1, None]), sum_known([])
    (3, None, 0)
    """
    total: Number = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total


class Share(Struct, frozen=True, kw_only=True):
    """A part of a whole counted by sampling, with its 95 % interval."""

    part_samples: int  # samples in the part
    whole_samples: int  # samples in all
    ratio: float  # part / whole, 0 when nothing was sampled
    low_ratio: float  # lower end of the interval
    high_ratio: float  # upper end of the interval


def measure_share(part_samples: int, whole_samples: int, lost_samples: int = 0) -> Share:
    """The share of ``part`` in ``whole`` with Wilson's 95 % score interval.

    Wilson's interval and not the textbook one: it stays inside [0, 1] and is honest at the small counts short kernels have. Samples are
    taken as independent, which neighbouring samples of one warp are not quite; the interval is therefore a lower bound of the uncertainty.

    Args:
        part_samples: in the part.
        whole_samples: in all.
        lost_samples: taken beside them and lost at unknown places: the interval reaches from none of them in the part to all.

    Raises:
        ValueError: a negative count, or a part larger than its whole.

    Source:
        E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927), 209-212.

    >>> share = measure_share(50, 100)
    >>> round(share.low_ratio, 3), round(share.high_ratio, 3)
    (0.404, 0.596)
    >>> measure_share(0, 0).high_ratio
    1.0
    >>> share = measure_share(50, 100, 100)
    >>> share.ratio, round(share.low_ratio, 3), round(share.high_ratio, 3)
    (0.5, 0.202, 0.798)
    """
    if part_samples < 0 or part_samples > whole_samples or lost_samples < 0:
        raise ValueError(f"{part_samples} of {whole_samples} is no share")
    if whole_samples == 0:
        return Share(part_samples=0, whole_samples=0, ratio=0.0, low_ratio=0.0, high_ratio=1.0)
    ratio = part_samples / whole_samples
    z2_n = _Z_95 * _Z_95 / whole_samples
    centre = (ratio + z2_n / 2) / (1 + z2_n)
    half = _Z_95 / (1 + z2_n) * math.sqrt(ratio * (1 - ratio) / whole_samples + z2_n / (4 * whole_samples))
    low = 0.0 if part_samples == 0 else max(0.0, centre - half)
    high = 1.0 if part_samples == whole_samples else min(1.0, centre + half)
    if lost_samples:
        taken = whole_samples + lost_samples
        low, high = low * whole_samples / taken, (high * whole_samples + lost_samples) / taken
    return Share(part_samples=part_samples, whole_samples=whole_samples, ratio=ratio, low_ratio=low, high_ratio=high)


class Spread(Struct, frozen=True, kw_only=True):
    """The variation of a number over launches."""

    count: int  # how many values
    mean: float  # arithmetic mean
    minimum: float | None  # smallest value; None where only a mean of some of them is known
    maximum: float | None  # largest value; None where only a mean of some of them is known
    # of the sample (n - 1); None with fewer than two values, and where only a mean of some of them is known
    standard_deviation: float | None


def measure_spread(values: Sequence[float]) -> Spread | None:
    """The spread of ``values``; None when there are none. NaN and infinite values (failed measurements) are left out.

    >>> measure_spread([1.0, 3.0])
    Spread(count=2, mean=2.0, minimum=1.0, maximum=3.0, standard_deviation=1.4142135623730951)
    >>> measure_spread([float("nan")]) is None
    True
    """
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return None
    mean = math.fsum(finite) / len(finite)
    deviation = None
    if len(finite) > 1:
        deviation = math.hypot(*(value - mean for value in finite)) / math.sqrt(len(finite) - 1)
    return Spread(count=len(finite), mean=mean, minimum=min(finite), maximum=max(finite), standard_deviation=deviation)


def measure_weighted_spread(means: Sequence[tuple[float, int]]) -> Spread | None:
    """The spread of values of which some are known as means only: (mean, of how many values); None when there are none.

    >>> measure_weighted_spread([(1.0, 3), (5.0, 1)])
    Spread(count=4, mean=2.0, minimum=None, maximum=None, standard_deviation=None)
    >>> measure_weighted_spread([(1.0, 1), (3.0, 1)]) == measure_spread([1.0, 3.0])
    True
    """
    finite = [(value, count) for value, count in means if math.isfinite(value)]
    if all(count == 1 for _, count in finite):
        return measure_spread([value for value, _ in finite])
    total = sum(count for _, count in finite)
    mean = math.fsum(value * count for value, count in finite) / total
    return Spread(count=total, mean=mean, minimum=None, maximum=None, standard_deviation=None)
