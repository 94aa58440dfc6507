"""Blamed stalls that an elimination would remove, wholly or in part, as regions: one per innermost scope of the causes."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from gpa_lsp.advice.matches import EliminationRegion
from gpa_lsp.advice.model import Hotspot, Scope
from gpa_lsp.advice.subject import Subject
from gpa_lsp.blame.model import BlameCategory

HintWriter = Callable[[Scope, Sequence[Hotspot]], str]
"""Scope of a region and its hotspots, most samples first → what to do there."""

MOST_HOTSPOTS = 100
"""Pairs that a region of :func:`build_regions` carries: many more than are shown, few enough to say something about each."""

NoteWriter = Callable[[int, int], str]
"""Def row and use row → what is special about the pair; empty when nothing is."""


def find_edges(
    subject: Subject, causes: npt.NDArray[np.bool_], reasons: Collection[str] | None = None
) -> npt.NDArray[np.int64]:
    """The blamed pairs of some causes.

    Args:
        subject: the kernel.
        causes: bool[n], the defs in question.
        reasons: only stalls of these; None takes all.

    Returns:
        int64[m], indices into ``subject.blame.edges``, ascending.
    """
    edges = subject.blame.edges
    chosen = causes[edges.def_row]
    if reasons is not None:
        wanted = [index for index, reason in enumerate(subject.kernel.reasons) if reason in reasons]
        chosen &= np.isin(edges.reason, wanted)
    return np.flatnonzero(chosen)


def count_samples(subject: Subject, edges: npt.NDArray[np.int64], weights: npt.NDArray[np.float64]) -> float:
    """Samples of some blamed pairs, each taken with its weight."""
    return float((subject.blame.edges.all_samples[edges] * weights).sum())


def build_regions(
    subject: Subject,
    edges: npt.NDArray[np.int64],
    weights: npt.NDArray[np.float64],
    *,
    write_hint: HintWriter | None = None,
    write_note: NoteWriter | None = None,
) -> tuple[EliminationRegion, ...]:
    """Regions of the pairs whose stalls would go.

    Args:
        subject: the kernel.
        edges: int64[m], indices into ``subject.blame.edges``; each at most once, so that no sample counts twice.
        weights: float64[m], which part of each pair's samples would go, 0..1.
        write_hint: what to do in a region; None leaves that to the match's hint.
        write_note: what is special about a pair.

    Returns:
        One region per innermost scope of the defs, most samples first; without pairs that weigh nothing. A region carries its most sampled
        pairs; its samples are those of all.
    """
    every = subject.blame.edges
    kept = (weights > 0) & (every.all_samples[edges] > 0)
    edges, weights = edges[kept], weights[kept]
    scopes = subject.scopes.innermost[every.def_row[edges]]
    separable = find_separable(subject)[edges]
    regions = []
    order = np.argsort(scopes, kind="stable")
    for inside in np.split(order, np.flatnonzero(np.diff(scopes[order])) + 1):
        if not len(inside):
            continue
        chosen, parts = edges[inside], weights[inside]
        hotspots = _build_hotspots(subject, chosen, parts, separable[inside], write_note=write_note, most=MOST_HOTSPOTS)
        place = subject.scopes.scopes[int(scopes[inside[0]])]
        regions.append(
            EliminationRegion(
                scope=place,
                samples=float((every.all_samples[chosen] * parts).sum()),
                latency_samples=float((every.latency_samples[chosen] * parts).sum()),
                hotspots=hotspots,
                hint=write_hint(place, hotspots) if write_hint is not None else "",
            )
        )
    return tuple(sorted(regions, key=lambda region: (-region.samples, region.scope.row)))


def build_hotspots(
    subject: Subject,
    edges: npt.NDArray[np.int64],
    weights: npt.NDArray[np.float64],
    write_note: NoteWriter | None = None,
    separable: npt.NDArray[np.bool_] | None = None,
) -> tuple[Hotspot, ...]:
    """The pairs of one region of another shape than a scope, one hotspot per def and use, most samples first.

    Args:
        subject: the kernel.
        edges: int64[m], indices into ``subject.blame.edges``.
        weights: float64[m], see :func:`build_regions`.
        write_note: what is special about a pair.
        separable: as :func:`find_separable` says, for callers with many regions; None looks it up.
    """
    if len(edges) == 0:
        return ()
    every = find_separable(subject) if separable is None else separable
    return _build_hotspots(subject, edges, weights, every[edges], write_note=write_note)


def find_separable(subject: Subject) -> npt.NDArray[np.bool_]:
    """bool[e]: the pair's group has one cause only."""
    edges = subject.blame.edges
    if len(edges) == 0:
        return np.zeros(0, dtype=np.bool_)
    some_cause = np.zeros(int(edges.group.max()) + 1, dtype=np.int32)
    some_cause[edges.group] = edges.def_row
    has_several = np.zeros(len(some_cause), dtype=np.bool_)
    has_several[edges.group[edges.def_row != some_cause[edges.group]]] = True
    return ~has_several[edges.group]


def _build_hotspots(
    subject: Subject,
    edges: npt.NDArray[np.int64],
    weights: npt.NDArray[np.float64],
    separable: npt.NDArray[np.bool_],
    *,
    write_note: NoteWriter | None,
    most: int | None = None,
) -> tuple[Hotspot, ...]:
    """One hotspot per def and use, whatever the reasons, most samples first; ``most`` of them, or all."""
    every = subject.blame.edges
    samples = every.all_samples[edges] * weights
    latency = every.latency_samples[edges] * weights
    pairs = every.def_row[edges].astype(np.int64) * subject.row_count + every.use_row[edges]
    distinct, pair_of = np.unique(pairs, return_inverse=True)
    per_pair = np.bincount(pair_of, weights=samples, minlength=len(distinct))
    members = np.argsort(pair_of, kind="stable")
    starts = np.searchsorted(pair_of[members], np.arange(len(distinct) + 1))
    hotspots = []
    for pair in np.lexsort((distinct, -per_pair))[:most].tolist():
        inside = members[starts[pair] : starts[pair + 1]]
        hotspots.append(
            replace(
                _build_hotspot(subject, int(edges[inside[int(np.argmax(samples[inside]))]])),
                samples=float(samples[inside].sum()),
                latency_samples=float(latency[inside].sum()),
                is_separable=bool(separable[inside].all()),
                note=write_note(*divmod(int(distinct[pair]), subject.row_count)) if write_note is not None else "",
            )
        )
    return tuple(hotspots)


def _build_hotspot(subject: Subject, edge: int) -> Hotspot:
    """One blamed pair as a hotspot."""
    every = subject.blame.edges
    use_row, def_row = int(every.use_row[edge]), int(every.def_row[edge])
    numbers = (every.distance_cycles, every.distance_instructions, every.resource)
    cycles, instructions, resource = (int(column[edge]) if column[edge] >= 0 else None for column in numbers)
    is_moved = use_row != def_row
    return Hotspot(
        def_row=def_row,
        use_row=use_row if is_moved else None,
        reason=subject.kernel.reasons[int(every.reason[edge])],
        category=BlameCategory(int(every.category[edge])),
        samples=float(every.all_samples[edge]),
        latency_samples=float(every.latency_samples[edge]),
        distance_cycles=cycles if is_moved else None,
        distance_instructions=instructions if is_moved else None,
        resource=resource,
    )
