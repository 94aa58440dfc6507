"""What the requests of resident blocks find in the caches, and the reuse of lines on an SM: :func:`follow_waves`.

The compiled core goes through the requests one by one; numpy lists their sectors first (:mod:`gpa_lsp.traces.cache_hits`).
"""

import numpy as np

from gpa_lsp.emulator.trace import Buffer
from gpa_lsp.native.shared_library import Core, find_core
from gpa_lsp.traces.cache_hits import CacheHits, count_lines, list_hits, list_line_loads, predict_hits, scale_l2
from gpa_lsp.traces.distance_counting import INFINITE, Distances
from gpa_lsp.traces.line_sets import number_line_sets
from gpa_lsp.traces.model import AnalysisSettings, TraceContext
from gpa_lsp.traces.reuse_distance import ReuseGroup, ReuseSums
from gpa_lsp.traces.segments import LINE_SHIFT
from gpa_lsp.traces.waves import WaveRequests

_COLUMNS = 5
_UNKNOWN = -1


def follow_waves(
    waves: WaveRequests, context: TraceContext, buffers: tuple[Buffer, ...], settings: AnalysisSettings
) -> tuple[CacheHits, tuple[ReuseGroup, ...]]:
    """Predicted hits of both caches, and reuse distances of the lines that each SM loads through L1."""
    core = find_core()
    if core is not None and settings.cache_ways is None:
        found = _follow_by_core(core, waves, context, buffers, settings)
        if found is not None:
            return found
    references = waves.list_references()
    loads = list_line_loads(references, evicts_on_store=settings.evicts_on_store)
    hits = predict_hits(references, loads, context, ways=settings.cache_ways)
    sums = ReuseSums(buffers)
    distance = np.where(loads.is_dropped, INFINITE, loads.distances.distance)
    distances = Distances(distance=distance, is_streaming=loads.distances.is_streaming)
    sums.add(references.instruction[loads.reference], loads.line << LINE_SHIFT, distances)
    return hits, sums.finish()


def _follow_by_core(
    core: Core, waves: WaveRequests, context: TraceContext, buffers: tuple[Buffer, ...], settings: AnalysisSettings
) -> tuple[CacheHits, tuple[ReuseGroup, ...]] | None:
    sums = ReuseSums(buffers)
    instructions = len(waves.roles)
    found = np.empty((instructions, _COLUMNS), np.int64)
    l2_bytes = scale_l2(waves, context)
    sets = number_line_sets(core, waves.lists) if waves.sets is None else waves.sets
    if sets is None:
        return None
    is_done = sums.fill_by_core(
        core,
        "follow_waves",
        waves.roles,
        waves.instruction,
        waves.is_local,
        np.ascontiguousarray(waves.lists.size, np.int64),
        waves.order,
        waves.ends,
        len(waves.ends),
        waves.shared_order,
        len(waves.order),
        *sets.list_arguments(),
        instructions,
        _UNKNOWN if context.l1_bytes is None else count_lines(context.l1_bytes),
        _UNKNOWN if l2_bytes is None else count_lines(l2_bytes),
        int(settings.evicts_on_store),
        instructions=instructions,
        found=found,
    )
    if not is_done:
        return None
    chosen = np.flatnonzero(found.any(axis=1))
    return list_hits(chosen, found[chosen], waves, context, ways=None), sums.finish()
