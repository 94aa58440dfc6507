"""Metrics shown on lines, in hints, colours and lenses: :class:`LineMetric`, one at a time, chosen by the user."""

from collections.abc import Iterator
from enum import Enum

from msgspec import Struct

from gpa_lsp.profile.stall_reasons import describe_stall_reason


class MetricKind(Enum):
    """Kinds of metrics; the values are the names by which they are chosen."""

    USUAL = "usual"  # Samples and causes, whichever are more
    TIME = "time"
    CAUSE = "cause"
    REASON = "reason"  # One stall reason; it is chosen by the name of that
    EXECUTIONS = "executions"
    DIVERGENCE = "divergence"
    SECTORS = "sectors"
    EMULATED = "emulated"
    PREDICTED = "predicted"


_WORDS = {
    MetricKind.USUAL: ("samples and causes", "samples taken on a line, or stalls that it causes, whichever is more"),
    MetricKind.TIME: ("time", "share of the kernel's samples that were taken on a line"),
    MetricKind.CAUSE: ("causes", "share of the kernel's samples that are stalls caused by a line"),
    MetricKind.EXECUTIONS: ("executions", "warp instructions executed"),
    MetricKind.DIVERGENCE: ("divergence", "active threads, of 32, when a warp executed a line"),
    MetricKind.SECTORS: (
        "sectors",
        "32-byte sectors of global and local memory asked for, and the fewest there could be",
    ),
    MetricKind.EMULATED: ("emulated", "sectors or wavefronts of a request, and divergence, as emulated without a GPU"),
    MetricKind.PREDICTED: ("predicted", "hit rates of the caches, as predicted without a GPU"),
}


class LineMetric(Struct, frozen=True, kw_only=True):
    """One thing lines can be measured by."""

    kind: MetricKind  # which
    reason: str = ""  # the stall reason; empty for the other kinds

    @property
    def name(self) -> str:
        """Name by which it is chosen."""
        return self.reason or self.kind.value

    @property
    def title(self) -> str:
        """A word or two for lists and status lines."""
        return self.reason or _WORDS[self.kind][0]

    @property
    def detail(self) -> str:
        """Meaning in a few words."""
        if self.kind is MetricKind.REASON:
            return f"share of the kernel's samples: {describe_stall_reason(self.reason).description}"
        return _WORDS[self.kind][1]

    @property
    def is_from_emulation(self) -> bool:
        """Whether it comes from the emulator and was never measured."""
        return self.kind in (MetricKind.EMULATED, MetricKind.PREDICTED)


USUAL = LineMetric(kind=MetricKind.USUAL)  # What is shown where nobody has chosen


def find_metric(name: str) -> LineMetric:
    """The metric with a name; what is the name of none is that of a stall reason.

    >>> find_metric("sectors").kind, find_metric("long_scoreboard").reason
    (<MetricKind.SECTORS: 'sectors'>, 'long_scoreboard')
    """
    kinds = {metric.name: metric for metric in list_plain_metrics()}
    return kinds.get(name) or LineMetric(kind=MetricKind.REASON, reason=name)


def list_plain_metrics() -> Iterator[LineMetric]:
    """All but the stall reasons, of which every profile has its own."""
    return (LineMetric(kind=kind) for kind in MetricKind if kind is not MetricKind.REASON)
