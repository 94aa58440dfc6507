"""What a roofline could not know, and which metrics would tell."""

from collections.abc import Iterator

from gpa_lsp.diagnosis.analyses.answers import Missing
from gpa_lsp.diagnosis.analyses.roofline.instructions import THREAD_TABLES, WARP_TABLES
from gpa_lsp.diagnosis.analyses.roofline.operations import COUNTED
from gpa_lsp.diagnosis.analyses.roofline.traffic import RECIPES
from gpa_lsp.diagnosis.analyses.roofline.work import Work
from gpa_lsp.foundation.prose import say
from gpa_lsp.gpu.device.model import Machine, MemoryLevel, OperationKind

_MIX_SECTION = "SourceCounters"
_COUNTED_SECTIONS = {
    OperationKind.FP64: "SpeedOfLight_RooflineChart",
    OperationKind.FP32: "SpeedOfLight_RooflineChart",
    OperationKind.FP16: "SpeedOfLight_HierarchicalHalfRooflineChart",
}
_MEMORY_SECTION = "MemoryWorkloadAnalysis_Tables"

TIME = Missing(what="the time of the launches", metrics=("gpu__time_duration.sum",), section="SpeedOfLight")

# The counters to ask for
_WANTED = {
    MemoryLevel.SHARED: RECIPES[MemoryLevel.SHARED][0],
    MemoryLevel.L1: RECIPES[MemoryLevel.L1][1],
    MemoryLevel.L2: RECIPES[MemoryLevel.L2][0],
    MemoryLevel.DRAM: RECIPES[MemoryLevel.DRAM][0],
}

# Later GPUs count the bytes of DRAM under other names, and a name that a GPU lacks makes the profiler give up
_LAST_OF_THESE_NAMES = (9, 0)


def list_missing(work: Work, machine: Machine) -> tuple[Missing, ...]:
    """Types and levels with a ceiling, or a possible one, whose work is unknown; and ceilings that are unknown."""
    return (*_list_operations(work, machine), *_list_traffic(work, machine), *_list_roofs(work, machine))


def _list_operations(work: Work, machine: Machine) -> Iterator[Missing]:
    unknown = [kind for kind in OperationKind if kind not in work.operations]
    for kind in unknown:
        if kind in COUNTED:
            names = tuple(f"{counters[0]}.sum" for counters, _ in COUNTED[kind])
            yield Missing(what=f"{kind} operations", metrics=names, needs_all=True, section=_COUNTED_SECTIONS[kind])
    if OperationKind.INT32 in unknown or OperationKind.SPECIAL in unknown:
        yield Missing(what="integer operations and special functions", metrics=THREAD_TABLES[:1], section=_MIX_SECTION)
    tensor = [kind.value for kind in unknown if kind.is_tensor and machine.find_peak(kind) is not None]
    if tensor:
        yield Missing(
            what=f"operations of the tensor cores ({', '.join(tensor)})", metrics=WARP_TABLES[:1], section=_MIX_SECTION
        )


def _list_traffic(work: Work, machine: Machine) -> Iterator[Missing]:
    is_later = machine.compute_capability is not None and machine.compute_capability > _LAST_OF_THESE_NAMES
    for level, recipe in _WANTED.items():
        traffic = work.traffic.get(level)
        counters = () if level is MemoryLevel.DRAM and is_later else recipe.counters
        if traffic is None or not traffic.is_exact:
            yield Missing(
                what=f"bytes of {level}" if traffic is None else f"bytes of {level} as counted",
                metrics=tuple(f"{counter}.sum" for counter in counters),
                needs_all=len(counters) > 1,
                section=_MEMORY_SECTION,
            )


def _list_roofs(work: Work, machine: Machine) -> Iterator[Missing]:
    for kind, count in work.operations.items():
        peak = machine.find_peak(kind)
        if count.operations > 0 and (peak is None or not peak.ops_per_s):
            yield Missing(what=f"the {kind} peak", why=say("{gpu} has no published figure for it", gpu=machine.name))
    for level in work.traffic:
        bandwidth = machine.find_bandwidth(level)
        if bandwidth is None or not bandwidth.bytes_per_s:
            yield Missing(
                what=f"the bandwidth of {level}", why=say("{gpu} has no published figure for it", gpu=machine.name)
            )
