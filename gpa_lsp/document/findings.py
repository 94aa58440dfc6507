"""Places of a report that are worth a reader's attention.

A *finding* is one hot line of one kernel, or one hot function of code without lines. Every view that lists findings (terminal, SARIF, GitHub)
shows the same ones.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.foundation.figures import Share
from gpa_lsp.foundation.locations import InlineChain, SourceLine
from gpa_lsp.foundation.ownership import find_represented
from gpa_lsp.kernel.names import demangle, shorten_distinctly, shorten_name
from gpa_lsp.profile.stall_reasons import describe_stall_reason
from gpa_lsp.report.callers import find_library_callers
from gpa_lsp.report.changes import ReasonCounts
from gpa_lsp.report.model import CodeFinding, InstructionColumns, KernelReport, LineRow, Report

# Lines below this share of their kernel are not worth a finding; a finding's own limit, not a fact about GPUs
DEFAULT_MIN_SHARE_RATIO = 0.05

# A reason is named when it has at least this share of a finding's samples (the first one always)
_MIN_REASON_RATIO = 0.15

_MAX_REASONS = 3


ReadLine = Callable[[KernelReport, str, int], str | None]


class FindingReason(Struct, frozen=True, kw_only=True):
    """A stall reason of a finding."""

    name: str  # Nsight's spelling
    samples: int  # with this reason
    ratio: float  # of the finding's samples


class HotInstruction(Struct, frozen=True, kw_only=True):
    """The instruction with most samples at a place."""

    function: str  # mangled name of its section
    pc_offset: int  # bytes from the section's start
    text: str  # disassembly; empty where there is none
    samples: int  # its samples
    chain: InlineChain | None  # its inline chain, innermost first; None without a line


class Finding(Struct, frozen=True, kw_only=True):
    """A hot place of a kernel."""

    kernel: KernelReport  # the kernel; its embedded sources and profile help to show the place
    kernel_name: str  # short, and different for different kernels of the report
    place: SourceLine | None  # the line as compiled; None for a function without lines
    function: str  # mangled name of the function whose body holds the line, or of the function without lines; empty when unknown
    function_name: str  # short readable name of it; empty when unknown
    share: Share  # inclusive samples in the kernel's samples
    self_samples: int  # of the line's own instructions
    latency_samples: int | None  # of the inclusive samples, those without issue; None when unknown
    called_samples: float  # estimate for functions called from here, not contained in the share
    by_reason: ReasonCounts  # inclusive samples per stall reason
    # the dominating stall reasons, most samples first; empty when only issuing was sampled
    reasons: tuple[FindingReason, ...]
    hottest: HotInstruction | None  # None when no instruction of the place itself has samples
    # the user's line that calls the library's at the place, estimated; None where the line table names it, or it is not known
    caller: SourceLine | None = None
    # lines inlined here that hold exactly the same samples, outermost first; they get no finding of their own
    same_samples: tuple[SourceLine, ...] = ()

    @property
    def profile_path(self) -> Path | None:
        """The profile it comes from."""
        return self.kernel.profile_path

    @property
    def called_ratio(self) -> float:
        """Estimated share of the functions called from here in the kernel's samples."""
        return self.called_samples / self.share.whole_samples if self.share.whole_samples else 0.0


def find_findings(
    report: Report,
    min_share_ratio: float = DEFAULT_MIN_SHARE_RATIO,
    read_line: ReadLine = lambda kernel, file, line: None,
) -> tuple[Finding, ...]:
    """The findings of a report: kernels in the report's order, within a kernel the place with most inclusive samples first.

    Args:
        report: where to look.
        min_share_ratio: least share of the kernel's samples, inlined and called code included; 0 to 1.
        read_line: the text of a line of a file as compiled, 1-based; None where it is not known.
    """
    names = name_kernels(report.kernels)
    return tuple(
        finding
        for kernel in report.kernels
        for finding in _find_in_kernel(kernel, names[kernel.name], min_share_ratio, read_line)
    )


def list_code_findings(report: Report) -> tuple[tuple[KernelReport, CodeFinding], ...]:
    """Static findings of all kernels, each with its kernel, in the report's order."""
    return tuple((kernel, finding) for kernel in report.kernels for finding in kernel.code_findings or ())


def name_kernels(kernels: Iterable[KernelReport]) -> Mapping[str, str]:
    """Readable name → short name, different for different kernels; a library's kernel is marked as one."""
    every = list(kernels)
    names = shorten_distinctly(kernel.name for kernel in every)
    return {kernel.name: kernel.mark(names[kernel.name]) for kernel in every}


def choose_reasons(counts: ReasonCounts) -> tuple[FindingReason, ...]:
    """The stall reasons that dominate some samples; issuing is no stall and is left out.

    Args:
        counts: samples per reason.
    """
    total = sum(count.all_samples for count in counts.values())
    stalls = sorted(
        (
            FindingReason(name=name, samples=count.all_samples, ratio=count.all_samples / total)
            for name, count in counts.items()
            if count.all_samples and describe_stall_reason(name).is_stall
        ),
        key=lambda reason: (-reason.samples, reason.name),
    )
    return tuple(
        reason
        for position, reason in enumerate(stalls[:_MAX_REASONS])
        if position == 0 or reason.ratio >= _MIN_REASON_RATIO
    )


