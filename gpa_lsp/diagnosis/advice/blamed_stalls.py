"""Blamed stalls that an elimination would remove, wholly or in part, as regions: one per innermost scope of the causes.

Where nothing was sampled, regions come from what counters say of each instruction.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.matches import EliminationRegion
from gpa_lsp.diagnosis.advice.model import Hotspot
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.model import BlameCategory
from gpa_lsp.foundation.distinct import find_distinct, mark_firsts
from gpa_lsp.foundation.prose import NOTHING, Sentence, join
from gpa_lsp.foundation.records import remembered
from gpa_lsp.kernel.scopes import Scope

# Which part of each blamed pair's samples goes, 0..1: of each its own, or of all the same
Weights = float | npt.NDArray[np.float64]

# Scope of a region and its hotspots, most samples first → what to do there
HintWriter = Callable[[Scope, Sequence[Hotspot]], Sentence]

# Pairs that a region of :func:`build_regions` carries: many more than are shown, few enough to say something about each
MOST_HOTSPOTS = 100

MOST_SENTENCES = 2  # Of the hint of one region

# Def row and use row → what is special about the pair; empty when nothing is
NoteWriter = Callable[[int, int], Sentence]


def find_edges(
    subject: Subject, causes: npt.NDArray[np.bool_], reasons: Collection[str] | None = None
) -> npt.NDArray[np.int64]:
    """The blamed pairs of some causes.

    Args:
        causes: bool[n], the defs in question.
        reasons: only stalls of these; None takes all.

    Returns:
        int64[m], indices into ``subject.edges``, ascending.
    """
    edges = subject.edges
    chosen = causes[edges.def_row]
    if reasons is not None:
        chosen &= mark_reasons(subject, reasons)
    return np.flatnonzero(chosen)


def mark_reasons(subject: Subject, reasons: Collection[str]) -> npt.NDArray[np.bool_]:
    """bool[e]: the blamed pairs that were sampled under some stall reasons."""
    is_wanted = np.array([reason in reasons for reason in subject.kernel.reasons], dtype=np.bool_)
    marks: npt.NDArray[np.bool_] = is_wanted[subject.edges.reason]
    return marks


def count_samples(subject: Subject, edges: npt.NDArray[np.int64], weights: Weights = 1.0) -> float:
    """Samples of some blamed pairs, each taken with its weight."""
    return float((subject.edges.all_samples[edges] * weights).sum())


def build_regions(
    subject: Subject,
    edges: npt.NDArray[np.int64],
    weights: Weights = 1.0,
    *,
    write_hint: HintWriter | None = None,
    write_note: NoteWriter | None = None,
) -> tuple[EliminationRegion, ...]:
    """Regions of the pairs whose stalls would go.

    Args:
        edges: int64[m], indices into ``subject.edges``; each at most once, so that no sample counts twice.
        write_hint: what to do in a region; None leaves that to the match's hint.
    """
    every = subject.edges
    weights = np.broadcast_to(weights, edges.shape)
    kept = (weights > 0) & (every.all_samples[edges] > 0)
    edges, weights = edges[kept], weights[kept]
    scopes = subject.scopes.innermost[every.def_row[edges]]
    regions = []
    order = np.argsort(scopes, kind="stable")
    starts = np.flatnonzero(mark_firsts(scopes[order]))
    for first, end in pairwise([*starts.tolist(), len(order)]):
        inside = order[first:end]
        chosen, parts = edges[inside], weights[inside]
        place = subject.scopes.scopes[int(scopes[inside[0]])]
        region = build_region(subject, place, chosen, parts, write_note=write_note, most=MOST_HOTSPOTS)
        regions.append(region if write_hint is None else replace(region, hint=write_hint(place, region.hotspots)))
    return rank_regions(regions)


def rank_regions(regions: Iterable[EliminationRegion]) -> tuple[EliminationRegion, ...]:
    """Sort regions, most samples first."""
    return tuple(sorted(regions, key=lambda region: (-region.samples, region.scope.row)))


def build_region(
    subject: Subject,
    scope: Scope,
    edges: npt.NDArray[np.int64],
    weights: Weights = 1.0,
    *,
    hint: Sentence = NOTHING,
    write_note: NoteWriter | None = None,
    most: int | None = None,
) -> EliminationRegion:
    """One region of some pairs, wherever their causes are; arguments as of :func:`build_regions` and :func:`build_hotspots`."""
    return EliminationRegion(
        scope=scope,
        samples=count_samples(subject, edges, weights),
        latency_samples=sum_latency(subject, edges, weights),
        hotspots=build_hotspots(subject, edges, weights, write_note=write_note, most=most),
        hint=hint,
        by_reason=sum_by_reason(subject, edges, weights),
    )


def sum_by_reason(subject: Subject, edges: npt.NDArray[np.int64], weights: Weights) -> dict[str, float]:
    """Stall reason → samples of some blamed pairs, each taken with its weight."""
    every, names = subject.edges, subject.kernel.reasons
    sums = np.bincount(every.reason[edges], weights=every.all_samples[edges] * weights, minlength=len(names))
    return {name: samples for name, samples in zip(names, sums.tolist(), strict=True) if samples}


def build_counted_regions(
    subject: Subject,
    excess: npt.NDArray[Any],
    describe: Callable[[int], Sentence] | None = None,
    *,
    edges: npt.NDArray[np.int64] | None = None,
) -> tuple[EliminationRegion, ...]:
    """Regions of which no sample is known to go, by what counters say of each row.

    Args:
        excess: number[n], the excess of a counter at each row, in its unit; 0 where there is none.
        describe: row → what is said of it, for the hint of its region; None leaves that to the match's hint.
        edges: int64[m], indices into ``subject.edges``: the pairs to show, whose samples stay.
    """
    regions = []
    shown = np.empty(0, dtype=np.int64) if edges is None else edges[subject.edges.all_samples[edges] > 0]
    scope_of_shown = subject.scopes.innermost[subject.edges.def_row[shown]]
    for scope in find_distinct(subject.scopes.innermost[excess > 0]).tolist():
        here = scope_of_shown == scope
        inside = np.where(subject.scopes.innermost == scope, excess, 0)
        worst = np.argsort(-inside, kind="stable")[:MOST_SENTENCES].tolist()
        said = dict.fromkeys(describe(row) for row in worst if inside[row] > 0) if describe is not None else {}
        regions.append(
            EliminationRegion(
                scope=subject.scopes.scopes[scope],
                samples=0.0,
                latency_samples=None,
                hotspots=build_hotspots(subject, shown[here], most=MOST_HOTSPOTS),
                hint=join(said),
                counted=float(inside.sum()),
            )
        )
    return tuple(sorted(regions, key=lambda region: (-region.counted, region.scope.row)))


def find_worst(
    subject: Subject, edges: npt.NDArray[np.int64], weights: npt.NDArray[np.float64], excess: npt.NDArray[Any]
) -> int:
    """The heaviest cause of the line with most samples of some pairs, each with its weight; without samples the one with the largest excess."""
    if not subject.total_samples:
        return int(np.argmax(excess))
    every = subject.edges
    samples = every.all_samples[edges] * weights
    by_row = np.bincount(every.def_row[edges], weights=samples, minlength=len(subject.rows))
    return subject.rows.find_heaviest(np.arange(len(by_row)), by_row)


def describe_causes(hotspots: Sequence[Hotspot], describe: Callable[[int], Sentence]) -> Sentence:
    """A sentence about each of a region's most sampled causes, at most :data:`MOST_SENTENCES`; none twice."""
    found: dict[Sentence, None] = {}
    for row in dict.fromkeys(hotspot.def_row for hotspot in hotspots):
        if sentence := describe(row):
            found.setdefault(sentence)
        if len(found) == MOST_SENTENCES:
            break
    return join(found)


