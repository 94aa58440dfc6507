"""The per-instruction counters a kernel carries besides its samples and executions, under names that do not change with the profiler's version."""

from collections.abc import Mapping

from gpa_lsp.profile.instruction_counts import InstructionCounts, read_instruction_counts
from gpa_lsp.profile.model import Metric

COUNTERS: dict[str, tuple[str, ...]] = {
    "thread_executions": ("thread_inst_executed",),
    "thread_executions_true": ("thread_inst_executed_true",),
    "divergent_branch_targets": ("smsp__branch_targets_threads_divergent",),
    "global_tag_requests": ("memory_l1_tag_requests_global", "memory_l1_sectors_global"),
    "global_sectors": ("memory_l2_theoretical_sectors_global", "memory_l2_sectors_global"),
    "global_sectors_ideal": ("memory_l2_theoretical_sectors_global_ideal", "memory_l2_sectors_global_ideal"),
    "local_sectors": ("memory_l2_theoretical_sectors_local", "memory_l2_sectors_local"),
    "shared_wavefronts": ("memory_l1_wavefronts_shared", "memory_l1_sectors_shared"),
    "shared_wavefronts_ideal": ("memory_l1_wavefronts_shared_ideal", "memory_l1_sectors_shared_ideal"),
}
"""Our name → the profiler's names of the metric, newest first; the first that a launch has is read.

* ``thread_executions``: threads that executed the instruction; ``thread_executions_true``: of these, those whose guard held.
* ``divergent_branch_targets``: executions of a branch whose threads parted.
* ``global_tag_requests``: 128-byte lines that global accesses asked of L1, per warp and instruction.
* ``global_sectors``: 32-byte sectors that global accesses asked of L2 if L1 held none of them, and the least that could do (``_ideal``).
* ``local_sectors``: the same for local memory.
* ``shared_wavefronts``: passes through shared memory, and the least that could do.

Source: metric names of real reports, 2020.3 to 2026.2. In 13 reports the sectors of all instructions add up to the four
``l1tex__t_sectors_pipe_lsu_mem_global_op_…`` aggregates: exactly from compute capability 8.0 on, within 12 % on 7.0 and where copies to shared
memory or code that spins is among them. 2020.3 calls lines and wavefronts sectors: one per shared access of 32 neighbouring words.
"""


def read_counters(metrics: Mapping[str, Metric]) -> dict[str, InstructionCounts]:
    """The counters a launch has, by our names.

    Args:
        metrics: of a launch.

    Returns:
        Addresses and counts of each counter that was collected; no instruction listed means that none of that kind was executed.
    """
    found = {}
    for name, aliases in COUNTERS.items():
        columns = next((read_instruction_counts(metrics, alias) for alias in aliases if alias in metrics), None)
        if columns is not None:
            found[name] = columns
    return found
