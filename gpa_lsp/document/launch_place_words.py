"""Host call sites of a kernel's launches in words."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpa_lsp.foundation.numbers import format_count, format_count_of, format_duration_ns

if TYPE_CHECKING:  # numpy must not be imported before the client has its answer to initialize
    from gpa_lsp.report.launch_places import LaunchPlace

_MOST_IN_A_LENS = 2


def describe_places_briefly(places: "Sequence[LaunchPlace]") -> str:
    """Call sites for a lens, each with its time; empty where all launches come from one.

    Returns:
        ``train.py:41 20.0 µs × 3, train.py:42 35.0 µs × 2``, or ``from 5 places``.
    """
    if len(places) <= 1:
        return ""
    if len(places) > _MOST_IN_A_LENS:
        return f"from {format_count_of(len(places), 'place')}"
    return ", ".join(f"{place.name} {describe_place_time(place)}".rstrip() for place in places)


def describe_place_time(place: "LaunchPlace") -> str:
    """Mean time and number of launches; empty where neither is known."""
    time = "" if place.duration_ns is None else format_duration_ns(place.duration_ns)
    launches = "" if place.launches in (1, None) else f"× {format_count(place.launches)}"
    return " ".join(part for part in (time, launches) if part)


def describe_stack(place: "LaunchPlace") -> str:
    """Call stack on one line, innermost frame first."""
    return " < ".join(place.stack) if place.stack else "elsewhere: the calling context is not known"


def describe_times(before_ns: float | None, after_ns: float | None) -> str:
    """Change of the time of a call site's launches.

    >>> describe_times(20000.0, 10000.0), describe_times(None, 10000.0)
    ('20.0 µs → 10.0 µs', 'new: 10.0 µs')
    """
    if after_ns is None:
        return "no launch any more"
    after = format_duration_ns(after_ns)
    return f"new: {after}" if before_ns is None else f"{format_duration_ns(before_ns)} → {after}"
