"""Columns of numbers and words beside the instructions of a SASS document, of which a person chooses."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.document.layout import cut
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.foundation.locations import shorten_paths
from gpa_lsp.foundation.numbers import format_count, format_percent
from gpa_lsp.foundation.ownership import choose_frame
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.foundation.visible_text import keep_length, make_one_line
from gpa_lsp.profile.stall_reasons import describe_stall_reason
from gpa_lsp.report.code_queries import count_live_registers
from gpa_lsp.report.model import InstructionColumns, KernelReport

# Below this share of the kernel's samples a number would only hide those that matter, and a stall reason is chance
LEAST_SHOWN_RATIO = 0.0005

_FEW = "·"  # Stands for a share too small to show, so that nothing is taken for code that never ran

_LONGEST_REASON = 20
_MOST_PLACE_CELLS = 22


class ColumnKind(Struct, frozen=True, kw_only=True):
    """A column a person can choose."""

    name: str  # by which it is chosen
    title: str  # above it
    detail: str  # what stands in it, in a few words
    is_number: bool = True  # what instructions can be sorted by


class Column(ColumnRecord, frozen=True, kw_only=True):
    """A column of one kernel."""

    kind: ColumnKind  # which one
    cells: Sequence[str]  # n texts; empty for what is unknown or nothing
    # float64[n], what instructions are sorted by; -1 where unknown. None for words.
    values: npt.NDArray[np.float64] | None = None

    @property
    def width(self) -> int:
        """Characters of the widest cell; 0 when there is nothing to show."""
        return max([len(cell) for cell in set(self.cells)], default=0)


_SHARE = ColumnKind(name="share", title="share", detail="share of the kernel's samples")
_LINE = ColumnKind(
    name="line", title="line", detail="source line, with its file where that is not the kernel's", is_number=False
)
_REASON = ColumnKind(name="reason", title="stalled by", detail="stall reason of most of its samples", is_number=False)
_SAMPLES = ColumnKind(name="samples", title="samples", detail="number of samples")
_NOT_ISSUED = ColumnKind(name="not-issued", title="not issued", detail="samples in which the SM issued nothing")
_EXECUTIONS = ColumnKind(name="executions", title="executed", detail="how often warps executed it")
_SECTORS = ColumnKind(name="sectors", title="sectors", detail="32-byte sectors of global and local memory it asked for")
_WAVEFRONTS = ColumnKind(name="wavefronts", title="wavefronts", detail="wavefronts of its shared memory accesses")
_REGISTERS = ColumnKind(name="registers", title="alive", detail="registers that hold a value at it, from the code")

# Those that every kernel has, in the order they are offered in; each of a kernel's stall reasons is one more, by its name
KINDS = (_SHARE, _LINE, _REASON, _SAMPLES, _NOT_ISSUED, _EXECUTIONS, _SECTORS, _WAVEFRONTS, _REGISTERS)

USUAL_COLUMNS = (_SHARE.name, _LINE.name, _REASON.name)  # What is shown where nobody has chosen


def list_kinds(report: KernelReport) -> tuple[ColumnKind, ...]:
    """List the columns that can be chosen for a kernel."""
    totals = report.instructions.all_samples.sum(axis=0).tolist() if report.instructions.reasons else []
    reasons = sorted(zip(report.instructions.reasons, totals, strict=True), key=lambda one: (-one[1], one[0]))
    return (*KINDS, *(describe_reason(reason) for reason, samples in reasons if samples))


def describe_reason(reason: str) -> ColumnKind:
    """The column of one stall reason."""
    return ColumnKind(name=reason, title=reason, detail=f"share of the kernel's samples that are {reason}")


def fill_columns(shown: VisibleKernel, names: Sequence[str]) -> tuple[Column, ...]:
    """The chosen columns of a kernel, without those it has nothing for."""
    return tuple(column for name in dict.fromkeys(names) if (column := fill_column(shown, name)).width)


def fill_column(shown: VisibleKernel, name: str) -> Column:
    """One column of a kernel; empty where nothing has that name."""
    report = shown.kernel.report
    kind = next((kind for kind in KINDS if kind.name == name), None)
    if kind is not None and kind.name in _FILLERS:
        return _FILLERS[kind.name](kind, shown)
    if kind is not None:
        return _fill_counts(kind, _COUNTS[kind.name](report), len(report.instructions))
    columns = report.instructions
    if name not in columns.reasons:
        return Column(kind=describe_reason(name), cells=[""] * len(columns))
    samples = columns.all_samples[:, columns.reasons.index(name)]
    return _fill_share(describe_reason(name), samples, report.total_samples)


def _fill_samples_share(kind: ColumnKind, shown: VisibleKernel) -> Column:
    report = shown.kernel.report
    return _fill_share(kind, report.instructions.all_samples.sum(axis=1), report.total_samples)


def _fill_share(kind: ColumnKind, samples: npt.NDArray[np.int64], total: int) -> Column:
    if not total:
        return Column(kind=kind, cells=[""] * len(samples), values=np.zeros(len(samples)))

    def show(count: int) -> str:
        if count >= LEAST_SHOWN_RATIO * total:
            return format_percent(count / total)
        return _FEW if count > 0 else ""

    return Column(kind=kind, cells=_show_distinct(samples, show), values=samples / total)


def _show_distinct(values: npt.NDArray[np.int64], show: Callable[[int], str]) -> list[str]:
    """Most rows have the same few numbers, and writing a number takes longer than looking one up."""
    distinct, number = np.unique(values, return_inverse=True)
    shown = [show(value) for value in distinct.tolist()]
    return [shown[index] for index in number.reshape(-1).tolist()]


def _fill_counts(kind: ColumnKind, counts: npt.NDArray[np.int64] | None, rows: int) -> Column:
    if counts is None:
        return Column(kind=kind, cells=[""] * rows, values=np.full(rows, -1.0))
    cells = _show_distinct(counts, lambda count: format_count(count) if count > 0 else "")
    return Column(kind=kind, cells=cells, values=counts.astype(np.float64))


def _count_samples(report: KernelReport) -> npt.NDArray[np.int64]:
    samples: npt.NDArray[np.int64] = report.instructions.all_samples.sum(axis=1)
    return samples


def _count_not_issued(report: KernelReport) -> npt.NDArray[np.int64] | None:
    latency = report.instructions.latency_samples
    return None if latency is None else latency.sum(axis=1)


def _sum_counters(report: KernelReport, *names: str) -> npt.NDArray[np.int64] | None:
    counters = {} if report.code is None else report.code.counters
    found = [np.maximum(counters[name], 0) for name in names if name in counters]
    return sum(found[1:], found[0]) if found else None


def _count_registers(report: KernelReport) -> npt.NDArray[np.int64] | None:
    return None if report.code is None else count_live_registers(report.code).astype(np.int64)


# Columns of counts: name → int64[n], negative where unknown; None where all are
_COUNTS: Mapping[str, Callable[[KernelReport], npt.NDArray[np.int64] | None]] = {
    _SAMPLES.name: _count_samples,
    _NOT_ISSUED.name: _count_not_issued,
    _EXECUTIONS.name: lambda report: report.instructions.executions,
    _SECTORS.name: lambda report: _sum_counters(report, "global_sectors", "local_sectors"),
    _WAVEFRONTS.name: lambda report: _sum_counters(report, "shared_wavefronts"),
    _REGISTERS.name: _count_registers,
}


def _fill_reasons(kind: ColumnKind, shown: VisibleKernel) -> Column:
    report = shown.kernel.report
    columns = report.instructions
    return Column(kind=kind, cells=list_top_reasons(columns, columns.all_samples.sum(axis=1), report.total_samples))


def find_stall_columns(reasons: Sequence[str]) -> npt.NDArray[np.bool_]:
    """bool[k], which reasons are stalls: a warp that issued, or could have, was not."""
    return np.array([describe_stall_reason(reason).is_stall for reason in reasons], dtype=np.bool_)


def list_top_reasons(columns: InstructionColumns, samples: npt.NDArray[np.int64], total: int) -> list[str]:
    """The stall reason of most samples of each instruction; empty where there is none to speak of."""
    if not columns.reasons or not total:
        return [""] * len(columns)
    stalls = columns.all_samples * find_stall_columns(columns.reasons)
    top = stalls.argmax(axis=1)
    is_named = (stalls.max(axis=1) > 0) & (samples >= LEAST_SHOWN_RATIO * total)
    names = [keep_length(name)[:_LONGEST_REASON] for name in columns.reasons] + [""]
    return [names[number] for number in np.where(is_named, top, -1).tolist()]


def _fill_lines(kind: ColumnKind, shown: VisibleKernel) -> Column:
    columns = shown.kernel.report.instructions
    names = dict(_name_other_files(shown))
    places = [
        (f"{names[frame.file]}:{frame.line}" if frame.file in names else str(frame.line)) if frame.line > 0 else ""
        for frame in map(choose_frame, columns.chains)
    ] + [""]
    return Column(kind=kind, cells=[places[number] for number in columns.chain_index.tolist()])


def _name_other_files(shown: VisibleKernel) -> Iterator[tuple[str, str]]:
    """Files whose lines need their names: all but the one the kernel is in, which is where the callers at the end of most chains are."""
    columns = shown.kernel.report.instructions
    files = dict.fromkeys(frame.file for chain in columns.chains for frame in chain)
    home = shown.kernel.body[0] if shown.kernel.body is not None else _find_home(columns)
    for file, name in shorten_paths(files).items():
        if file != home:
            yield file, cut(make_one_line(name), _MOST_PLACE_CELLS - len(":12345"), keeps_end=True)


def _find_home(columns: InstructionColumns) -> str | None:
    known = columns.chain_index[columns.chain_index >= 0]
    counts: dict[str, int] = {}
    for chain, rows in zip(*(column.tolist() for column in np.unique(known, return_counts=True)), strict=True):
        file = columns.chains[chain][-1].file
        counts[file] = counts.get(file, 0) + rows
    return max(counts, key=lambda file: counts[file], default=None)


_FILLERS: Mapping[str, Callable[[ColumnKind, VisibleKernel], Column]] = {
    _SHARE.name: _fill_samples_share,
    _LINE.name: _fill_lines,
    _REASON.name: _fill_reasons,
}
