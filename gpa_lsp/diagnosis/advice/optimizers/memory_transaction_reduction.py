"""Fewer global memory instructions: wider ones, kept values, constant memory."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.opcodes import Access
from gpa_lsp.diagnosis.advice.blamed_stalls import (
    build_regions,
    count_samples,
    describe_causes,
    find_edges,
    mark_reasons,
)
from gpa_lsp.diagnosis.advice.matches import EliminationMatch
from gpa_lsp.diagnosis.advice.model import Hotspot
from gpa_lsp.diagnosis.advice.naming import WIDE_TYPES, describe_place, name_code
from gpa_lsp.diagnosis.advice.optimizers import Found, Optimizer
from gpa_lsp.diagnosis.advice.work_left import count_work_left
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import NOTHING, Code, Sentence, capitalize, count, list_of, say
from gpa_lsp.kernel.dataflow.accesses import (
    GLOBAL_SPACES,
    WIDEST_ACCESS_BYTES,
    AccessRun,
    InvariantLoad,
    count_access_bytes,
    find_access_runs,
    find_invariant_loads,
    find_uniform_loads,
    fits_constant_memory,
    mark_accesses,
    measure_excess,
)
from gpa_lsp.kernel.dataflow.gathered_accesses import find_block_wide_loads
from gpa_lsp.kernel.scopes import Scope

_THROTTLE = "lg_throttle"
_WAITS = ("long_scoreboard", "drain")
_VECTORS = list_of(map(name_code, ("float2", "float4")), last="or")


def match(subject: Subject) -> Found:
    """Stalls before the full queue of global memory instructions, and what those instructions cost that need not be.

    Matched: ``lg_throttle`` blamed on global loads, stores and copies, as published; less the share of it that coalescing would remove, and
    less what accesses of the widest kind would keep (b / 16 of an access of b bytes), unless all threads of a warp load the same and constant
    memory has room for it: shared memory takes as many requests. Of k accesses
    side by side that one wider access could make, and of loads whose address their loop does not change, the part that would go counts
    (1 − 1/k; 1 − 1/turns), and the same part of the stalls for their data as far as fewer sectors would be asked for.

    Source: GPA Table II, Memory Transaction Reduction ("match global memory throttling stalls").
    """
    accesses = mark_accesses(subject.rows, GLOBAL_SPACES, (Access.LOAD, Access.STORE, Access.COPY))
    if not accesses.any():
        return say("the kernel has no global loads or stores")
    findings = _Findings(subject, accesses)
    edges = find_edges(subject, accesses, (_THROTTLE, *_WAITS))
    weights = findings.weigh(edges)
    matched = count_samples(subject, edges, weights)
    if matched == 0:
        return _describe_absence(subject)
    regions = build_regions(subject, edges, weights, write_hint=findings.write_hint, write_note=findings.write_note)
    return EliminationMatch(
        regions=regions,
        hint=findings.write_remedy(findings.choose_row(regions[0].hotspots[0].def_row)),
        caveats=findings.list_caveats(edges, weights),
        reasons=(
            say("{reason} of global accesses, without the part that coalescing would remove", reason=_THROTTLE),
            *findings.list_reasons(),
        ),
        work=findings.count_work_left(),
        least=findings.count_work_left(constants=True),
    )


def _describe_absence(subject: Subject) -> Sentence:
    throttled = subject.rows.count_reason(_THROTTLE)
    if throttled:
        samples = count(throttled, "sample")
        return say(
            "other suggestions cover the {samples} on a full memory queue ({reason})",
            samples=samples,
            reason=_THROTTLE,
        )
    return say("no warp is stalled on a full memory queue ({reason}) or a narrow or repeated access", reason=_THROTTLE)


class _Findings:
    """Facts about the accesses of one kernel."""

    def __init__(self, subject: Subject, accesses: npt.NDArray[np.bool_]) -> None:
        self._subject = subject
        self._runs: dict[int, AccessRun] = {row: run for run in find_access_runs(subject.rows) for row in run.rows}
        self._invariant: Mapping[int, InvariantLoad] = find_invariant_loads(subject.rows)
        self._uniform = find_uniform_loads(subject.rows)
        self._fits_constant = {
            row for row in np.flatnonzero(self._uniform).tolist() if fits_constant_memory(subject.rows, row)
        }
        self._weights = self._find_weights()
        self._widening = np.ones(len(subject.rows))
        for row in np.flatnonzero(accesses).tolist():
            if row in self._fits_constant:
                continue  # constant memory has no queue
            self._widening[row] = 1.0 - min(1.0, count_access_bytes(subject.rows.mnemonic(row)) / WIDEST_ACCESS_BYTES)
        sectors, ideal = subject.rows.counter("global_sectors"), subject.rows.counter("global_sectors_ideal")
        self._excess = np.zeros(len(subject.rows))
        if sectors is not None and ideal is not None:
            self._excess = measure_excess(sectors, ideal)

    def _find_weights(self) -> Mapping[int, float]:
        """Row → the part that wide reads of a copy in shared memory save, of what all threads of a block read alike, one value after the other."""
        rows, scopes = self._subject.rows, self._subject.scopes
        groups: dict[tuple[int, int], list[int]] = {}
        for row in np.flatnonzero(find_block_wide_loads(rows)).tolist():
            if row not in self._invariant:
                groups.setdefault((int(scopes.innermost[row]), int(rows.executions[row])), []).append(row)
        return {
            row: 1 - 1 / min(len(group), WIDEST_ACCESS_BYTES / count_access_bytes(rows.mnemonic(row)))
            for group in groups.values()
            for row in group
            if len(group) > 1 and count_access_bytes(rows.mnemonic(row)) < WIDEST_ACCESS_BYTES
        }

    def weigh(self, edges: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """float64[m]: the part of each blamed pair that would go."""
        is_throttled = mark_reasons(self._subject, (_THROTTLE,))[edges]
        rows = self._subject.edges.def_row[edges]
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
        for row, part in self._weights.items():
            merged[row] = max(merged[row], part)
        for row, load in self._invariant.items():
            kept[row] = load.removable_ratio
        return merged, kept

    def write_note(self, def_row: int, _use_row: int) -> Sentence:
        """Name the fault of one access."""
        if def_row in self._weights:
            return say("all threads of a block load the same")
        if def_row in self._runs:
            return say("one of {accesses}", accesses=count(len(self._runs[def_row].rows), "adjacent access"))
        if def_row in self._invariant:
            return say("its address is loop-invariant")
        return say("all threads of a warp load the same") if self._uniform[def_row] else NOTHING

    def write_hint(self, _scope: Scope, hotspots: Sequence[Hotspot]) -> Sentence:
        """Write the remedy for the accesses of a region."""
        return describe_causes(hotspots, self._write_sentence)

    def _write_sentence(self, row: int) -> Sentence:
        if row in self._runs and row not in self._weights:
            run = self._runs[row]
            return say(
                "{first} and its {others} of {each} can be one access of {merged} ({type}).",
                first=capitalize(describe_place(self._subject, run.rows[0])),
                others=count(len(run.rows) - 1, "neighbour"),
                each=count(run.bytes_each, "byte"),
                merged=count(run.merged_bytes, "byte"),
                type=WIDE_TYPES[run.merged_bytes],
            )
        place = capitalize(describe_place(self._subject, row))
        if row in self._invariant:
            is_kept = self._invariant[row].is_kept_by_stores
            why = ", which stores or barriers in the loop keep the compiler from doing" if is_kept else ""
            return say(
                "{place} reads the same address in every iteration: load it once before the loop{why}.",
                place=place,
                why=why,
            )
        if self._uniform[row]:
            better = (
                "constant memory serves that in one step"
                if row in self._fits_constant or row in self._weights
                else "one load per block into shared memory serves all its warps"
            )
            return say("{place} reads the same for all threads of a warp: {better}.", place=place, better=better)
        return NOTHING

    def choose_row(self, hottest: int) -> int:
        """The access to advise on: the hottest, or that of which most goes where nothing of the hottest is known to go."""
        gone = np.maximum(*self._weigh_rows())
        return hottest if gone[hottest] > 0 or not gone.any() else int(np.argmax(gone * self._subject.executed))

    def write_remedy(self, row: int) -> Sentence:
        """Write the remedy for the access with most stalls."""
        if row in self._weights or row in self._fits_constant:
            return say(
                "Keep read-only values that all threads read in constant memory, or load them once per block into shared memory."
            )
        if row in self._runs:
            return say(
                "Access adjacent elements of a thread with one wide load or store ({types}).",
                types=WIDE_TYPES[self._runs[row].merged_bytes],
            )
        if row in self._invariant:
            return say("Load loop-invariant values once before the loop, and keep them in registers.")
        if self._uniform[row]:
            return say("Load values that all threads of a warp read once per block into shared memory.")
        return say(
            "Let each thread access several adjacent elements with one instruction ({types}), and keep reused values in registers or shared "
            "memory.",
            types=_VECTORS,
        )

    def list_caveats(self, edges: npt.NDArray[np.int64], weights: npt.NDArray[np.float64]) -> tuple[Sentence, ...]:
        """List conditions that the analysis cannot know."""
        rows = set(self._subject.edges.def_row[edges[weights > 0]].tolist())
        caveats = []
        if rows & self._runs.keys() - self._weights.keys():
            caveats.append(
                say(
                    "A wide access needs an address aligned to its size, and no aliasing store between the narrow ones."
                )
            )
        if rows & self._invariant.keys():
            qualifiers = Code(text="const __restrict__")
            caveats.append(
                say(
                    "No thread may change a value that is kept; {qualifiers} tells the compiler so.",
                    qualifiers=qualifiers,
                )
            )
        if rows - self._runs.keys() - self._invariant.keys() - self._weights.keys():
            caveats.append(
                say("How many other accesses can be saved is unknown: all that wider ones could save are counted.")
            )
        return tuple(caveats)

    def count_work_left(self, *, constants: bool = False) -> dict[str, float]:
        """Unit → the part of its work that stays when accesses are merged, and values kept; ``constants``: and weights in constant memory."""
        merged, kept = self._weigh_rows()
        gone = np.maximum(merged, kept)
        lines = gone.copy()
        weights = list(self._weights)
        lines[weights] = 1.0
        if constants:
            gone[weights] = 1.0
        passes = float((self._subject.executed * (1 - gone))[weights].sum())
        return count_work_left(self._subject, executions=gone, lines=lines, added={"shared": passes})

    def list_reasons(self) -> tuple[Sentence, ...]:
        """Count the accesses of each kind."""
        counts = (
            (len(self._runs), "narrow access"),
            (len(self._invariant), "loop-invariant load"),
            (int(self._uniform.sum()), "warp-uniform load"),
        )
        return tuple(say("{accesses}", accesses=count(present, noun)) for present, noun in counts if present)


OPTIMIZER = Optimizer(
    name="memory_transaction_reduction",
    title="Reduce memory transactions",
    group="memory traffic",
    find=match,
)
