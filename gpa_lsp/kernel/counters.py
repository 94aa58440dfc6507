"""The per-instruction counters a kernel carries besides its samples and executions, under names that do not change with the profiler's version."""

COUNTERS: dict[str, tuple[str, ...]] = {
    "thread_executions": ("thread_inst_executed",),
    "thread_executions_true": ("thread_inst_executed_true",),
    "divergent_branch_targets": ("smsp__branch_targets_threads_divergent",),
    "global_tag_requests": ("memory_l1_tag_requests_global",),
    "global_sectors": ("memory_l2_theoretical_sectors_global", "memory_l2_sectors_global"),
    "global_sectors_ideal": ("memory_l2_theoretical_sectors_global_ideal", "memory_l2_sectors_global_ideal"),
    "local_sectors": ("memory_l2_theoretical_sectors_local", "memory_l2_sectors_local"),
    "shared_wavefronts": ("memory_l1_wavefronts_shared",),
    "shared_wavefronts_ideal": ("memory_l1_wavefronts_shared_ideal",),
}
"""Our name → the profiler's names of the metric, newest first; the first that a launch has is read.

* ``thread_executions``: threads that executed the instruction; ``thread_executions_true``: of these, those whose guard held.
* ``divergent_branch_targets``: executions of a branch whose threads parted.
* ``global_sectors``: 32-byte sectors that global accesses asked of L2, and the least that could do (``_ideal``).
* ``shared_wavefronts``: passes through shared memory, and the least that could do.

Source: metric names of real reports, 2020.3 to 2026.2.
"""
