"""Values of a measured kernel's lines and instructions in one metric: a stall reason, executions, active threads, sectors.

Time and causes are not here: they have estimates, ways and remedies, and stand in the kernel's own rows.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from gpa_lsp.editor.lines.places import Place
from gpa_lsp.editor.metrics import LineMetric, MetricKind
from gpa_lsp.editor.snapshot import MeasuredKernel, VisibleKernel
from gpa_lsp.foundation.numbers import format_count_of, format_number, format_percent
from gpa_lsp.foundation.records import ColumnRecord, IdentityCache

if TYPE_CHECKING:  # numpy must not be imported before the client has its answer to initialize
    import numpy as np
    import numpy.typing as npt

    from gpa_lsp.kernel.scopes import Scope
    from gpa_lsp.report.model import KernelReport

    Columns = npt.NDArray[np.float64]

WARP_LANES = 32  # Threads of a warp, on every architecture there is

_MOST_CHARS = 41  # Of a value with two numbers; of a longer one the second is left to the tooltip

_SECTORS = ("global_sectors", "local_sectors")
_FEWEST_SECTORS = "global_sectors_ideal"


class MetricValue(Struct, frozen=True, kw_only=True):
    """Value of a line, an instruction or a kernel in a metric."""

    ratio: float  # of all there is in the kernel; of active threads, what is idle of all lanes of the kernel's warp instructions
    number: float  # samples, warp instructions, active threads of a warp, sectors
    fewest: float | None = None  # sectors at best; None where nobody knows, and of other metrics


class KernelValues(ColumnRecord, frozen=True, kw_only=True):
    """A kernel in a metric."""

    total: MetricValue  # the kernel
    # its lines, with everything inlined into them; those that are nothing are left out
    by_line: Mapping[Place, MetricValue]


def measure_values(kernel: MeasuredKernel, metric: LineMetric) -> KernelValues | None:
    """A kernel in a metric; None where its profile does not have it."""
    return _known.setdefault(metric, IdentityCache(lambda one: _measure(one, metric)))(kernel)


_known: dict[LineMetric, IdentityCache[MeasuredKernel, KernelValues | None]] = {}


def _measure(kernel: MeasuredKernel, metric: LineMetric) -> KernelValues | None:
    from gpa_lsp.report.kernel_lines import sum_by_line

    columns = _READERS[metric.kind](kernel.report, metric.reason)
    if columns is None:
        return None
    whole = _sum_whole(kernel.report, metric, columns)
    make = _MAKERS.get(metric.kind, _make_share)
    lines = sum_by_line(kernel.report.instructions, columns)
    return KernelValues(
        total=make(columns.sum(axis=0).tolist(), whole),
        by_line={place: make(sums.tolist(), whole) for place, sums in lines.items()},
    )


def measure_rows(report: "KernelReport", metric: LineMetric) -> list[MetricValue]:
    """The instructions of a kernel in a metric, in the order of its columns; none where its profile does not have it."""
    columns = _READERS[metric.kind](report, metric.reason)
    if columns is None:
        return []
    whole = _sum_whole(report, metric, columns)
    make = _MAKERS.get(metric.kind, _make_share)
    return [make(row, whole) for row in columns.tolist()]


def _sum_whole(report: "KernelReport", metric: LineMetric, columns: "Columns") -> list[float]:
    """Denominator of shares: of a stall reason all samples, whatever their reasons."""
    whole: list[float] = columns.sum(axis=0).tolist()
    return [float(report.total_samples)] if metric.kind is MetricKind.REASON else whole


def _read_reason(report: "KernelReport", reason: str) -> "Columns | None":
    """A kernel that was sampled and has no such reason was never stalled by it; one that was not sampled does not know."""
    import numpy as np

    columns = report.instructions
    if not report.total_samples:
        return None
    if reason not in columns.reasons:
        return np.zeros((len(columns), 1))
    return columns.all_samples[:, [columns.reasons.index(reason)]].astype(np.float64)


def _read_executions(report: "KernelReport", reason: str) -> "Columns | None":
    import numpy as np

    del reason
    executions = np.maximum(report.instructions.executions, 0).astype(np.float64)
    return executions[:, np.newaxis] if executions.any() else None


def _read_lanes(report: "KernelReport", reason: str) -> "Columns | None":
    """Threads and executions, of instructions of which both are known."""
    import numpy as np

    del reason
    threads = None if report.code is None else report.code.counters.get("thread_executions")
    executions = report.instructions.executions
    known = None if threads is None else (threads >= 0) & (executions > 0)
    if threads is None or known is None or not known.any():
        return None
    return np.column_stack([threads * known, executions * known]).astype(np.float64)


def _read_sectors(report: "KernelReport", reason: str) -> "Columns | None":
    """Sectors, and the fewest there could be where that is known; of local memory those there are."""
    import numpy as np

    del reason
    counters = {} if report.code is None else report.code.counters
    found = {name: np.maximum(counters[name], 0) for name in (*_SECTORS, _FEWEST_SECTORS) if name in counters}
    sectors = sum(found[name] for name in _SECTORS if name in found)
    if not any(name in found for name in _SECTORS):
        return None
    parts = [sectors]
    if _FEWEST_SECTORS in found:
        parts.append(np.minimum(found[_FEWEST_SECTORS] + found.get("local_sectors", 0), sectors))
    return np.column_stack(parts).astype(np.float64)


# Metric → (report, stall reason) → float64[n, k], whose sums make the value of several instructions
_READERS = {
    MetricKind.REASON: _read_reason,
    MetricKind.EXECUTIONS: _read_executions,
    MetricKind.DIVERGENCE: _read_lanes,
    MetricKind.SECTORS: _read_sectors,
}


def _make_share(sums: Sequence[float], whole: Sequence[float]) -> MetricValue:
    return MetricValue(ratio=_divide(sums[0], whole[0]), number=sums[0], fewest=sums[1] if len(sums) > 1 else None)


def _make_lanes(sums: Sequence[float], whole: Sequence[float]) -> MetricValue:
    threads, executions = sums
    idle = _divide(WARP_LANES * executions - threads, WARP_LANES * whole[1])
    return MetricValue(ratio=max(idle, 0.0), number=_divide(threads, executions, most=WARP_LANES))


_MAKERS = {MetricKind.DIVERGENCE: _make_lanes}


def _divide(part: float, whole: float, most: float = 1.0) -> float:
    return min(most, part / whole) if whole else 0.0


def label_value(metric: LineMetric, value: MetricValue) -> str:
    """A value with its unit, in the few words of a hint: ``38 % long_scoreboard``, ``12.4 of 32 threads active``."""
    if metric.kind is MetricKind.REASON:
        return f"{format_percent(value.ratio)} {metric.reason}"
    if metric.kind is MetricKind.EXECUTIONS:
        return format_count_of(value.number, "warp instruction")
    if metric.kind is MetricKind.DIVERGENCE:
        return f"{format_number(value.number)} of {WARP_LANES} threads active"
    text = format_count_of(value.number, "sector")
    both = text if value.fewest is None else f"{text}, {format_number(value.fewest)} at best"
    return both if len(both) <= _MOST_CHARS else text


def describe_value(metric: LineMetric, value: MetricValue, kernel_name: str) -> str:
    """A value as a sentence without its stop, for a tooltip."""
    share = format_percent(value.ratio)
    if metric.kind is MetricKind.REASON:
        return f"{share} of the samples of {kernel_name} were taken here and are {metric.reason}"
    if metric.kind is MetricKind.EXECUTIONS:
        return f"{label_value(metric, value)} executed here, {share} of those of {kernel_name}"
    if metric.kind is MetricKind.DIVERGENCE:
        return f"{label_value(metric, value)} on average when a warp executes this; the idle ones are {share} of the lanes of {kernel_name}"
    fewest = "" if value.fewest is None else f"; {format_count_of(value.fewest, 'sector')} would do"
    return f"{format_count_of(value.number, 'sector')} asked for here, {share} of those of {kernel_name}{fewest}"


def label_scope(kernel: MeasuredKernel, metric: LineMetric, scope: "Scope") -> str:
    """Label the value of a loop or called function, for its lens; empty where it is unknown, for the usual metric, and for emulated ones."""
    if metric.kind is MetricKind.USUAL or metric.is_from_emulation or not kernel.report.total_samples:
        return ""
    rows = _find_rows(kernel.report, scope)
    if rows is None:
        return ""
    if metric.kind in (MetricKind.TIME, MetricKind.CAUSE):
        whole = kernel.report.total_samples
        ratio = _divide(_count_samples(kernel.report, rows, is_caused=metric.kind is MetricKind.CAUSE), whole)
        share = format_percent(ratio)
        return f"{share} of samples" if metric.kind is MetricKind.TIME else f"causes {share}"
    columns = _READERS[metric.kind](kernel.report, metric.reason)
    if columns is None:
        return ""
    whole_sums = _sum_whole(kernel.report, metric, columns)
    make = _MAKERS.get(metric.kind, _make_share)
    return label_value(metric, make(columns[rows].sum(axis=0).tolist(), whole_sums))


def _find_rows(report: "KernelReport", scope: "Scope") -> "npt.NDArray[np.bool_] | None":
    """bool[n], the instructions of a loop with all in it, or of a function that is called; None where they cannot be told."""
    columns = report.instructions
    if scope.kind.value == "call":
        if scope.function not in columns.functions:
            return None
        called: npt.NDArray[np.bool_] = columns.function_index == columns.functions.index(scope.function)
        return called
    function, header = int(columns.function_index[scope.row]), int(columns.pc_offsets[scope.row])
    for loop in report.loops:
        if loop.function == columns.functions[function] and loop.header_pc_offset == header:
            is_between = (columns.pc_offsets >= header) & (columns.pc_offsets <= loop.last_pc_offset)
            inside: npt.NDArray[np.bool_] = (
                (columns.function_index == function) & is_between & (columns.loop_depths >= loop.depth)
            )
            return inside
    return None


def _count_samples(report: "KernelReport", rows: "npt.NDArray[np.bool_]", *, is_caused: bool) -> float:
    """Count the samples taken in some rows, or the stalls that would vanish if they were free, as on lines."""
    if not is_caused:
        return float(report.instructions.all_samples[rows].sum())
    if report.blame is None:
        return 0.0
    import numpy as np

    from gpa_lsp.profile.stall_reasons import describe_stall_reason

    edges = report.blame.edges
    is_stall = np.array(
        [describe_stall_reason(reason).is_stall for reason in report.instructions.reasons], dtype=np.bool_
    )
    counts = rows[edges.def_row] & (edges.is_moved | is_stall[edges.reason])
    return float(edges.all_samples[counts].sum())


def label_kernel(shown: VisibleKernel, metric: LineMetric) -> str:
    """Label the value of a whole kernel for its lens, or say that its profile lacks it; empty for the usual metric and for emulated ones."""
    if metric.kind is MetricKind.USUAL or metric.is_from_emulation:
        return ""
    return _label_total(shown.kernel, metric) or f"{metric.title}: not in this profile"


def has_metric(kernel: MeasuredKernel, metric: LineMetric) -> bool:
    """Whether a kernel's profile has what a metric needs; of what is emulated no profile has anything."""
    return not metric.is_from_emulation and bool(_label_total(kernel, metric))


def _label_total(kernel: MeasuredKernel, metric: LineMetric) -> str:
    report = kernel.report
    if metric.kind in (MetricKind.USUAL, MetricKind.TIME):
        return format_count_of(report.total_samples, "sample") if report.total_samples else ""
    if metric.kind is MetricKind.CAUSE:
        if report.blame is None or not report.total_samples:
            return ""
        edges = report.blame.edges
        moved = float(edges.all_samples[edges.is_moved].sum())
        return f"{format_percent(_divide(moved, report.total_samples))} of samples moved to causes"
    values = measure_values(kernel, metric)
    return "" if values is None else label_value(metric, values.total)
