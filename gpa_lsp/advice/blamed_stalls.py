"""Blamed stalls that an elimination would remove, wholly or in part, as regions: one per innermost scope of the causes."""

from collections.abc import Callable, Collection, Sequence

import numpy as np
import numpy.typing as npt

from gpa_lsp.advice.matches import EliminationRegion
from gpa_lsp.advice.model import Hotspot, Scope
from gpa_lsp.advice.subject import Subject
from gpa_lsp.blame.model import BlameCategory

HintWriter = Callable[[Scope, Sequence[Hotspot]], str]
"""Scope of a region and its hotspots, most samples first → what to do there."""

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
        One region per innermost scope of the defs, most samples first; without pairs that weigh nothing.
    """
    every = subject.blame.edges
    kept = (weights > 0) & (every.all_samples[edges] > 0)
    edges, weights = edges[kept], weights[kept]
    scopes = subject.scopes.innermost[every.def_row[edges]]
    separable = find_separable(subject)[edges]
    regions = []
    for scope in np.unique(scopes).tolist():
        inside = scopes == scope
        hotspots = _build_hotspots(subject, edges[inside], weights[inside], separable[inside], write_note)
        place = subject.scopes.scopes[scope]
        regions.append(
            EliminationRegion(
                scope=place,
                samples=sum(hotspot.samples for hotspot in hotspots),
                latency_samples=sum(hotspot.latency_samples for hotspot in hotspots),
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
    return _build_hotspots(subject, edges, weights, every[edges], write_note)


def find_separable(subject: Subject) -> npt.NDArray[np.bool_]:
    """bool[e]: the pair's group has one cause only."""
    edges = subject.blame.edges
    if len(edges) == 0:
        return np.zeros(0, dtype=np.bool_)
    pairs = np.unique(edges.group.astype(np.int64) * subject.row_count + edges.def_row)
    causes = np.bincount(pairs // subject.row_count, minlength=int(edges.group.max()) + 1)
    return np.asarray(causes[edges.group] == 1)


def _build_hotspots(
    subject: Subject,
    edges: npt.NDArray[np.int64],
    weights: npt.NDArray[np.float64],
    separable: npt.NDArray[np.bool_],
    write_note: NoteWriter | None,
) -> tuple[Hotspot, ...]:
    """One hotspot per def and use, whatever the reasons, most samples first."""
    every = subject.blame.edges
    samples = every.all_samples[edges] * weights
    latency = every.latency_samples[edges] * weights
    pairs = every.def_row[edges].astype(np.int64) * subject.row_count + every.use_row[edges]
    order = np.argsort(pairs, kind="stable")
    starts = np.flatnonzero(np.diff(pairs[order], prepend=-1))
    hotspots = []
    for members in np.split(order, starts[1:]):
        largest = edges[members[int(np.argmax(samples[members]))]]
        def_row, use_row = divmod(int(pairs[members[0]]), subject.row_count)
        distance_cycles, distance_instructions, resource = (
            int(column[largest]) for column in (every.distance_cycles, every.distance_instructions, every.resource)
        )
        hotspots.append(
            Hotspot(
                def_row=def_row,
                use_row=None if use_row == def_row else use_row,
                reason=subject.kernel.reasons[int(every.reason[largest])],
                category=BlameCategory(int(every.category[largest])),
                samples=float(samples[members].sum()),
                latency_samples=float(latency[members].sum()),
                distance_cycles=None if use_row == def_row or distance_cycles < 0 else distance_cycles,
                distance_instructions=None
                if use_row == def_row or distance_instructions < 0
                else distance_instructions,
                resource=None if resource < 0 else resource,
                is_separable=bool(separable[members].all()),
                note=write_note(def_row, use_row) if write_note is not None else "",
            )
        )
    return tuple(sorted(hotspots, key=lambda hotspot: (-hotspot.samples, hotspot.def_row, hotspot.use_row or -1)))
