"""Totals of a launch from whichever form a report states them in: a sum, a rate per second, a rate per cycle.

The profiler stores the same counter as ``….sum``, ``….sum.per_second`` or ``….sum.per_cycle_elapsed``, by version and section: operations of
the roofline sections are stored per cycle only.
"""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from gpa_lsp.profile.model import Launch

NS_PER_S = 1e9

# No counter or rate reaches the one, or is below the other and not zero; products and quotients of numbers between them are finite
_BEYOND_COUNTING, _AS_GOOD_AS_NONE = 1e30, 1e-30

_SHORTEST_NS = 1.0  # Nothing is measured in less than the timer's resolution

_DURATION = "gpu__time_duration.sum"

# SM clock during the launch: cycles per second of ``gpu__time_duration``
_FREQUENCIES = (
    "smsp__cycles_elapsed.avg.per_second",
    "sm__cycles_elapsed.avg.per_second",
    "gpc__cycles_elapsed.avg.per_second",
)

_CYCLES = ("smsp__cycles_elapsed.avg", "sm__cycles_elapsed.avg", "sm__cycles_elapsed.max")


class Span(Struct, frozen=True, kw_only=True):
    """How long a launch took."""

    duration_s: float  # positive
    # SM cycles in that time, the mean over the SMs; None when neither they nor the clock were collected
    elapsed_cycles: float | None


class Total(Struct, frozen=True, kw_only=True):
    """A number with the counters it comes from."""

    value: float  # finite, not negative
    source: str  # one clause
    is_exact: bool = True  # False where a factor was assumed on the way


def read_span(launch: Launch) -> Span | None:
    """The time a launch took; None when it failed, or its time was not collected or is no time.

    The cycles are the clock times the time, so that a rate per cycle times the clock is the rate per second.
    """
    duration_ns = read_count(launch, _DURATION)
    if launch.failure is not None or duration_ns is None or duration_ns < _SHORTEST_NS:
        return None
    duration_s = duration_ns / NS_PER_S
    frequency_hz = next((value for name in _FREQUENCIES if (value := read_count(launch, name))), None)
    if frequency_hz is not None:
        return Span(duration_s=duration_s, elapsed_cycles=frequency_hz * duration_s)
    return Span(
        duration_s=duration_s,
        elapsed_cycles=next((value for name in _CYCLES if (value := read_count(launch, name))), None),
    )


def read_count(launch: Launch, name: str) -> float | None:
    """A metric that cannot be negative; None when it was not collected, or is no number, a negative one or beyond all counting."""
    value = launch.read_number(name)
    if value is None or not 0 <= value < _BEYOND_COUNTING:
        return None
    return value if value > _AS_GOOD_AS_NONE else 0.0


def read_total(launch: Launch, span: Span, counters: Iterable[str]) -> Total | None:
    """What a counter adds up to over the launch.

    Args:
        span: its time and cycles.

    Returns:
        None when it has none of them.
    """
    return next((total for counter in counters for total in _read_forms(launch, span, counter)), None)


def sum_totals(
    launch: Launch, span: Span, terms: Iterable[tuple[tuple[str, ...], float]], words: str = ""
) -> Total | None:
    """The sum of several counters, each times a factor.

    Args:
        span: its time and cycles.

    Returns:
        None when one of the terms was not collected.
    """
    value, sources = 0.0, []
    for counters, factor in terms:
        total = read_total(launch, span, counters)
        if total is None:
            return None
        value += factor * total.value
        sources.append(total.source)
    return Total(value=value, source=words or " + ".join(sources))


def _read_forms(launch: Launch, span: Span, counter: str) -> Iterator[Total]:
    forms = (("sum", 1.0), ("sum.per_second", span.duration_s), ("sum.per_cycle_elapsed", span.elapsed_cycles))
    for suffix, factor in forms:
        value = None if factor is None else read_count(launch, f"{counter}.{suffix}")
        if value is not None and factor is not None:
            yield Total(value=value * factor, source=f"{counter}.{suffix}")
