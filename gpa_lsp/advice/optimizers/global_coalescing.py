"""Global accesses whose warps ask for more sectors than the data needs."""

from collections.abc import Sequence
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
from gpa_lsp.advice.traffic_floor import measure_floor
from gpa_lsp.binary.opcodes import Access
from gpa_lsp.dataflow.accesses import (
    GLOBAL_SPACES,
    SECTOR_BYTES,
    count_access_bytes,
    count_per_request,
    mark_accesses,
    measure_excess,
)
from gpa_lsp.dataflow.adjacent_accesses import count_run_lengths, find_access_runs
from gpa_lsp.rows.scopes import Scope

_LINE_BYTES = 128
_REASONS = ("long_scoreboard", "lg_throttle", "drain")
"""Waiting for the data, for room in the queue, and for stores at the end."""
_ALL_APART = 0.95
"""Sectors (or lines) per thread from which on every thread has one of its own."""
_ONE_SECTOR = 1.05
_MOST_PLACES = 2
_VENDOR_RULE = "UncoalescedGlobalAccess"


class GlobalCoalescing(EliminationOptimizer):
    """Sectors beyond the least an access could do with cost time in proportion.

    Matched: the stalls blamed on an access (waiting for its data, for room in the queue before it, for stores at the end) times its share of
    sectors beyond the least. A share that merging accesses side by side would remove is left to that remedy, and atomics to theirs.
    Approximation: an access waits in proportion to its sectors; one that is never limited by throughput gains less.

    Source: sectors per instruction of Nsight Compute's source counters; its rule of the same pattern knows kernels, not instructions.
    """

    name: ClassVar[str] = "global_coalescing"
    title: ClassVar[str] = "Coalesced global accesses"
    category: ClassVar[Category] = Category.CODE
    group: ClassVar[str] = "memory traffic"
    needs_counters: ClassVar[tuple[str, ...]] = ("global_sectors", "global_sectors_ideal")

    def match(self, subject: Subject) -> EliminationMatch | Silence:
        """Find accesses with an excess that somebody waits for."""
        if not subject.rows.has_code:
            return self.silent(SilenceStage.NO_CODE, "the code could not be disassembled")
        sectors, ideal = subject.rows.counter("global_sectors"), subject.rows.counter("global_sectors_ideal")
        accesses = mark_accesses(subject.rows, GLOBAL_SPACES, (Access.LOAD, Access.STORE, Access.COPY))
        if sectors is None or ideal is None or not accesses.any():
            return self.silent(SilenceStage.NOT_MATCHED, "there are no global loads or stores")
        moved, least = int(sectors[accesses].clip(min=0).sum()), int(ideal[accesses].clip(min=0).sum())
        if moved <= least or least == 0:
            return self.silent(
                SilenceStage.NOT_MATCHED, f"global accesses move {moved / max(least, 1):.2f}× the least sectors"
            )
        excess = np.where(accesses, measure_excess(sectors, self._find_least(subject, sectors, ideal)), 0.0)
        edges = find_edges(subject, excess > 0, _REASONS)
        weights = excess[subject.blame.edges.def_row[edges]]
        if count_samples(subject, edges, weights) == 0:
            why = self._find_why(subject, np.where(accesses, measure_excess(sectors, ideal), 0.0))
            return self.silent(
                SilenceStage.NOT_MATCHED, f"global accesses move {moved / least:.2f}× the least sectors, but {why}"
            )
        words = _Words(subject)
        reaches_l2 = _reaches_l2(subject, least)
        floor = measure_floor(subject)
        return EliminationMatch(
            regions=build_regions(subject, edges, weights, write_hint=words.write_hint, write_note=words.write_note),
            hint=words.write_remedy(edges, weights),
            caveats=_list_caveats(reaches_l2),
            reasons=(
                "stalls blamed on each access, times its share of sectors beyond the least",
                f"global accesses move {moved / least:.2f}× the least sectors: {moved:,} where {least:,} would do",
                *_quote_vendor(subject),
            ),
            leaves=None if floor is None else floor.leaves,
            relieves=(MemoryLevel.L1,) if reaches_l2 is False else (MemoryLevel.L1, MemoryLevel.L2, MemoryLevel.DRAM),
        )

    @staticmethod
    def _find_why(subject: Subject, excess: npt.NDArray[np.float64]) -> str:
        """Why nothing is left to match, given each row's share of sectors that are too many."""
        edges = find_edges(subject, excess > 0, _REASONS)
        if count_samples(subject, edges, np.ones(len(edges))) == 0:
            return "nothing waits for those that move too many"
        return "merging accesses side by side takes care of those that are waited for"

    @staticmethod
    def _find_least(
        subject: Subject, sectors: npt.NDArray[np.int64], ideal: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """int64[n]: sectors each row may have; k times the ideal where k accesses side by side share their sectors."""
        least = ideal.copy()
        for row, length in count_run_lengths(subject.rows, find_access_runs(subject.rows)).items():
            least[row] = min(int(sectors[row]), int(ideal[row]) * length)
        return least


class _Words:
    """What is said about accesses that move too much."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._sectors, self._threads = count_per_request(subject.rows)
        self._ideal = _per_execution(subject, "global_sectors_ideal")
        self._lines = _per_execution(subject, "global_tag_requests")

    def write_note(self, def_row: int, _use_row: int) -> str:
        """Sectors of a request against the least; of all requests where their number is not known."""
        if np.isnan(self._sectors[def_row]):
            return "more sectors than its data needs"
        return f"{self._sectors[def_row]:.1f} sectors a request where {self._ideal[def_row]:.1f} would do"

    def write_hint(self, _scope: Scope, hotspots: Sequence[Hotspot]) -> str:
        """The worst accesses of a region, and how far apart their threads are."""
        rows = list(dict.fromkeys(hotspot.def_row for hotspot in hotspots))[:_MOST_PLACES]
        return join_sentences((self._write_sentence(row) for row in rows), _MOST_PLACES)

    def _write_sentence(self, row: int) -> str:
        place = describe_place(self._subject, row)
        stride = f": {self._describe_stride(row)}" if not np.isnan(self._sectors[row]) else ""
        return f"{begin_sentence(place)} asks for {self.write_note(row, row)}{stride}."

    def write_remedy(self, edges: npt.NDArray[np.int64], weights: npt.NDArray[np.float64]) -> str:
        """What to do about the accesses that most samples wait for."""
        every = self._subject.blame.edges
        samples = np.bincount(
            every.def_row[edges], weights=every.all_samples[edges] * weights, minlength=len(self._subject.rows)
        )
        row = int(np.argmax(samples))
        if self._is_misaligned(row):
            return (
                "Let each warp begin at a multiple of 32 bytes: pad rows to a multiple of 32 bytes, and start loops over a row at its "
                "aligned part."
            )
        return (
            "Let neighbouring threads take neighbouring elements: make the index that varies fastest in memory the one that threadIdx.x "
            "varies, or copy a tile to shared memory in that order and read it from there in the other."
        )

    def _is_misaligned(self, row: int) -> bool:
        """One sector more than needed, and no more."""
        return bool(self._sectors[row] - self._ideal[row] <= _ONE_SECTOR and self._ideal[row] >= 1.0)

    def _describe_stride(self, row: int) -> str:
        """How far apart neighbouring threads stand, as far as sectors and lines tell."""
        sectors, threads, lines = (float(column[row]) for column in (self._sectors, self._threads, self._lines))
        each = count_access_bytes(self._subject.rows.mnemonic(row))
        if self._is_misaligned(row):
            return "its warps do not begin at a multiple of 32 bytes"
        if sectors >= _ALL_APART * threads and each < SECTOR_BYTES:
            if np.isnan(lines):
                return f"neighbouring threads are {SECTOR_BYTES} bytes or more apart"
            if lines >= _ALL_APART * threads:
                return f"neighbouring threads are {_LINE_BYTES} bytes or more apart, or at unrelated places"
            return f"neighbouring threads are about {_LINE_BYTES * lines / threads:.0f} bytes apart"
        return f"as if neighbouring threads, of {each} bytes each, were about {SECTOR_BYTES * sectors / threads:.0f} bytes apart"


def _per_execution(subject: Subject, counter: str) -> npt.NDArray[np.float64]:
    """float64[n], NaN where unknown."""
    counted = subject.rows.counter(counter)
    values = np.full(len(subject.rows), np.nan)
    if counted is not None:
        known = (counted >= 0) & (subject.rows.executions > 0)
        values[known] = counted[known] / subject.rows.executions[known]
    return values


def _reaches_l2(subject: Subject, least: int) -> bool | None:
    """Whether L2 sees any of the excess; None when nobody counted.

    L1 answers a sector that another access brought: then the excess costs passes through L1 and no traffic behind it.
    """
    if subject.kernel.has_mixed_launches:
        return None
    counts = [
        launch.read_number("lts__t_sectors_srcunit_tex.sum") for launch in subject.kernel.launches if not launch.failure
    ]
    known = [count for count in counts if count is not None]
    return sum(known) > least if known and len(known) == len(counts) else None


def _list_caveats(reaches_l2: bool | None) -> tuple[str, ...]:
    caveats = ["An access that waits for latency and not for throughput gains less than its share of sectors."]
    if reaches_l2 is False:
        caveats.append("L1 answers the sectors that are too many, so traffic to L2 and memory stays as it is.")
    return tuple(caveats)


def _quote_vendor(subject: Subject) -> tuple[str, ...]:
    """The profiler's own closed form for the longest launch, where its rule gave one."""
    launch = subject.kernel.longest_launch
    rules = launch.rules if launch is not None else ()
    return tuple(
        f"Nsight Compute's own rule: {speedup.percent:.1f} % of {'the run time' if speedup.is_global else 'what it looks at'}"
        for rule in rules
        if rule.identifier == _VENDOR_RULE
        for speedup in rule.speedups
    )


OPTIMIZER = GlobalCoalescing()
