"""What became of a time: the words and the rules that every comparison of two measurements shares.

Nothing here needs numpy or a report, so that what was remembered of a kernel can be compared as well as the kernel itself, and the result shown
by a server that has not loaded any.
"""

import math
from collections.abc import Sequence
from enum import Enum

from gpa_lsp.basis.figures import Spread, measure_share
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.numbers import format_count, format_count_of, format_limit
from gpa_lsp.basis.prose import NOTHING, Sentence, say

ASSUMED_NOISE_RATIO = 0.03
"""Run-to-run noise taken for granted where too few launches were measured to see it."""

ASSUMED_OVERHEAD_CYCLES = 1_000.0
"""And what start and end of a launch may differ by: it decides for kernels of a few microseconds."""

ASSUMED_OVERHEAD_NS = 1_000.0

_ENOUGH_LAUNCHES = 3


class Verdict(Enum):
    """What became of a kernel's time."""

    FASTER = "faster"
    SLOWER = "slower"
    NO_CHANGE = "no_change"
    """Within what the measurement can tell."""
    SAME_CODE = "same_code"
    """The instructions and the launch are the same, so there is nothing a change could have done."""
    UNKNOWN = "unknown"
    """One of the two has no time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchTimes:
    """How long the launches of a kernel took.

    Attributes:
        cycles: SM cycles per launch; None where not counted.
        ns: wall-clock time per launch; None where unknown.
    """

    cycles: Spread | None
    ns: Spread | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeChange:
    """A kernel's time per launch, before and after.

    Attributes:
        before: in ``unit``.
        after: in ``unit``.
        unit: ``cycles`` or ``ns``.
        speedup: before / after.
        low: lower end of the range the speedup lies in.
        high: upper end.
        basis: how the range was found, one clause.
    """

    before: float
    after: float
    unit: str
    speedup: float
    low: float
    high: float
    basis: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartChange:
    """Time of a part of a kernel (a stall reason, a line) per launch.

    Attributes:
        name: the reason, or the file as compiled before; of a line that is new, as compiled after.
        before_line: 1-based; None for a reason, and for a line that was not there before.
        after_line: 1-based; None for a reason, and for a line that is not there any more.
        before_ns: None when the kernel's duration is unknown.
        after_ns: None when the kernel's duration is unknown.
        before_ratio: share of the kernel's samples.
        after_ratio: share of the kernel's samples.
        is_clear: the change is larger than the two counts of samples leave in doubt; None where nobody looked.
    """

    name: str
    before_line: int | None
    after_line: int | None
    before_ns: float | None
    after_ns: float | None
    before_ratio: float
    after_ratio: float
    is_clear: bool | None = None


def compare_times(before: LaunchTimes, after: LaunchTimes) -> TimeChange | None:
    """Time per launch before and after, with the range the speedup lies in; None when one of the two has no time.

    In cycles where both have them, because profilers lock clocks, and do so differently. With three launches or more on both sides the range is
    twice the standard error of the ratio of means, else an assumed noise of 3 % and 1,000 cycles (1 µs) of launch overhead; so it is where an
    aggregate does not say how its launches differ.
    """
    for unit, overhead, first, second in (
        ("cycles", ASSUMED_OVERHEAD_CYCLES, before.cycles, after.cycles),
        ("ns", ASSUMED_OVERHEAD_NS, before.ns, after.ns),
    ):
        if first is None or second is None or second.mean <= 0 or first.mean <= 0:
            continue
        speedup = first.mean / second.mean
        deviations = (first.standard_deviation, second.standard_deviation)
        if min(first.count, second.count) >= _ENOUGH_LAUNCHES and None not in deviations:
            errors = [
                (deviation or 0.0) / spread.mean / math.sqrt(spread.count)
                for spread, deviation in zip((first, second), deviations, strict=True)
            ]
            half = 2 * math.hypot(*errors)
            basis = f"{format_count(first.count)} and {format_count_of(second.count, 'launch')}"
        else:
            half = ASSUMED_NOISE_RATIO + overhead / min(first.mean, second.mean)
            is_hidden = any(spread.count > 1 and spread.standard_deviation is None for spread in (first, second))
            seen = "launches were added up, which hides" if is_hidden else "too few launches to see"
            basis = f"{seen} the noise; {format_limit(ASSUMED_NOISE_RATIO)} and the launch overhead assumed"
        return TimeChange(
            before=first.mean,
            after=second.mean,
            unit=unit,
            speedup=speedup,
            low=speedup * max(0.0, 1 - half),
            high=speedup * (1 + half),
            basis=basis,
        )
    return None


def measure_range(spread: Spread, unit: str) -> tuple[float, float]:
    """The range one mean time lies in, by the rules of :func:`compare_times`: ranges without a common value are a change beyond the noise.

    Args:
        spread: over launches.
        unit: of it, ``cycles`` or ``ns``.
    """
    if spread.count >= _ENOUGH_LAUNCHES and spread.standard_deviation is not None:
        half = 2 * spread.standard_deviation / math.sqrt(spread.count)
    else:  # half of what is assumed between two measurements
        overhead = ASSUMED_OVERHEAD_CYCLES if unit == "cycles" else ASSUMED_OVERHEAD_NS
        half = (ASSUMED_NOISE_RATIO * spread.mean + overhead) / 2
    return max(0.0, spread.mean - half), spread.mean + half


def judge_change(time: TimeChange | None, *, same_code: bool) -> Verdict:
    """What a change of time means; ``same_code`` says that instructions and launch are the same.

    >>> judge_change(None, same_code=True).value, judge_change(None, same_code=False).value
    ('same_code', 'unknown')
    """
    if same_code:
        return Verdict.SAME_CODE
    if time is None:
        return Verdict.UNKNOWN
    if time.low > 1:
        return Verdict.FASTER
    return Verdict.SLOWER if time.high < 1 else Verdict.NO_CHANGE


def explain_missing_stalls(before_samples: int, after_samples: int) -> Sentence:
    """Why nothing can be said of stalls; empty where both measurements have samples.

    >>> explain_missing_stalls(100, 0), explain_missing_stalls(100, 100)
    ('stalls unknown: the report after has no samples', '')
    """
    if before_samples and after_samples:
        return NOTHING
    if not before_samples and not after_samples:
        return say("stalls unknown: neither report has samples")
    return say("stalls unknown: the report {side} has no samples", side="after" if before_samples else "before")


def is_beyond_counts(before: tuple[float, int, float], after: tuple[float, int, float]) -> bool:
    """Whether a part's time changed by more than counting samples leaves in doubt: its two 95 % intervals have nothing in common.

    Args:
        before: samples of the part, samples of the kernel, and the kernel's time in any unit.
        after: the same three, in the same unit.

    >>> is_beyond_counts((300, 1000, 1.0), (100, 1000, 1.0)), is_beyond_counts((3, 10, 1.0), (1, 10, 1.0))
    (True, False)
    """
    ends = []
    for part, whole, time in (before, after):
        share = measure_share(min(round(part), whole), whole)
        ends.append((share.low_ratio * time, share.high_ratio * time))
    (old_low, old_high), (new_low, new_high) = ends
    return old_high < new_low or new_high < old_low


def order_changes(changes: Sequence[PartChange]) -> tuple[PartChange, ...]:
    """Largest change first: of time, or of share where times are unknown."""

    def measure(change: PartChange) -> float:
        if change.before_ns is None or change.after_ns is None:
            return abs(change.after_ratio - change.before_ratio)
        return abs(change.after_ns - change.before_ns)

    return tuple(sorted(changes, key=measure, reverse=True))