def pick_instruction(columns: InstructionColumns, index: int) -> HotInstruction:
    """One row of the columns as a :class:`HotInstruction`."""
    chain = int(columns.chain_index[index])
    return HotInstruction(
        function=columns.functions[columns.function_index[index]],
        pc_offset=int(columns.pc_offsets[index]),
        text=columns.texts[index],
        samples=int(columns.all_samples[index].sum()),
        chain=columns.chains[chain] if chain >= 0 else None,
    )


def _find_in_kernel(
    kernel: KernelReport, kernel_name: str, min_share_ratio: float, read_line: ReadLine
) -> list[Finding]:
    total = kernel.total_samples
    if total == 0:
        return []
    least = max(min_share_ratio * total, 1)
    rows = [row for row in kernel.lines if row.inclusive_samples + row.called_samples >= least]
    rows.sort(key=lambda row: -(row.inclusive_samples + row.called_samples))
    if not rows:
        return []
    index = _SampleIndex(kernel.instructions)
    rows = [row for row in rows if row.source_line not in index.represented]
    callers = find_library_callers(kernel, lambda file, line: read_line(kernel, file, line))
    return [_make_finding(kernel, kernel_name, group, index, callers) for group in _group_rows(rows, index)]


def _group_rows(rows: Sequence[LineRow], index: "_SampleIndex") -> list[list[LineRow]]:
    """Rows grouped by identical samples, outermost first: a chain of wrappers becomes one finding."""
    groups: dict[object, list[LineRow]] = {}
    for row in rows:
        place = row.source_line
        chains = index.chains_of.get(place, ()) if place is not None else ()
        alike: object = (chains, round(row.called_samples)) if chains else (place, row.function)
        groups.setdefault(alike, []).append(row)
    for group in groups.values():
        group.sort(key=index.measure_depth, reverse=True)
    return list(groups.values())


def _make_finding(
    kernel: KernelReport,
    kernel_name: str,
    group: Sequence[LineRow],
    index: "_SampleIndex",
    callers: Mapping[SourceLine, SourceLine],
) -> Finding:
    row = group[0]
    return Finding(
        kernel=kernel,
        kernel_name=kernel_name,
        place=row.source_line,
        function=row.function,
        function_name=shorten_name(demangle(row.function)),
        share=kernel.share_of(row.inclusive_samples),
        self_samples=row.samples,
        latency_samples=row.inclusive_latency_samples,
        called_samples=row.called_samples,
        by_reason=row.inclusive_by_reason,
        reasons=choose_reasons(row.inclusive_by_reason),
        hottest=index.find_hottest(row),
        caller=None if row.source_line is None else callers.get(row.source_line),
        same_samples=tuple(place for other in group[1:] if (place := other.source_line) is not None),
    )


class _SampleIndex:
    """Index of a kernel's samples by place and inline chain.

    Attributes:
        chains_of: place → numbers of the sampled inline chains that go through it, ascending.
    """

    def __init__(self, columns: InstructionColumns) -> None:
        self._columns = columns
        self._samples: npt.NDArray[np.int64] = columns.all_samples.sum(axis=1)
        self._hottest_of_chain: dict[int, int] = {}
        for index in np.flatnonzero(self._samples).tolist():
            chain = int(columns.chain_index[index])
            best = self._hottest_of_chain.get(chain)
            if best is None or self._samples[index] > self._samples[best]:
                self._hottest_of_chain[chain] = index
        chains_of: dict[SourceLine, list[int]] = {}
        for chain in sorted(number for number in self._hottest_of_chain if number >= 0):
            for place in dict.fromkeys(frame.source_line for frame in columns.chains[chain]):
                chains_of.setdefault(place, []).append(chain)
        self.chains_of = {place: tuple(chains) for place, chains in chains_of.items()}
        self.represented = find_represented(columns.chains[number] for number in self._hottest_of_chain if number >= 0)

    def find_hottest(self, row: LineRow) -> HotInstruction | None:
        """The instruction with most samples of a row; the first of several."""
        columns, place = self._columns, row.source_line
        if place is not None:
            hot = [self._hottest_of_chain[chain] for chain in self.chains_of.get(place, ())]
        else:
            inside = (columns.chain_index < 0) & (columns.function_index == _index_of(columns.functions, row.function))
            hot = np.flatnonzero(inside & (self._samples > 0)).tolist()
        if not hot:
            return None
        return pick_instruction(columns, max(hot, key=lambda index: (self._samples[index], -index)))

    def measure_depth(self, row: LineRow) -> int:
        """Level of a row's line in its inline chain, 0 innermost; 0 for code that is not inlined."""
        place = row.source_line
        chains = self.chains_of.get(place, ()) if place is not None else ()
        if not chains:
            return 0
        return max(level for level, frame in enumerate(self._columns.chains[chains[0]]) if frame.source_line == place)


def _index_of(names: Sequence[str], name: str) -> int:
    return names.index(name) if name in names else -1
