"""Global accesses whose warps ask for more sectors than the data needs."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.opcodes import Access
from gpa_lsp.diagnosis.advice.blamed_stalls import (
    build_counted_regions,
    build_regions,
    count_samples,
    describe_causes,
    find_edges,
    find_worst,
    mark_reasons,
)
from gpa_lsp.diagnosis.advice.matches import EliminationMatch
from gpa_lsp.diagnosis.advice.model import Hotspot, SilenceStage
from gpa_lsp.diagnosis.advice.naming import describe_place
from gpa_lsp.diagnosis.advice.optimizers import Found, NotApplicable, Optimizer
from gpa_lsp.diagnosis.advice.pricing import WAITING
from gpa_lsp.diagnosis.advice.traffic_floor import find_least_sectors, measure_excess_lines, measure_floor
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import NOTHING, Code, Sentence, capitalize, count, factor, number, percent, say
from gpa_lsp.kernel.dataflow.accesses import (
    GLOBAL_SPACES,
    SECTOR_BYTES,
    count_access_bytes,
    count_per_request,
    count_run_lengths,
    find_access_runs,
    mark_accesses,
    measure_excess,
)
from gpa_lsp.kernel.dataflow.gathered_accesses import mark_gathered
from gpa_lsp.kernel.scopes import Scope

_LINE_BYTES = 128
# Waiting for the data, for room in the queue, and for stores at the end
_REASONS = ("long_scoreboard", "lg_throttle", "drain")
_ALL_APART = 0.95  # Sectors (or lines) per thread from which on every thread has one of its own
_ONE_SECTOR = 1.05
_VENDOR_RULE = "UncoalescedGlobalAccess"


def match(subject: Subject) -> Found:
    """Sectors beyond the least an access could do with cost time in proportion.

    Matched: the stalls blamed on an access (waiting for its data, for room in the queue before it, for stores at the end) times its share of
    sectors beyond the least. A share that merging accesses side by side would remove is left to that remedy, and atomics to theirs.
    Its data it waits for in proportion to its lines: a line's sectors come together.
    Approximation: an access waits in proportion to either; one that is never limited by throughput gains less.

    Source: sectors per instruction of Nsight Compute's source counters; its rule of the same pattern knows kernels, not instructions.
    """
    sectors, ideal = subject.rows.counter("global_sectors"), find_least_sectors(subject)
    accesses = mark_accesses(subject.rows, GLOBAL_SPACES, (Access.LOAD, Access.STORE, Access.COPY))
    if sectors is None or ideal is None or not accesses.any():
        return say("the kernel has no global loads or stores")
    moved, least = int(sectors[accesses].clip(min=0).sum()), int(ideal[accesses].clip(min=0).sum())
    if moved <= least or least == 0:
        ratio = factor(moved / max(least, 1))
        return say("global accesses move {ratio} the minimum number of sectors", ratio=ratio)
    ratio = factor(moved / least)
    every = np.where(accesses, measure_excess(sectors, _find_least(subject, sectors, ideal)), 0.0)
    gathered = mark_gathered(subject.rows)
    excess = np.where(gathered, 0.0, every)
    if every.any() and not excess.any():
        return NotApplicable(
            SilenceStage.GATED,
            say(
                "{access} is at an address that was loaded: only another order of the data brings neighbours together",
                access=describe_place(subject, int(np.argmax(every * sectors))),
            ),
        )
    edges = find_edges(subject, excess > 0, _REASONS)
    weights = excess[subject.edges.def_row[edges]]
    lines = measure_excess_lines(subject)
    if lines is not None:  # a request waits for as many lines, however many sectors it asks for of each
        waits = mark_reasons(subject, (WAITING,))[edges]
        weights = np.where(waits, np.minimum(weights, lines[subject.edges.def_row[edges]]), weights)
    if subject.total_samples and count_samples(subject, edges, weights) == 0:
        why = _find_why(subject, np.where(accesses, measure_excess(sectors, ideal), 0.0))
        return say("global accesses move {ratio} the minimum number of sectors, but {why}", ratio=ratio, why=why)
    words = _Words(subject)
    reaches_l2 = _reaches_l2(subject, least)
    floor = measure_floor(subject)
    return EliminationMatch(
        regions=build_regions(subject, edges, weights, write_hint=words.write_hint, write_note=words.write_note)
        if subject.total_samples
        else build_counted_regions(subject, excess * sectors, words.write_sentence),
        hint=words.write_remedy(find_worst(subject, edges, weights, excess * sectors)),
        caveats=_list_caveats(reaches_l2),
        reasons=(
            *(
                [say("stalls on each access, times its share of excess sectors, waits times that of lines")]
                if subject.total_samples
                else []
            ),
            say(
                "global accesses move {ratio} the minimum: {moved} where {least} would suffice",
                ratio=ratio,
                moved=count(moved, "sector"),
                least=count(least),
            ),
            *_quote_vendor(subject),
        ),
        work={} if floor is None else floor.leaves,
    )


def _find_why(subject: Subject, excess: npt.NDArray[np.float64]) -> Sentence:
    """Explain why nothing is left to match, given each row's share of excess sectors."""
    edges = find_edges(subject, excess > 0, _REASONS)
    if count_samples(subject, edges) == 0:
        return say("no warp is stalled on those above it")
    return say("merging adjacent accesses covers those with stalls")


