"""Attribution of a joined kernel's stalls: the chosen blamer on every function, causes in callers, coverage, conservation."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

import gpa_lsp.diagnosis.blame.blamers as catalogue
from gpa_lsp.diagnosis.blame import DEFAULT_BLAMER
from gpa_lsp.diagnosis.blame.barriers import SCOREBOARD_COUNT
from gpa_lsp.diagnosis.blame.blamers import Blamer
from gpa_lsp.diagnosis.blame.categories import DEPENDENCY_REASONS, SCOREBOARD_KINDS, find_category, is_far_memory
from gpa_lsp.diagnosis.blame.edges import NO_RESOURCE, find_lowest_shared, join_edges
from gpa_lsp.diagnosis.blame.issue_counts import check_wait, count_issues, number_blocks, weigh_groups
from gpa_lsp.diagnosis.blame.model import (
    WAIT,
    BlameEdges,
    Dependency,
    IssueCounts,
    KernelBlame,
    SingleDependencyCoverage,
    Unattributed,
    UnattributedCause,
)
from gpa_lsp.diagnosis.blame.pending import Pending, find_pending
from gpa_lsp.diagnosis.blame.view import Distance, FunctionView, WorkBudget, read_latency, view_function
from gpa_lsp.foundation.catalogue import list_members, load_member
from gpa_lsp.foundation.distinct import find_distinct, find_distinct_rows
from gpa_lsp.foundation.errors import ConservationError, GpaError, Problem
from gpa_lsp.foundation.numbers import format_count, format_file_value
from gpa_lsp.kernel.model import FunctionSamples, Kernel

# Blamers look at one function section at a time, and follow calls within it. A function may stall at its entry on what its caller started: a load
# whose result is an argument, or the call itself. Such stalls are carried from a section to its callers, one level up.

MOST_SITES = 64  # Calls of one function that are looked at: those that issue most often

MOST_CAUSES = 64  # Causes that one stall is divided among: those with the largest shares

_ALL_SCOREBOARDS = (1 << SCOREBOARD_COUNT) - 1
_DEPENDENCY_OF_CALL = {
    WAIT: Dependency.ISSUE,
    "branch_resolving": Dependency.CONTROL,
}  # reason → dependency on the CALL


class _Site(NamedTuple):
    """A call."""

    caller: int  # index into the kernel's functions
    instruction: int  # the CALL, as a row of the caller
    issues: float  # how often it issued, in samples


class _Cause(NamedTuple):
    """A cause at or before the calls of a function."""

    site: int  # number of the call among those of the function; causes at one call are one group
    caller: int  # function it is in, an index into the kernel's
    row: int  # instruction of that function
    share: float  # of the samples
    distance: Distance  # to the callee's first instruction
    by_operands: bool = False  # the stall ends when it has read its operands, not when its result is written


def view_functions(kernel: Kernel, issue_counts: IssueCounts) -> list[FunctionView | None]:
    """Views of all functions of a kernel; None for those without instructions."""
    counts = np.split(issue_counts.counts, kernel.rows.first_rows[1:-1])
    return [view_function(kernel, index, counts[index]) for index in range(len(kernel.functions))]


def carry_to_callers(
    kernel: Kernel, views: Sequence[FunctionView | None], edges: BlameEdges, unattributed: Unattributed
) -> tuple[BlameEdges, Unattributed]:
    """Attribute stalls in called functions that nothing in them explains to instructions of their callers.

    * ``branch_resolving`` that no control instruction of the function precedes: the CALLs.
    * ``wait`` that its first instruction was left with: the CALLs, by their issue cost. (There is next to none: 20 of 535,791 samples of
      real reports sit at the first instruction of a routine.)
    * Scoreboards that nothing in the function sets: the instructions that hold them when the CALLs are made.

    The calls of a function share by how often they issued; causes at one of them share evenly. Samples without a cause there stay as they are.
    Returns both, the samples that found a cause moved to new edges: from the second, and from edges of ``wait`` to themselves.
    """
    carrier = _Carrier(kernel, views)
    if not carrier.sites_of:
        return edges, unattributed
    is_lost = unattributed.cause == UnattributedCause.NO_PRODUCER
    moved_edges = carrier.carry(edges, edges.use_row, carrier.find_entry_waits(edges))
    moved_losses = carrier.carry(unattributed, unattributed.row, np.flatnonzero(is_lost))
    if not moved_edges and not moved_losses:
        return edges, unattributed
    kept_edges = edges.select(np.delete(np.arange(len(edges)), moved_edges))
    kept_losses = unattributed.select(np.delete(np.arange(len(unattributed)), moved_losses))
    made = BlameEdges.from_rows(carrier.made).sort()
    return join_edges([(kept_edges, 0), (made, 0)]).sort(), kept_losses


class _Carrier:
    """Finds causes at the calls between the sections of a kernel, and makes the edges.

    Attributes:
        sites_of: called function → its calls, the most frequent first; functions are indexes into the kernel's. Calls through registers, and of
            functions that are not in the profile, are not known.
        made: the edges, by rows of the kernel; groups count from 0.
    """

    def __init__(self, kernel: Kernel, views: Sequence[FunctionView | None]) -> None:
        self.made: list[tuple[float, ...]] = []
        self._kernel = kernel
        self._views = {number: view for number, view in enumerate(views) if view is not None}
        self._starts: list[int] = kernel.rows.first_rows.tolist()  # of each function, and the number of rows
        self.sites_of = self._find_sites()
        self._held: dict[int, Mapping[int, tuple[Pending, ...]]] = {}
        self._known: dict[tuple[int, str, int], list[_Cause]] = {}
        self._groups = 0

    def _find_sites(self) -> dict[int, list[_Site]]:
        number_of = {function.name: number for number, function in enumerate(self._kernel.functions)}
        found: dict[int, list[_Site]] = defaultdict(list)
        for caller, view in self._views.items():
            for call in view.graph.calls:
                callee = number_of.get(call.symbol) if call.symbol is not None else None
                if callee in self._views and callee != caller:
                    found[callee].append(_Site(caller, call.instruction, float(view.issue_counts[call.instruction])))
        return {
            callee: sorted(sites, key=lambda site: (-site.issues, site.caller, site.instruction))[:MOST_SITES]
            for callee, sites in found.items()
        }

    def find_entry_waits(self, edges: BlameEdges) -> npt.NDArray[np.int64]:
        """Edges of ``wait`` that the first instruction of a called function has to itself."""
        if WAIT not in self._kernel.reasons:
            return np.zeros(0, dtype=np.int64)
        entries = [self._starts[callee] for callee in self.sites_of]
        is_own = (edges.reason == self._kernel.reasons.index(WAIT)) & (edges.dependency == Dependency.ITSELF)
        return np.flatnonzero(is_own & np.isin(edges.use_row, entries))

    def carry(
        self, columns: BlameEdges | Unattributed, rows: npt.NDArray[np.int32], numbers: npt.NDArray[np.int64]
    ) -> list[int]:
        """Make edges in the place of some edges or losses; returns the numbers of those that found a cause."""
        functions = np.searchsorted(self._starts, rows[numbers], side="right") - 1
        moved = []
        for number, callee in zip(numbers.tolist(), functions.tolist(), strict=True):
            row, reason = int(rows[number]) - self._starts[callee], int(columns.reason[number])
            causes = self._find_causes(callee, row, self._kernel.reasons[reason])
            if not causes:
                continue
            moved.append(number)
            latency = 0.0 if columns.latency_samples is None else float(columns.latency_samples[number])
            for cause in causes:
                self._add_edge(callee, row, reason, cause, (float(columns.all_samples[number]), latency))
            self._groups += 1 + max(cause.site for cause in causes)
        return moved

    def _find_causes(self, callee: int, row: int, reason: str) -> list[_Cause]:
        """Find the causes of a stall at the calls of its function; empty where they do not explain it."""
        if callee not in self.sites_of:
            return []
        view = self._views[callee]
        if view.graph.procedure_of_block[view.blocks.block_of[row]] != 0:
            return []
        mask = int(view.control.wait_mask[row]) if reason in SCOREBOARD_KINDS else 0
        key = (callee, reason, mask)
        if key not in self._known:
            found = [
                (site, self._blame_site(number, site, reason, mask))
                for number, site in enumerate(self.sites_of[callee])
            ]
            self._known[key] = _share(found)
        return self._known[key]

    def _blame_site(self, number: int, site: _Site, reason: str, mask: int) -> list[_Cause]:
        """The call itself, or what holds a scoreboard of a wait mask that can show as the reason when the call is made."""
        view = self._views[site.caller]
        to_callee = Distance(int(view.stall_cycles[site.instruction]), 1)
        if reason in _DEPENDENCY_OF_CALL:
            return [_Cause(number, site.caller, site.instruction, 1.0, to_callee)]
        if site.caller not in self._held:
            self._held[site.caller] = self._find_held(site.caller, view)
        held = [
            one
            for one in self._held[site.caller].get(site.instruction, ())
            if mask >> one.scoreboard & 1 and view.scoreboard(one.row) in (None, SCOREBOARD_KINDS.get(reason))
        ]
        return [
            _Cause(
                number,
                site.caller,
                one.row,
                1 / len(held),
                one.distance.then(to_callee),
                one.by_operands and not one.by_result,
            )
            for one in held
        ]

    def _find_held(self, caller: int, view: FunctionView) -> Mapping[int, tuple[Pending, ...]]:
        """Row of each CALL of a function → instructions that may still hold a scoreboard there: what a wait for all of them would name."""
        is_call = np.zeros(len(view), dtype=np.bool_)
        is_call[[site.instruction for sites in self.sites_of.values() for site in sites if site.caller == caller]] = (
            True
        )
        own_mask = view.control.wait_mask
        waiting = replace(view.control, wait_mask=np.where(is_call, _ALL_SCOREBOARDS, own_mask).astype(np.uint8))
        held = find_pending(replace(view, control=waiting), is_call, WorkBudget.for_function(len(view)))
        return {
            row: tuple(one for one in pending if not own_mask[row] >> one.scoreboard & 1)
            for row, pending in held.at_masks.items()
        }

    def _add_edge(self, callee: int, use_row: int, reason: int, cause: _Cause, samples: tuple[float, float]) -> None:
        name = self._kernel.reasons[reason]
        dependency = _DEPENDENCY_OF_CALL.get(name, Dependency.CALL)
        caller, view = self._views[cause.caller], self._views[callee]
        opcode = caller.opcode(cause.row)
        # A register keeps its number over a call.
        shared = find_lowest_shared(caller.flow.writes_of[cause.row], view.flow.reads_of[use_row])
        is_in_entry_block = view.blocks.block_of[use_row] == 0
        self.made.append(
            (
                self._starts[callee] + use_row,
                self._starts[cause.caller] + cause.row,
                reason,
                samples[0] * cause.share,
                samples[1] * cause.share,
                find_category(opcode, dependency, name, waits_for_operands=cause.by_operands),
                dependency,
                shared if dependency == Dependency.CALL else NO_RESOURCE,
                self._groups + cause.site,
                *(cause.distance.then(view.blocks.from_start(use_row)) if is_in_entry_block else (-1, -1)),
            )
        )


def _share(by_site: Iterable[tuple[_Site, Sequence[_Cause]]]) -> list[_Cause]:
    """Join the causes at several calls, weighted by issues of the calls that have any; an instruction behind several calls is one cause."""
    given = [(site, causes) for site, causes in by_site if causes]
    total = sum(site.issues for site, _ in given)
    merged: dict[tuple[int, int], list[_Cause]] = defaultdict(list)
    for site, causes in given:
        weight = site.issues / total if total > 0 else 1 / len(given)
        for cause in causes:
            merged[cause.caller, cause.row].append(cause._replace(share=cause.share * weight))
    every = [
        min(same, key=lambda cause: cause.distance.cycles)._replace(share=sum(cause.share for cause in same))
        for same in merged.values()
    ]
    chosen = sorted(every, key=lambda cause: (-cause.share, cause.caller, cause.row))[:MOST_CAUSES]
    whole = sum(cause.share for cause in chosen)
    return [cause._replace(share=cause.share / whole if whole > 0 else 1 / len(chosen)) for cause in chosen]


# Shares are fractions, so sums are compared up to this part of the samples (of one sample, where there are fewer)
TOLERANCE = 1e-6

_KINDS = {"all_samples": "samples", "latency_samples": "not-issued samples"}  # Words for the columns


@cache
def find_blamer(name: str) -> Blamer:
    """A blamer by its name; cached, since listing a folder takes longer than some kernels.

    Raises:
        GpaError: there is none of that name; the message lists those there are.
    """
    known = list_members(catalogue)
    if name not in known:
        raise GpaError(f"no way of attribution is named {name!r}; known are {', '.join(known)}")
    return load_member(catalogue, name, "BLAMER", Blamer)


def blame_kernel(kernel: Kernel, blamer: str = DEFAULT_BLAMER) -> KernelBlame:
    """Move the samples of a kernel to the instructions that cause them.

    Raises:
        GpaError: no blamer has that name.
        ConservationError: samples were lost or invented, a bug of ours.
    """
    method = find_blamer(blamer)
    counts = method.count_issues(kernel)
    views = view_functions(kernel, counts)
    parts = []
    losses = []
    before, after = [], []
    problems: list[Problem] = []
    for function, view, first_row in zip(kernel.functions, views, kernel.rows.first_rows.tolist(), strict=False):
        if view is None:
            lost = _lose_all(function)
        else:
            budget = WorkBudget.for_function(len(view))
            found = method.blame(view, budget)
            parts.append((found.edges, first_row))
            lost = found.unattributed
            before.append((found.before, first_row))
            after.append((found.after, first_row))
            if budget.is_exhausted:
                problems.append(_note_work_bound(kernel, function))
        losses.append(replace(lost, row=lost.row + first_row))
    joined = join_edges(parts)
    joined = joined.select(joined.all_samples > 0)  # a candidate that never executed has a share of nothing
    edges, unattributed = joined, Unattributed.join(losses)
    if method.follows_calls:
        edges, unattributed = carry_to_callers(kernel, views, edges, unattributed)
    if not kernel.is_split:
        edges, unattributed = replace(edges, latency_samples=None), replace(unattributed, latency_samples=None)
    blame = KernelBlame(
        blamer=method.name,
        edges=edges,
        unattributed=unattributed,
        issue_counts=counts,
        coverage=measure_coverage(
            kernel,
            edges,
            unattributed,
            before=join_pairs(before),
            after=join_pairs(after),
            issue_counts=counts.counts,
        ),
        wait_check=check_wait(kernel, counts if method.count_issues is count_issues else count_issues(kernel)),
        problems=tuple(problems),
    )
    check_conservation(kernel, blame)
    return blame


def _lose_all(function: FunctionSamples) -> Unattributed:
    """All samples of a function without code."""
    rows, reasons = np.nonzero(function.all_samples)
    cause = UnattributedCause.NO_CODE if function.function is None else UnattributedCause.NO_INSTRUCTIONS
    return Unattributed.from_columns(
        row=rows,
        reason=reasons,
        cause=np.full(len(rows), cause),
        all_samples=function.all_samples[rows, reasons],
        latency_samples=read_latency(function)[rows, reasons],
    )


def _note_work_bound(kernel: Kernel, function: FunctionSamples) -> Problem:
    return Problem.warning(
        f"the control flow of {function.name} is too tangled to follow everywhere; some of its stalls have no cause",
        "nothing is lost: they are counted as unattributed",
        path=kernel.profile_path,
        kernel=kernel.mangled_name,
    )


def check_conservation(kernel: Kernel, blame: KernelBlame) -> None:
    """Conservation: for every row and reason, samples on edges and unattributed ones are those that were taken there.

    Raises:
        ConservationError: samples were lost or invented at some row, an edge has more latency samples than samples, or names a row or reason
            that is not there.
    """
    edges, lost, reasons = blame.edges, blame.unattributed, len(kernel.reasons)
    _check_numbers(kernel, edges, lost)
    rows = np.concatenate([edges.use_row, lost.row]).astype(np.int64)
    cells = rows * reasons + np.concatenate([edges.reason, lost.reason])
    for kind in ("all_samples",) if _is_unsplit(kernel, blame) else tuple(_KINDS):
        sampled = getattr(kernel.rows, kind).ravel()
        given = np.concatenate([getattr(edges, kind), getattr(lost, kind)])
        found = np.bincount(cells, weights=given, minlength=len(sampled))
        wrong = np.flatnonzero(~(np.abs(found - sampled) <= TOLERANCE * np.maximum(sampled, 1.0)))
        if len(wrong):
            row, reason = divmod(int(wrong[0]), reasons)
            raise ConservationError(
                f"{kernel.mangled_name}: {format_count(sampled[wrong[0]])} {_KINDS[kind]} of {kernel.reasons[reason]} at"
                f" row {row} became {format_file_value(found[wrong[0]])}, and {len(wrong) - 1} other sums are wrong too"
            )


def _is_unsplit(kernel: Kernel, blame: KernelBlame) -> bool:
    """Whether latency samples are unknown; they are so everywhere, or nowhere.

    Raises:
        ConservationError: they are unknown in one place and counted in another.
    """
    unknown = [function.latency_samples is None for function in kernel.functions]
    unknown += [blame.edges.latency_samples is None, blame.unattributed.latency_samples is None]
    if any(unknown) and not all(unknown):
        raise ConservationError(f"{kernel.mangled_name}: not-issued samples that were never counted were attributed")
    return any(unknown)


def _check_numbers(kernel: Kernel, edges: BlameEdges, unattributed: Unattributed) -> None:
    """Every number names something, and shares are neither negative nor unordered."""
    named: tuple[tuple[str, npt.NDArray[Any], int], ...] = (
        ("use", edges.use_row, len(kernel.rows)),
        ("def", edges.def_row, len(kernel.rows)),
        ("reason", edges.reason, len(kernel.reasons)),
        ("unattributed row", unattributed.row, len(kernel.rows)),
        ("unattributed reason", unattributed.reason, len(kernel.reasons)),
    )
    for name, column, limit in named:
        if len(column) and (int(column.min()) < 0 or int(column.max()) >= limit):
            raise ConservationError(f"{kernel.mangled_name}: a {name} outside 0..{limit - 1}")
    for part in (edges, unattributed):
        latency = part.latency_samples
        if latency is None:
            continue
        is_ordered = (latency >= 0) & (latency <= part.all_samples + TOLERANCE * np.maximum(part.all_samples, 1.0))
        if not is_ordered.all():
            first = int(np.flatnonzero(~is_ordered)[0])
            raise ConservationError(
                f"{kernel.mangled_name}: {format_file_value(latency[first])} not-issued samples of {format_file_value(part.all_samples[first])}"
            )


_Pairs = npt.NDArray[np.int64]


def join_pairs(parts: Iterable[tuple[_Pairs, int]]) -> _Pairs:
    """int64[m, 2], unique (use, def) rows of a kernel, from those of its functions, each with the function's first row."""
    return find_distinct_rows(np.concatenate([np.zeros((0, 2), np.int64), *(pairs + first for pairs, first in parts)]))