def sum_latency(subject: Subject, edges: npt.NDArray[np.int64], weights: Weights) -> float | None:
    """Latency samples of some blamed pairs, each taken with its weight; None when they are unknown."""
    latency = subject.edges.latency_samples
    return None if latency is None else float((latency[edges] * weights).sum())


@remembered
def find_separable(subject: Subject) -> npt.NDArray[np.bool_]:
    """bool[e]: the pair's group has one cause only."""
    edges = subject.edges
    if len(edges) == 0:
        return np.zeros(0, dtype=np.bool_)
    some_cause = np.zeros(int(edges.group.max()) + 1, dtype=np.int32)
    some_cause[edges.group] = edges.def_row
    has_several = np.zeros(len(some_cause), dtype=np.bool_)
    has_several[edges.group[edges.def_row != some_cause[edges.group]]] = True
    return ~has_several[edges.group]


def build_hotspots(
    subject: Subject,
    edges: npt.NDArray[np.int64],
    weights: Weights = 1.0,
    *,
    write_note: NoteWriter | None = None,
    most: int | None = None,
) -> tuple[Hotspot, ...]:
    """One hotspot per def and use of some pairs, all reasons together, most samples first.

    Args:
        edges: int64[m], indices into ``subject.edges``.
        most: hotspots wanted; None for all.
    """
    if len(edges) == 0:
        return ()
    separable = find_separable(subject)[edges]
    every = subject.edges
    samples = every.all_samples[edges] * weights
    pairs = every.def_row[edges].astype(np.int64) * len(subject.rows) + every.use_row[edges]
    order = np.lexsort((-samples, pairs))
    is_first = mark_firsts(pairs[order])
    starts = np.flatnonzero(is_first)
    count = len(starts)
    pair_of = np.empty(len(pairs), dtype=np.int64)
    pair_of[order] = np.cumsum(is_first) - 1
    per_pair = np.bincount(pair_of, weights=samples, minlength=count)
    is_separable = np.bincount(pair_of[~separable], minlength=count) == 0
    chosen = np.argsort(-per_pair, kind="stable")[:most]
    largest = edges[order[starts[chosen]]]  # each pair goes by its largest edge, the first of equal ones
    quiet = every.latency_samples
    latencies = None if quiet is None else np.bincount(pair_of, weights=quiet[edges] * weights, minlength=count)
    columns = (
        every.def_row[largest],
        every.use_row[largest],
        every.reason[largest],
        every.category[largest],
        every.distance_cycles[largest],
        every.distance_instructions[largest],
        every.resource[largest],
        per_pair[chosen],
        np.full(len(chosen), None) if latencies is None else latencies[chosen],
        is_separable[chosen],
    )
    categories = {number: BlameCategory(number) for number in set(columns[3].tolist())}
    hotspots = []
    for def_row, use_row, reason, category, cycles, instructions, resource, *parts in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        is_moved = use_row != def_row
        hotspots.append(
            Hotspot(
                def_row=def_row,
                use_row=use_row if is_moved else None,
                reason=subject.kernel.reasons[reason],
                category=categories[category],
                samples=parts[0],
                latency_samples=parts[1],
                distance_cycles=cycles if is_moved and cycles >= 0 else None,
                distance_instructions=instructions if is_moved and instructions >= 0 else None,
                resource=resource if resource >= 0 else None,
                is_separable=parts[2],
                note=write_note(def_row, use_row) if write_note is not None else NOTHING,
            )
        )
    return tuple(hotspots)
