"""A small kernel, and launches of it that hypothesis makes up, most of them senseless."""

from hypothesis import strategies as st

from tests.rows.written import write_kernel

TEXT = """
    B-:R-:W2:-:S02  LDG.E R2, [R4.64]       # selected=10
    B2:R-:W-:-:S05  FFMA R2, R2, R2, 1      # long_scoreboard=80
    B-:R-:W-:-:S05  EXIT                    # selected=10
"""

NO_SHARED = {"launch__shared_mem_per_block_static": 0.0, "launch__shared_mem_per_block_dynamic": 0.0}

absurd = st.sampled_from(
    [0.0, -1.0, 1.0, 7.0, 48.0, 255.0, 1e5, 1e9, 1e300, -1e300, 1e-300, float("nan"), float("inf")]
)
METRICS = (
    "launch__registers_per_thread",
    "launch__shared_mem_per_block_static",
    "launch__shared_mem_per_block_dynamic",
    "launch__shared_mem_config_size",
    "launch__barrier_count",
    "launch__sm_count",
    "launch__cluster_size",
    "launch__cluster_max_active",
    "launch__occupancy_limit_shared_mem",
    "launch__waves_per_multiprocessor",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "sm__maximum_warps_per_active_cycle_pct",
    "sm__cycles_active.min",
    "sm__cycles_active.avg",
    "sm__cycles_active.max",
    "sm__cycles_elapsed.max",
    "sm__inst_executed.avg",
    "sm__inst_executed.max",
    "smsp__cycles_active.avg",
    "smsp__cycles_active.max",
    "lts__t_sectors.avg",
    "lts__t_sectors.max",
    "lts__t_sectors.max.pct_of_peak_sustained_elapsed",
    "smsp__issue_active.avg.per_cycle_active",
    "smsp__warps_active.avg.per_cycle_active",
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
)
sizes = st.sampled_from([0, 1, 3, 32, 100, 1024, 65535, 2**31 - 1])
launches = st.builds(
    lambda metrics, grid, block, capability: write_kernel(
        TEXT, compute_capability=capability, grid=grid, block=block, metrics=metrics
    ),
    st.dictionaries(st.sampled_from(METRICS), absurd),
    st.tuples(sizes, sizes, sizes),
    st.tuples(sizes, st.just(1), st.just(1)),
    st.sampled_from([(7, 0), (7, 5), (9, 0), (12, 0)]),
)
