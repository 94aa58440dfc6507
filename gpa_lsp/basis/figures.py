"""Numbers with their uncertainty: shares with intervals, and spreads over launches; and how sentences write percent, amounts and times."""

import math
from collections.abc import Iterable, Sequence
from typing import TypeVar

from gpa_lsp.basis.lazy_dataclass import dataclass

_Z_95 = 1.959963984540054
"""Two-sided 95 % quantile of the normal distribution."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A part of a whole counted by sampling, with its 95 % interval.

    Attributes:
        part_samples: samples in the part.
        whole_samples: samples in all.
        ratio: part / whole, 0 when nothing was sampled.
        low_ratio: lower end of the interval.
        high_ratio: upper end of the interval.
    """

    part_samples: int
    whole_samples: int
    ratio: float
    low_ratio: float
    high_ratio: float


def measure_share(part_samples: int, whole_samples: int, lost_samples: int = 0) -> Share:
    """The share of ``part`` in ``whole`` with Wilson's 95 % score interval.

    Wilson's interval and not the textbook one: it stays inside [0, 1] and is honest at the small counts short kernels have. Samples are
    taken as independent, which neighbouring samples of one warp are not quite; the interval is therefore a lower bound of the uncertainty.

    Args:
        part_samples: in the part.
        whole_samples: in all.
        lost_samples: taken beside them and lost, nobody knows where: the interval reaches from none of them in the part to all.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How a number varies over launches.

    Attributes:
        count: how many values.
        mean: arithmetic mean.
        minimum: smallest value; None where only a mean of some of them is known.
        maximum: largest value; None where only a mean of some of them is known.
        standard_deviation: of the sample (n - 1); None with fewer than two values, and where only a mean of some of them is known.
    """

    count: int
    mean: float
    minimum: float | None
    maximum: float | None
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


def format_whole_percent(ratio: float) -> str:
    """A ratio in whole percent; what is more than nothing is never said to be nothing, nor what is less than all to be all.

    >>> format_whole_percent(0.8149), format_whole_percent(0.002), format_whole_percent(0.9996), format_whole_percent(1.0)
    ('81 %', '<1 %', '>99 %', '100 %')
    """
    if 0 < ratio < 0.005:
        return "<1 %"
    return ">99 %" if 0.995 <= ratio < 1 else f"{100 * ratio:.0f} %"


def format_amount(value: float) -> str:
    """A number with three significant digits and no exponent; whole ones and those from 1,000 on have no decimals.

    >>> format_amount(9745.92), format_amount(14.6), format_amount(0.00996), format_amount(519.7), format_amount(-0.0)
    ('9,746', '14.6', '0.00996', '520', '0')
    """
    if not math.isfinite(value):
        return "unlimited" if value > 0 else "unknown"
    if value == round(value) or abs(value) >= 1000:
        return f"{round(value):,}"
    decimals = min(12, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:.{max(0, decimals)}f}"
    return text.rstrip("0").rstrip(".") if decimals > 0 else text


def format_update_bytes(bytes_per_update: float) -> str:
    """Bytes that an update moves, as exactly as a model knows them: a decimal below 100, none above.

    >>> format_update_bytes(12.24), format_update_bytes(4097.3), format_update_bytes(0.02), format_update_bytes(0.0)
    ('12.2', '4,097', '<0.1', '0.0')
    """
    if 0 < bytes_per_update < 0.05:
        return "<0.1"
    return f"{bytes_per_update:.1f}" if bytes_per_update < 99.95 else f"{bytes_per_update:,.0f}"


def format_rate(per_s: float, noun: str) -> str:
    """How many things are done in a second.

    >>> format_rate(9.75e12, "updates"), format_rate(115e9, "updates"), format_rate(120.0, "updates")
    ('9.75 trillion updates', '115 billion updates', '120 updates')
    """
    for size, word in ((1e12, "trillion "), (1e9, "billion "), (1e6, "million ")):
        if per_s >= size:
            return f"{format_amount(per_s / size)} {word}{noun}"
    return f"{format_amount(per_s)} {noun}"


def format_time_ns(duration_ns: float) -> str:
    """A time in the unit that suits it.

    >>> format_time_ns(9.5), format_time_ns(29_100.0), format_time_ns(6_190_912.0), format_time_ns(2.5e9)
    ('9.5 ns', '29.1 µs', '6.19 ms', '2.5 s')
    """
    for size_ns, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if duration_ns >= size_ns:
            return f"{format_amount(duration_ns / size_ns)} {unit}"
    return f"{format_amount(duration_ns)} ns"
