"""Stalls at the entry of a called function, carried to where it is called.

What a function waits for on entering may have been started by its caller: a load whose result is an argument, or the call itself. Blaming
goes function by function, and follows calls within a section; this follows those from one section to another, one level up.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from gpa_lsp.code.binary.opcodes import Opcode, describe_mnemonic
from gpa_lsp.diagnosis.blame.barriers import SCOREBOARD_COUNT
from gpa_lsp.diagnosis.blame.categories import LONG_SCOREBOARD, SHORT_SCOREBOARD, find_category
from gpa_lsp.diagnosis.blame.edges import NO_RESOURCE, find_lowest_shared, join_edges
from gpa_lsp.diagnosis.blame.model import BlameEdges, Dependency, IssueCounts, Unattributed, UnattributedCause
from gpa_lsp.diagnosis.blame.pending import Pending, find_pending
from gpa_lsp.diagnosis.blame.view import view_function
from gpa_lsp.diagnosis.blame.work import WorkBudget
from gpa_lsp.gpu.arch.sections import ScoreboardKind
from gpa_lsp.kernel.model import FunctionSamples, Kernel

MOST_SITES = 64  # Calls of one function that are looked at: those that issue most often

MOST_CAUSES = 64  # Causes that one stall is divided among: those with the largest shares

_ALL_SCOREBOARDS = (1 << SCOREBOARD_COUNT) - 1
_WAIT, _BRANCH = "wait", "branch_resolving"
_SCOREBOARDS = {LONG_SCOREBOARD: ScoreboardKind.LONG, SHORT_SCOREBOARD: ScoreboardKind.SHORT}


class _Site(NamedTuple):
    """A call."""

    caller: int  # index into the kernel's functions
    instruction: int  # the CALL, as a row of the caller
    issues: float  # how often it issued, in samples


class _Cause(NamedTuple):
    """A cause at or before the calls of a function."""

    site: int  # number of the call among those of the function; causes at one call are waited for together
    caller: int  # function it is in, an index into the kernel's
    row: int  # of that function
    share: float  # of the samples
    cycles: int  # encoded, from its issue to that of the callee's first instruction; -1 when unknown
    instructions: int  # from after it up to and including the callee's first instruction; -1 when unknown
    by_operands: bool = False  # it is waited for until it has read its operands, not for its result


def carry_to_callers(
    kernel: Kernel, edges: BlameEdges, unattributed: Unattributed, issue_counts: IssueCounts
) -> tuple[BlameEdges, Unattributed]:
    """Give stalls in called functions that nothing in them explains to what their callers did.

    * ``branch_resolving`` that no control instruction of the function precedes: the CALLs.
    * ``wait`` that its first instruction was left with: the CALLs, by their issue cost. (There is next to none: 20 of 535,791 samples of
      real reports sit at the first instruction of a routine.)
    * Scoreboards that nothing in the function sets: the instructions that hold them when the CALLs are made.

    The calls of a function share by how often they issued; what is held at one of them shares evenly. What has no cause there either stays as it is.
    Returns both, the samples that found a cause moved to new edges: from the second, and from edges of ``wait`` to themselves.
    """
    carrier = _Carrier(kernel, issue_counts.counts)
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

    def __init__(self, kernel: Kernel, counts: npt.NDArray[np.float64]) -> None:
        self.made: list[tuple[float, ...]] = []
        self._kernel, self._counts = kernel, counts
        self._starts: list[int] = kernel.rows.first_rows.tolist()  # of each function, and the number of rows
        self.sites_of = self._find_sites()
        self._held: dict[int, Mapping[int, tuple[Pending, ...]]] = {}
        self._known: dict[tuple[int, str, int], list[_Cause]] = {}
        self._groups = 0

    def _find_sites(self) -> dict[int, list[_Site]]:
        number_of = {function.name: number for number, function in enumerate(self._kernel.functions)}
        found: dict[int, list[_Site]] = defaultdict(list)
        for caller, function in enumerate(self._kernel.functions):
            for call in function.graph.calls if function.graph is not None else ():
                callee = number_of.get(call.symbol) if call.symbol is not None else None
                if callee is not None and callee != caller:
                    issues = float(self._counts[self._starts[caller] + call.instruction])
                    found[callee].append(_Site(caller, call.instruction, issues))
        return {
            callee: sorted(sites, key=lambda site: (-site.issues, site.caller, site.instruction))[:MOST_SITES]
            for callee, sites in found.items()
        }

    def find_entry_waits(self, edges: BlameEdges) -> npt.NDArray[np.int64]:
        """Edges of ``wait`` that the first instruction of a called function has to itself."""
        if _WAIT not in self._kernel.reasons:
            return np.zeros(0, dtype=np.int64)
        entries = [self._starts[callee] for callee in self.sites_of]
        is_own = (edges.reason == self._kernel.reasons.index(_WAIT)) & (edges.dependency == Dependency.ITSELF)
        return np.flatnonzero(is_own & np.isin(edges.use_row, entries))

    def carry(
        self, columns: BlameEdges | Unattributed, rows: npt.NDArray[np.int32], numbers: npt.NDArray[np.int64]
    ) -> list[int]:
        """Make edges in the place of some edges or losses."""
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
        """What happened at the calls of a function; empty where that does not explain the stall."""
        function, sites = self._kernel.functions[callee], self.sites_of.get(callee)
        if sites is None or function.graph is None or function.control is None:
            return []
        if function.graph.procedure_of_block[function.graph.block_of_instruction[row]] != 0:
            return []
        mask = int(function.control.wait_mask[row]) if reason in _SCOREBOARDS else 0
        key = (callee, reason, mask)
        if key not in self._known:
            found = [(site, self._blame_site(number, site, reason, mask)) for number, site in enumerate(sites)]
            self._known[key] = _share(found)
        return self._known[key]

    def _blame_site(self, number: int, site: _Site, reason: str, mask: int) -> list[_Cause]:
        """The call itself, or what holds a scoreboard of a wait mask that can show as the reason when the call is made."""
        control = self._kernel.functions[site.caller].control
        stall = 1 if control is None else max(int(control.stall_cycles[site.instruction]), 1)
        if reason in (_WAIT, _BRANCH):
            return [_Cause(number, site.caller, site.instruction, 1.0, stall, 1)]
        if site.caller not in self._held:
            self._held[site.caller] = self._find_held(site.caller)
        held = [
            one
            for one in self._held[site.caller].get(site.instruction, ())
            if mask >> one.scoreboard & 1 and self._can_show(site.caller, one.row, reason)
        ]
        causes = []
        for one in held:
            cycles, instructions = one.distance
            distance = (cycles + stall, instructions + 1) if cycles >= 0 else (-1, -1)
            causes.append(
                _Cause(number, site.caller, one.row, 1 / len(held), *distance, one.by_operands and not one.by_result)
            )
        return causes

    def _find_held(self, caller: int) -> Mapping[int, tuple[Pending, ...]]:
        """Instructions that may still hold a scoreboard at each call of a function: what they would wait for if they waited for every one."""
        rows = slice(self._starts[caller], self._starts[caller + 1])
        view = view_function(self._kernel, caller, self._counts[rows])
        if view is None:
            return {}
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

    def _can_show(self, caller: int, row: int, reason: str) -> bool:
        """Whether a wait for an instruction counts under the reason; yes where that is not known."""
        architecture, instructions = self._kernel.architecture, self._kernel.functions[caller].instructions
        if architecture is None or instructions is None:
            return True
        kind = architecture.find_scoreboard(instructions.mnemonics[instructions.mnemonic_index[row]])
        return kind is None or kind is _SCOREBOARDS.get(reason)

    def _add_edge(self, callee: int, use_row: int, reason: int, cause: _Cause, samples: tuple[float, float]) -> None:
        name = self._kernel.reasons[reason]
        dependency = {_WAIT: Dependency.ISSUE, _BRANCH: Dependency.CONTROL}.get(name, Dependency.CALL)
        caller, function = self._kernel.functions[cause.caller], self._kernel.functions[callee]
        into = _measure_from_entry(function, use_row) if cause.cycles >= 0 else None
        is_argument = dependency == Dependency.CALL
        self.made.append(
            (
                self._starts[callee] + use_row,
                self._starts[cause.caller] + cause.row,
                reason,
                samples[0] * cause.share,
                samples[1] * cause.share,
                find_category(_describe(caller, cause.row), dependency, name, waits_for_operands=cause.by_operands),
                dependency,
                _connect(caller, cause.row, function, use_row) if is_argument else NO_RESOURCE,
                self._groups + cause.site,
                -1 if into is None else cause.cycles + into,
                -1 if into is None else cause.instructions + use_row,
            )
        )


def _share(by_site: Iterable[tuple[_Site, Sequence[_Cause]]]) -> list[_Cause]:
    """The causes of several calls, by how often the calls with any issued; one that is behind several calls once."""
    given = [(site, causes) for site, causes in by_site if causes]
    total = sum(site.issues for site, _ in given)
    merged: dict[tuple[int, int], list[_Cause]] = defaultdict(list)
    for site, causes in given:
        weight = site.issues / total if total > 0 else 1 / len(given)
        for cause in causes:
            merged[cause.caller, cause.row].append(cause._replace(share=cause.share * weight))
    every = [
        min(same, key=lambda cause: cause.cycles)._replace(share=sum(cause.share for cause in same))
        for same in merged.values()
    ]
    chosen = sorted(every, key=lambda cause: (-cause.share, cause.caller, cause.row))[:MOST_CAUSES]
    whole = sum(cause.share for cause in chosen)
    return [cause._replace(share=cause.share / whole if whole > 0 else 1 / len(chosen)) for cause in chosen]


def _measure_from_entry(function: FunctionSamples, row: int) -> int | None:
    """Encoded cycles from the first instruction of a function to another one of its first block; None for other blocks."""
    if function.graph is None or function.control is None or function.graph.block_of_instruction[row] != 0:
        return None
    return int(np.maximum(function.control.stall_cycles[:row], 1).sum())


def _describe(function: FunctionSamples, row: int) -> Opcode:
    if function.instructions is None:
        return describe_mnemonic("")
    return describe_mnemonic(function.instructions.mnemonics[function.instructions.mnemonic_index[row]])


def _connect(caller: FunctionSamples, def_row: int, callee: FunctionSamples, use_row: int) -> int:
    """The lowest resource that the one writes and the other reads; a register keeps its number over a call."""
    if caller.instructions is None or callee.instructions is None:
        return NO_RESOURCE
    return find_lowest_shared(caller.instructions.writes.of(def_row), callee.instructions.reads.of(use_row))