def _find_least(
    subject: Subject, sectors: npt.NDArray[np.int64], ideal: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """int64[n]: sectors each row may have; k times the ideal where k accesses side by side share their sectors."""
    least = ideal.copy()
    for row, length in count_run_lengths(find_access_runs(subject.rows)).items():
        least[row] = min(int(sectors[row]), int(ideal[row]) * length)
    return least


class _Words:
    """Words about accesses that move too much."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._sectors, self._threads = count_per_request(subject.rows)
        self._ideal = _per_execution(subject, "global_sectors_ideal")
        self._lines = _per_execution(subject, "global_tag_requests")

    def write_note(self, def_row: int, _use_row: int) -> Sentence:
        """Sectors of a request against the least; of all requests where their number is not known."""
        if np.isnan(self._sectors[def_row]):
            return say("more sectors than its data needs")
        return say(
            "{sectors} per request where {ideal} would suffice",
            sectors=number(float(self._sectors[def_row]), "sector"),
            ideal=number(float(self._ideal[def_row])),
        )

    def write_hint(self, _scope: Scope, hotspots: Sequence[Hotspot]) -> Sentence:
        """The worst accesses of a region, and how far apart their threads are."""
        return describe_causes(hotspots, self.write_sentence)

    def write_sentence(self, row: int) -> Sentence:
        """Describe the sectors of one access."""
        is_counted = not np.isnan(self._sectors[row])
        return say(
            "{access} touches {sectors}{stride}.",
            access=capitalize(describe_place(self._subject, row)),
            sectors=self.write_note(row, row),
            stride=say(": {stride}", stride=self._describe_stride(row)) if is_counted else NOTHING,
        )

    def write_remedy(self, row: int) -> Sentence:
        """Write the remedy for the worst access."""
        if self._is_misaligned(row):
            return say(
                "Start each warp at a multiple of 32 bytes: pad rows to one, and start loops over a row at its aligned part."
            )
        return say(
            "Let adjacent threads access adjacent elements: vary the fastest index in memory with {index}, or copy a tile to shared memory in "
            "that order and read it from there in the other.",
            index=Code(text="threadIdx.x"),
        )

    def _is_misaligned(self, row: int) -> bool:
        """One sector more than needed, and no more."""
        return bool(self._sectors[row] - self._ideal[row] <= _ONE_SECTOR and self._ideal[row] >= 1.0)

    def _describe_stride(self, row: int) -> Sentence:
        """Describe the distance of adjacent threads' addresses, as far as sectors and lines tell."""
        sectors, threads, lines = (float(column[row]) for column in (self._sectors, self._threads, self._lines))
        each = count_access_bytes(self._subject.rows.mnemonic(row))
        if self._is_misaligned(row):
            return say("its warps do not start at a multiple of 32 bytes")
        if sectors >= _ALL_APART * threads and each < SECTOR_BYTES:
            if np.isnan(lines):
                return say("adjacent threads are {stride} or more apart", stride=count(SECTOR_BYTES, "byte"))
            if lines >= _ALL_APART * threads:
                stride = count(_LINE_BYTES, "byte")
                return say("adjacent threads are {stride} or more apart, or at unrelated addresses", stride=stride)
            return say("adjacent threads are about {stride} apart", stride=count(_LINE_BYTES * lines / threads, "byte"))
        return say(
            "as if adjacent threads, with {each} each, were about {stride} apart",
            each=count(each, "byte"),
            stride=count(SECTOR_BYTES * sectors / threads, "byte"),
        )


def _per_execution(subject: Subject, counter: str) -> npt.NDArray[np.float64]:
    """float64[n], NaN where unknown."""
    counted = subject.rows.counter(counter)
    values = np.full(len(subject.rows), np.nan)
    if counted is not None:
        known = (counted >= 0) & (subject.rows.executions > 0)
        values[known] = counted[known] / subject.rows.executions[known]
    return values


def _reaches_l2(subject: Subject, least: int) -> bool | None:
    """Whether L2 sees any of the excess; None when not collected.

    L1 answers a sector that another access brought: then the excess costs passes through L1 and no traffic behind it.
    """
    if subject.kernel.has_mixed_launches:
        return None
    counts = [launch.read_number("lts__t_sectors_srcunit_tex.sum") for launch in subject.runs]
    known = [count for count in counts if count is not None]
    return sum(known) > least if known and len(known) == len(counts) else None


def _list_caveats(reaches_l2: bool | None) -> tuple[Sentence, ...]:
    caveats = [say("An access limited by latency, not throughput, gains less than its share of sectors.")]
    if reaches_l2 is False:
        caveats.append(say("L1 serves the excess sectors, so traffic to L2 and DRAM does not shrink."))
    return tuple(caveats)


def _quote_vendor(subject: Subject) -> tuple[Sentence, ...]:
    """The profiler's own closed form for the longest launch, where its rule gave one."""
    launch = subject.kernel.longest_launch
    rules = launch.rules if launch is not None else ()
    return tuple(
        say(
            "Nsight Compute's own rule estimates {saved} of {whole}",
            saved=percent(speedup.percent / 100),
            whole="the run time" if speedup.is_global else "what it looks at",
        )
        for rule in rules
        if rule.identifier == _VENDOR_RULE
        for speedup in rule.speedups
    )


OPTIMIZER = Optimizer(
    name="global_coalescing",
    title="Coalesce global accesses",
    group="memory traffic",
    needs_samples=False,
    needs_counters=("global_sectors", "global_sectors_ideal"),
    find=match,
)
