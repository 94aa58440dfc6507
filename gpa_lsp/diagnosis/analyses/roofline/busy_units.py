"""Which unit of the GPU is busiest, by the profiler's own percentages.

Roofs are about bytes and operations. A unit can be full at few of either: each access of one sector takes the data stage of L1 as long as one of
four does, and a load instruction a turn of its queue however little it loads. So a kernel far below all roofs need not wait for latencies.

Source: NVIDIA, Nsight Compute Profiling Guide, Metrics Structure (throughputs and their breakdowns).
"""

from collections.abc import Mapping

from gpa_lsp.diagnosis.analyses.roofline.throughput_names import (
    ELAPSED_SHARE,
    MEMORY_THROUGHPUT,
    SM_THROUGHPUT,
    list_members,
)
from gpa_lsp.diagnosis.analyses.roofline.totals import read_count
from gpa_lsp.diagnosis.analyses.roofline.unit_names import describe_unit
from gpa_lsp.diagnosis.analyses.roofline_model import BusyUnit
from gpa_lsp.gpu.device.model import L1_CEILING, L2_CEILING
from gpa_lsp.profile.model import Launch

_MOST_RATIO = 2.0  # Counters of several passes exceed 1 by a little; broken files by much


def read_busy_units(launch: Launch) -> dict[str, float]:
    """The profiler's name of a unit, without suffix → share of its peak over the elapsed time; empty when not collected."""
    found = {}
    for throughput in (SM_THROUGHPUT, MEMORY_THROUGHPUT):
        for unit in list_members(launch, throughput):
            percent = read_count(launch, f"{unit}{ELAPSED_SHARE}")
            if percent is not None and percent / 100 <= _MOST_RATIO:
                found[unit] = percent / 100
    return found


def find_busiest(busy_s: Mapping[str, float], duration_s: float, dram_ceiling: float) -> BusyUnit | None:
    """The unit nearest to what it sustains; of equal ones that of the memory. None of nothing.

    >>> find_busiest({"sm__inst_executed_pipe_lsu": 0.7, "l1tex__lsuin_requests": 0.7, "dram__cycles_active": 0.02}, 1.0, 0.95)
    BusyUnit(name='L1 requests of loads and stores', is_memory=True, share_ratio=0.7, ceiling_ratio=0.97)
    """
    ceilings = {"l1tex": L1_CEILING, "lts": L2_CEILING, "dram": dram_ceiling, "fbpa": dram_ceiling, "gpu": 1.0}
    units = [
        BusyUnit(
            name=describe_unit(unit),
            is_memory=unit.partition("__")[0] in ceilings,
            share_ratio=busy / duration_s,
            ceiling_ratio=ceilings.get(unit.partition("__")[0], 1.0),
        )
        for unit, busy in busy_s.items()
    ]
    return max(units, key=lambda unit: (unit.nearness, unit.is_memory), default=None)
