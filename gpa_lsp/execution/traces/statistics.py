"""How much the measures of a kernel differ between launches: mean, least, most and deviation.

Source: CUDAAdvisor (CGO 2018), section 3.3, which merges instances of a kernel this way.
"""

import math
from collections.abc import Sequence

from msgspec import Struct

from gpa_lsp.execution.traces.model import AccessGroupKind
from gpa_lsp.execution.traces.results import TraceAnalyses
from gpa_lsp.foundation.numbers import Quantity


class MeasureSpread(Struct, frozen=True, kw_only=True):
    """One measure over several launches."""

    measure: str  # its name, for people
    quantity: Quantity  # its unit
    launches: int  # that have it
    mean: float  # of them
    least: float  # of them
    most: float  # of them
    deviation: float  # standard deviation over these launches themselves (not an estimate for others); 0 for one


Measure = tuple[str, Quantity, float | None]  # Name, unit, value; None where a launch has none


def list_measures(analyses: TraceAnalyses) -> tuple[Measure, ...]:
    """The measures of one launch that are compared: name, unit, value; None where the launch has none."""
    rows: list[Measure] = []
    for kind in AccessGroupKind:
        totals = analyses.find_global_totals(kind)
        has = totals.requests > 0
        rows += [
            (f"global {kind.value}: requests", Quantity.COUNT, float(totals.requests)),
            (f"global {kind.value}: sectors per request", Quantity.NUMBER, totals.sectors_per_request if has else None),
            (f"global {kind.value}: lines per request", Quantity.NUMBER, totals.lines_per_request if has else None),
            (f"global {kind.value}: excess sectors", Quantity.RATIO, totals.excess_ratio if has else None),
        ]
    branches = analyses.branches
    rows.append(("branches that diverge", Quantity.RATIO, branches.divergent_ratio if branches.executions else None))
    rows.append(("lane efficiency", Quantity.RATIO, branches.lane_ratio))
    shared = sum(one.wavefronts for one in analyses.banks)
    requests = sum(one.requests for one in analyses.banks)
    rows.append(("shared memory: wavefronts per request", Quantity.NUMBER, shared / requests if requests else None))
    reuse = analyses.block_lines.total
    rows.append(("lines used once in their block", Quantity.RATIO, reuse.streaming_ratio if reuse.references else None))
    rows.append(("mean reuse distance in lines, within blocks", Quantity.NUMBER, reuse.mean_distance))
    rows.append(("predicted L1 hit rate", Quantity.RATIO, analyses.caches.l1_hit_ratio))
    rows.append(("predicted L2 hit rate", Quantity.RATIO, analyses.caches.l2_hit_ratio))
    return tuple(rows)


def spread_listed(launches: Sequence[Sequence[Measure]]) -> tuple[MeasureSpread, ...]:
    """Each measure over launches of one kernel, of what :func:`list_measures` gave for each; measures that no launch has are left out."""
    values: dict[tuple[str, Quantity], list[float]] = {}
    for measures in launches:
        for name, quantity, value in measures:
            if value is not None:
                values.setdefault((name, quantity), []).append(value)
    spreads = []
    for (name, quantity), found in values.items():
        mean = math.fsum(found) / len(found)
        spreads.append(
            MeasureSpread(
                measure=name,
                quantity=quantity,
                launches=len(found),
                mean=mean,
                least=min(found),
                most=max(found),
                deviation=math.sqrt(math.fsum((value - mean) ** 2 for value in found) / len(found)),
            )
        )
    return tuple(spreads)
