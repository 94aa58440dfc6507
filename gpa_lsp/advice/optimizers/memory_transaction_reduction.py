"""Fewer global memory instructions: wider ones, kept values, constant memory."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from gpa_lsp.advice.blamed_stalls import build_regions, count_samples, find_edges
from gpa_lsp.advice.hint_words import begin_sentence, count_things, join_sentences
from gpa_lsp.advice.matches import EliminationMatch
from gpa_lsp.advice.model import Category, Hotspot, MemoryLevel, Silence, SilenceStage
from gpa_lsp.advice.optimizers import EliminationOptimizer
from gpa_lsp.advice.source_words import describe_place
from gpa_lsp.advice.subject import Subject
from gpa_lsp.binary.opcodes import Access
from gpa_lsp.dataflow.accesses import GLOBAL_SPACES, count_access_bytes, mark_accesses, measure_excess
from gpa_lsp.dataflow.adjacent_accesses import WIDEST_ACCESS_BYTES, AccessRun, find_access_runs
from gpa_lsp.dataflow.repeated_loads import InvariantLoad, find_invariant_loads, find_uniform_loads
from gpa_lsp.rows.scopes import Scope

_THROTTLE = "lg_throttle"
_WAITS = ("long_scoreboard", "drain")
_MOST_SENTENCES = 3
_TYPES = {2: "a 16-bit type", 4: "a 32-bit type", 8: "such as float2 or uint2", 16: "such as float4 or uint4"}
"""What to write for an access of so many bytes."""


class MemoryTransactionReduction(EliminationOptimizer):
    """Stalls before the full queue of global memory instructions, and what those instructions cost that need not be.

    Matched: ``lg_throttle`` blamed on global loads, stores and copies, as published; less the share of it that coalescing would remove, and
    less what accesses of the widest kind would keep (b / 16 of an access of b bytes), unless all threads of a warp load the same. Of k accesses
    side by side that one wider access could make, and of loads whose address their loop does not change, the part that would go counts
    (1 − 1/k; 1 − 1/turns), and the same part of the stalls for their data as far as fewer sectors would be asked for.

    Source: GPA Table II, Memory Transaction Reduction ("match global memory throttling stalls").
    """

    name: ClassVar[str] = "memory_transaction_reduction"
    title: ClassVar[str] = "Fewer memory transactions"
    category: ClassVar[Category] = Category.CODE
    group: ClassVar[str] = "memory traffic"

    def match(self, subject: Subject) -> EliminationMatch | Silence:
        """Find throttled accesses, and accesses that can be merged or dropped."""
        if not subject.rows.has_code:
            return self.silent(SilenceStage.NO_CODE, "the code could not be disassembled")
        accesses = mark_accesses(subject.rows, GLOBAL_SPACES, (Access.LOAD, Access.STORE, Access.COPY))
        if not accesses.any():
            return self.silent(SilenceStage.NOT_MATCHED, "there are no global loads or stores")
        findings = _Findings(subject, accesses)
        edges = find_edges(subject, accesses, (_THROTTLE, *_WAITS))
        weights = findings.weigh(edges)
        matched = count_samples(subject, edges, weights)
        if matched == 0:
            return self.silent(SilenceStage.NOT_MATCHED, self._describe_absence(subject))
        regions = build_regions(subject, edges, weights, write_hint=findings.write_hint, write_note=findings.write_note)
        return EliminationMatch(
            regions=regions,
            hint=findings.write_remedy(regions[0].hotspots[0].def_row),
            caveats=findings.list_caveats(edges, weights),
            reasons=(
                f"{_THROTTLE} blamed on global accesses, without the share that coalescing would remove",
                *findings.list_reasons(),
            ),
            relieves=(MemoryLevel.L1,) if findings.saves_passes(edges, weights) else (),
        )

    def _describe_absence(self, subject: Subject) -> str:
        count = subject.rows.count_reason(_THROTTLE)
        if count:
            return f"the {count:,} samples before the full memory queue ({_THROTTLE}) are explained by other remedies"
        return f"nothing waits before the queue of memory instructions ({_THROTTLE}), and no narrow or repeated access is waited for"


class _Findings:
    """What is known of the accesses of one kernel."""

    def __init__(self, subject: Subject, accesses: npt.NDArray[np.bool_]) -> None:
        self._subject = subject
        self._runs: dict[int, AccessRun] = {row: run for run in find_access_runs(subject.rows) for row in run.rows}
        self._invariant: Mapping[int, InvariantLoad] = find_invariant_loads(subject.rows)
        self._uniform = find_uniform_loads(subject.rows)
        self._widening = np.ones(len(subject.rows))
        for row in np.flatnonzero(accesses & ~self._uniform).tolist():
            self._widening[row] = 1.0 - min(1.0, count_access_bytes(subject.rows.mnemonic(row)) / WIDEST_ACCESS_BYTES)
        sectors, ideal = subject.rows.counter("global_sectors"), subject.rows.counter("global_sectors_ideal")
        self._excess = np.zeros(len(subject.rows))
        if sectors is not None and ideal is not None:
            self._excess = measure_excess(sectors, ideal)

    def weigh(self, edges: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """float64[m]: the part of each blamed pair that would go."""
        every = self._subject.blame.edges
        throttle = self._subject.rows.reason_index(_THROTTLE)
        is_throttled = every.reason[edges] == (-1 if throttle is None else throttle)
        rows = every.def_row[edges]
        merged, kept = self._weigh_rows()
        # Merging neither saves bytes nor waits for them where the narrow accesses ask for no sector twice.
        waits = np.maximum(np.minimum(merged, self._excess), kept)
        throttled = np.where((merged > 0) | (kept > 0), np.maximum(merged, kept), (1.0 - self._excess) * self._widening)
        return np.where(is_throttled, throttled[rows], waits[rows])

    def _weigh_rows(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """float64[n]: the part of each access that merging saves, and that keeping its value saves."""
        merged, kept = np.zeros(len(self._subject.rows)), np.zeros(len(self._subject.rows))
        for row, run in self._runs.items():
            merged[row] = 1.0 - 1.0 / len(run.rows)
        for row, load in self._invariant.items():
            kept[row] = load.removable_ratio
        return merged, kept

    def write_note(self, def_row: int, _use_row: int) -> str:
        """What is wrong with one access."""
        if def_row in self._runs:
            return f"one of {len(self._runs[def_row].rows)} accesses side by side"
        if def_row in self._invariant:
            return "the loop does not change its address"
        return "all threads of a warp load the same" if self._uniform[def_row] else ""

    def write_hint(self, _scope: Scope, hotspots: Sequence[Hotspot]) -> str:
        """What to do with the accesses of a region."""
        return join_sentences((self._write_sentence(hotspot.def_row) for hotspot in hotspots), _MOST_SENTENCES)

    def _write_sentence(self, row: int) -> str:
        if not (row in self._runs or row in self._invariant or self._uniform[row]):
            return ""
        place = begin_sentence(describe_place(self._subject, row))
        if row in self._runs:
            run = self._runs[row]
            first = begin_sentence(describe_place(self._subject, run.rows[0]))
            neighbours = count_things(len(run.rows) - 1, "neighbour")
            what = f"{first} and its {neighbours} of {count_things(run.bytes_each, 'byte')}"
            return f"{what} can be one access of {run.merged_bytes} bytes ({_TYPES[run.merged_bytes]})."
        if row in self._invariant:
            load = self._invariant[row]
            why = "; stores or barriers in the loop forbid it to the compiler" if load.is_kept_by_stores else ""
            return f"{place} has the same address in every turn of its loop: load it once before the loop{why}."
        return f"{place} fetches the same for all threads of a warp: constant memory serves that in one step."

    def write_remedy(self, row: int) -> str:
        """What to do about the access that most samples wait for."""
        if row in self._runs:
            return "Access neighbouring elements of a thread with one wide load or store (float2, float4) instead of one by one."
        if row in self._invariant:
            return "Load what a loop does not change once before it, and keep it in a register."
        if self._uniform[row]:
            return "Keep what all threads read and nobody changes in constant memory, or load it once a block into shared memory."
        return (
            "Have fewer memory instructions: let each thread take several neighbouring elements with one wide access (float2, float4), and "
            "keep values that are needed again in registers or shared memory."
        )

    def list_caveats(self, edges: npt.NDArray[np.int64], weights: npt.NDArray[np.float64]) -> tuple[str, ...]:
        """What cannot be known."""
        rows = set(self._subject.blame.edges.def_row[edges[weights > 0]].tolist())
        caveats = []
        if rows & self._runs.keys():
            caveats.append(
                "A wide access needs an address that is a multiple of its size, and no store to the same place between the narrow ones."
            )
        if rows & self._invariant.keys():
            caveats.append(
                "A value is only kept rightly if no thread changes it meanwhile; `const __restrict__` tells the compiler."
            )
        if rows - self._runs.keys() - self._invariant.keys():
            caveats.append(
                "How many of the other accesses can be saved does not show: all that wider ones could save are counted."
            )
        return tuple(caveats)

    def saves_passes(self, edges: npt.NDArray[np.int64], weights: npt.NDArray[np.float64]) -> bool:
        """Whether most of the gain is passes through L1 saved."""
        merged, kept = self._weigh_rows()
        saves_passes = (np.minimum(merged, self._excess) > 0) | (kept > 0)
        chosen = saves_passes[self._subject.blame.edges.def_row[edges]]
        saved = count_samples(self._subject, edges[chosen], weights[chosen])
        return 2 * saved > count_samples(self._subject, edges, weights)

    def list_reasons(self) -> tuple[str, ...]:
        """How many accesses of each kind there are."""
        counts = (
            (len(self._runs), "narrow accesses that fewer, wider ones could make"),
            (len(self._invariant), "loads whose address their loop does not change"),
            (int(self._uniform.sum()), "loads of one address for all threads of a warp"),
        )
        return tuple(f"{count} {what}" for count, what in counts if count)


OPTIMIZER = MemoryTransactionReduction()