def measure_coverage(
    kernel: Kernel,
    edges: BlameEdges,
    unattributed: Unattributed,
    *,
    before: _Pairs,
    after: _Pairs,
    issue_counts: npt.NDArray[np.float64],
) -> SingleDependencyCoverage:
    """Measure a blamer's coverage of one kernel: how far stalls have one cause each, so that nothing had to be divided.

    Source: GPA section VI-C and Figure 7. What makes a node single is defined by the published code: at most one incoming edge from a memory
    instruction other than of shared memory, and at most one from any other, because those two are different dependencies. An instruction that was
    not sampled but defines what a sampled one uses is a node, too, without edges into it.

    The share of samples with one *group* of causes is ours. An instruction that can wait for several groups counts for as many of its executions as
    have the most frequent one alone, even where causes coincide: what was loaded in front of a loop takes part in its first iteration only.

    Args:
        unattributed: of the whole kernel; with ``edges`` it holds all samples.
        before, after: int64[m, 2], unique (use, def) rows of the dependency graph before and after pruning.
        issue_counts: float64[n], how often each row of the kernel issued.
    """
    is_node = np.asarray(kernel.rows.all_samples.any(axis=1), dtype=np.bool_)
    is_node[before.ravel()] = True
    is_memory = kernel.rows.mark_by_opcode(is_far_memory)
    nodes = int(is_node.sum())
    explained, waiting = _count_explained(kernel, edges, unattributed)
    grouped, divisible = _count_grouped(kernel, edges, unattributed, issue_counts)
    return SingleDependencyCoverage(
        before_ratio=_divide(nodes - _count_multiple(before, is_memory), nodes),
        after_ratio=_divide(nodes - _count_multiple(after, is_memory), nodes),
        nodes=nodes,
        group_ratio=_divide(grouped, divisible),
        group_samples=round(divisible),
        explained_ratio=_divide(explained, waiting),
    )


