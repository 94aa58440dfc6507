"""The profiler's own estimates beside ours: what NVIDIA's rules think can be saved."""

from msgspec import Struct

from gpa_lsp.foundation.numbers import UNKNOWN, format_percent, format_speedup
from gpa_lsp.report.model import KernelReport, RuleNote


class RuleEstimate(Struct, frozen=True, kw_only=True):
    """One estimate of the profiler."""

    rule: str  # the rule's name
    text: str  # its remark
    saved: str  # what it would save, in percent of run time
    factor: str  # the same as a speedup
    base: str  # percent of what


def list_estimates(kernel: KernelReport) -> tuple[RuleEstimate, ...]:
    """Those of the longest launch that has any; of the whole kernel first, then largest first."""
    launches = sorted(kernel.launches, key=lambda launch: -(launch.duration_ns or 0.0))
    for launch in launches:
        notes = [note for note in dict.fromkeys(launch.rules) if note.speedup_percent]
        if notes:
            notes.sort(key=lambda note: (not note.speedup_is_global, -(note.speedup_percent or 0.0), note.rule))
            return tuple(_describe_estimate(note) for note in notes)
    return ()


def convert_saving(percent: float) -> float | None:
    """A percentage of run time saved as a factor, 1 / (1 - x); None for what cannot be, all of it and more.

    >>> convert_saving(50.0), convert_saving(100.0)
    (2.0, None)
    """
    left = 1 - percent / 100
    return 1 / left if left > 0 else None


def _describe_estimate(note: RuleNote) -> RuleEstimate:
    percent = note.speedup_percent or 0.0
    factor = convert_saving(percent)
    return RuleEstimate(
        rule=note.rule,
        text=note.text,
        saved=format_percent(percent / 100),
        factor=UNKNOWN if factor is None else format_speedup(factor),
        base="the kernel" if note.speedup_is_global else "its part",
    )
