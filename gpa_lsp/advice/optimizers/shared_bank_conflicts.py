"""Shared-memory accesses that take more passes than their data needs, because lanes want different words of one bank."""

from collections.abc import Sequence
from math import log2
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from gpa_lsp.advice.blamed_stalls import build_regions, count_samples, find_edges
from gpa_lsp.advice.hint_words import begin_sentence, join_sentences
from gpa_lsp.advice.matches import EliminationMatch
from gpa_lsp.advice.model import Category, Hotspot, MemoryLevel, Silence, SilenceStage
from gpa_lsp.advice.optimizers import EliminationOptimizer
from gpa_lsp.advice.source_words import describe_place
from gpa_lsp.advice.subject import Subject
from gpa_lsp.binary.opcodes import Access, MemorySpace, Opcode
from gpa_lsp.dataflow.accesses import count_access_bytes, measure_excess
from gpa_lsp.rows.scopes import Scope

_REASONS = ("short_scoreboard", "mio_throttle")
"""Waiting for the words, and for room in the queue before the access."""
_BANKS = 32
_WORD_BYTES = 4
_POWER_TOLERANCE = 0.05
_MOST_PLACES = 2


def _is_plain_access(opcode: Opcode) -> bool:
    """A load or store of shared memory, or a copy into it; atomics queue for addresses, not for banks."""
    if opcode.access is Access.COPY:
        return opcode.memory is MemorySpace.GLOBAL
    return opcode.memory in (MemorySpace.SHARED, MemorySpace.GENERIC) and opcode.access in (Access.LOAD, Access.STORE)


class SharedBankConflicts(EliminationOptimizer):
    """Passes through shared memory beyond the least an access could do with.

    Matched: the stalls blamed on an access (waiting for its words, for room in the queue before it) times its share of passes beyond the
    least. Approximation: the wait is in proportion to the passes; and instructions that only queue behind a conflict are not counted.

    Source: wavefronts per instruction of Nsight Compute's source counters.
    """

    name: ClassVar[str] = "shared_bank_conflicts"
    title: ClassVar[str] = "Shared memory without bank conflicts"
    category: ClassVar[Category] = Category.CODE
    group: ClassVar[str] = "shared memory"
    needs_counters: ClassVar[tuple[str, ...]] = ("shared_wavefronts", "shared_wavefronts_ideal")

    def match(self, subject: Subject) -> EliminationMatch | Silence:
        """Find accesses with conflicts that somebody waits for."""
        if not subject.rows.has_code:
            return self.silent(SilenceStage.NO_CODE, "the code could not be disassembled")
        passes, ideal = subject.rows.counter("shared_wavefronts"), subject.rows.counter("shared_wavefronts_ideal")
        accesses = subject.rows.mark_by_opcode(_is_plain_access)
        if passes is None or ideal is None or not (accesses & (passes > 0)).any():
            return self.silent(SilenceStage.NOT_MATCHED, "there are no shared loads or stores")
        made, least = int(passes[accesses].clip(min=0).sum()), int(ideal[accesses].clip(min=0).sum())
        if made <= least or least == 0:
            message = f"shared accesses take {made / max(least, 1):.2f}× the least passes"
            return self.silent(SilenceStage.NOT_MATCHED, message)
        excess = np.where(accesses, measure_excess(passes, ideal), 0.0)
        edges = find_edges(subject, excess > 0, _REASONS)
        weights = excess[subject.blame.edges.def_row[edges]]
        if count_samples(subject, edges, weights) == 0:
            message = (
                f"shared accesses take {made / least:.2f}× the least passes, but nothing waits for those with conflicts"
            )
            return self.silent(SilenceStage.NOT_MATCHED, message)
        ways = np.where(ideal > 0, passes / np.maximum(ideal, 1), 1.0)

        def write_note(def_row: int, _use_row: int) -> str:
            return f"{ways[def_row]:.1f} passes where one would do"

        def write_hint(_scope: Scope, hotspots: Sequence[Hotspot]) -> str:
            rows = list(dict.fromkeys(hotspot.def_row for hotspot in hotspots))[:_MOST_PLACES]
            return join_sentences((_write_sentence(subject, row, float(ways[row])) for row in rows), _MOST_PLACES)

        return EliminationMatch(
            regions=build_regions(subject, edges, weights, write_hint=write_hint, write_note=write_note),
            hint=_write_remedy(subject, edges, weights, ways),
            caveats=(
                "Padding takes shared memory and may cost occupancy; swizzling (the column index xor the row index) does not.",
                "Where latency and not throughput is waited for, the gain is less than the share of passes.",
            ),
            relieves=(MemoryLevel.L1, MemoryLevel.SHARED),
            reasons=(
                "stalls blamed on each access, times its share of passes beyond the least",
                f"shared accesses take {made / least:.2f}× the least passes: {made:,} where {least:,} would do",
            ),
        )


def _write_sentence(subject: Subject, row: int, ways: float) -> str:
    place = describe_place(subject, row)
    sentence = f"{begin_sentence(place)} has bank conflicts ({ways:.3g}-way)"
    pitch = _find_pitch(ways) if count_access_bytes(subject.rows.mnemonic(row)) == _WORD_BYTES else None
    if pitch is None:
        return f"{sentence}."
    if pitch == _BANKS:
        return f"{sentence}: its lanes are a multiple of {_BANKS} words ({_BANKS * _WORD_BYTES} bytes) apart."
    return f"{sentence}: its lanes are {pitch} words ({pitch * _WORD_BYTES} bytes) apart, or an odd multiple of that."


def _find_pitch(ways: float) -> int | None:
    """Words between neighbouring lanes that make such a conflict; None where no even distance does.

    >>> _find_pitch(32.0), _find_pitch(8.1), _find_pitch(2.7)
    (32, 8, None)
    """
    power = round(log2(ways)) if ways >= 1 else 0
    is_power = abs(ways - 2**power) <= _POWER_TOLERANCE * ways
    return min(2**power, _BANKS) if is_power and power >= 1 else None


def _write_remedy(
    subject: Subject, edges: npt.NDArray[np.int64], weights: npt.NDArray[np.float64], ways: npt.NDArray[np.float64]
) -> str:
    """What to do about the access that most samples wait for."""
    every = subject.blame.edges
    samples = np.bincount(every.def_row[edges], weights=every.all_samples[edges] * weights, minlength=len(subject.rows))
    if _find_pitch(float(ways[int(np.argmax(samples))])) == _BANKS:
        return (
            "Give each row of the array one word more than the threads read across (`tile[32][32 + 1]`), so that a column lies in 32 banks; "
            "or swizzle: store column c of row r at c ^ r."
        )
    return (
        "Lay the array out so that the lanes of a warp read words of different banks (word address modulo 32): pad rows by a word, swizzle, "
        "or keep each field of a structure in an array of its own."
    )


OPTIMIZER = SharedBankConflicts()