def _divide(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _count_multiple(pairs: _Pairs, is_memory: npt.NDArray[np.bool_]) -> int:
    """Nodes with several sources of one class."""
    keys, counts = np.unique(2 * pairs[:, 0] + is_memory[pairs[:, 1]], return_counts=True)
    return len(find_distinct(keys[counts > 1] // 2))


def _sum_samples(kernel: Kernel, columns: BlameEdges | Unattributed, reasons: Collection[str]) -> float:
    return float(columns.all_samples[_select(kernel, columns, reasons)].sum())


def _select(kernel: Kernel, columns: BlameEdges | Unattributed, reasons: Collection[str]) -> npt.NDArray[np.bool_]:
    is_chosen = np.array([reason in reasons for reason in kernel.reasons], dtype=np.bool_)
    return is_chosen[columns.reason]


def _count_explained(kernel: Kernel, edges: BlameEdges, unattributed: Unattributed) -> tuple[float, float]:
    """Scoreboard samples with a cause, and all of them. Staying with the instruction that waited explains nothing."""
    is_waiting = _select(kernel, edges, SCOREBOARD_KINDS)
    explained = float(edges.all_samples[is_waiting & (edges.dependency != Dependency.ITSELF)].sum())
    total = _sum_samples(kernel, edges, SCOREBOARD_KINDS) + _sum_samples(kernel, unattributed, SCOREBOARD_KINDS)
    return explained, total


def _count_grouped(
    kernel: Kernel, edges: BlameEdges, unattributed: Unattributed, issue_counts: npt.NDArray[np.float64]
) -> tuple[float, float]:
    """Samples of a use and reason with one group of causes, and all of them; those without any cause have none."""
    chosen = np.flatnonzero(_select(kernel, edges, DEPENDENCY_REASONS))
    samples = edges.all_samples[chosen]
    keys = edges.use_row[chosen].astype(np.int64) * max(len(kernel.reasons), 1) + edges.reason[chosen]
    uses, use_of = np.unique(keys, return_inverse=True)
    distinct = find_distinct_rows(np.stack([use_of, edges.group[chosen]], axis=1))
    alone_ratio = np.ones(len(uses))
    several = np.flatnonzero(np.bincount(distinct[:, 0], minlength=len(uses)) > 1)
    if len(several):
        block = number_blocks(kernel)
        for use in several.tolist():
            alone_ratio[use] = _find_alone(edges, chosen[use_of == use], block, issue_counts)
    total = float(samples.sum()) + _sum_samples(kernel, unattributed, DEPENDENCY_REASONS)
    return float((samples * alone_ratio[use_of]).sum()), total


def _find_alone(
    edges: BlameEdges, rows: _Pairs, block: npt.NDArray[np.int64], issue_counts: npt.NDArray[np.float64]
) -> float:
    """The least share of a wait with several groups of causes (the edges ``rows``) that has its most frequent group alone."""
    weights = weigh_groups(
        edges.group[rows].tolist(),
        block[edges.def_row[rows]].tolist(),
        issue_counts[edges.def_row[rows]].tolist(),
        float(issue_counts[edges.use_row[rows[0]]]),
    )
    return max(0.0, 2 * max(weights.values()) - sum(weights.values()))
