"""Which unit of the GPU is busiest, by the profiler's own percentages.

Roofs are about bytes and operations. A unit can be full at few of either: each access of one sector takes the data stage of L1 as long as one of
four does, and a load instruction a turn of its queue however little it loads. So a kernel far below all roofs need not wait for latencies.

Source: NVIDIA, Nsight Compute Profiling Guide, Metrics Structure (throughputs and their breakdowns).
"""

from collections.abc import Mapping

from gpa_lsp.diagnosis.analyses.roofline.counts import read_count
from gpa_lsp.diagnosis.analyses.roofline_model import BusyUnit
from gpa_lsp.gpu.device.model import L1_CEILING, L2_CEILING
from gpa_lsp.profile.model import Launch

SM_THROUGHPUT, MEMORY_THROUGHPUT = "sm__throughput", "gpu__compute_memory_throughput"

# Suffix of a unit's share of its peak, in percent, over all of the launch
ELAPSED_SHARE = ".avg.pct_of_peak_sustained_elapsed"


def list_members(launch: Launch, throughput: str) -> tuple[str, ...]:
    """Names without suffix of the units whose largest share a throughput is; empty when the report does not list them."""
    listed = launch.metrics.get(f"breakdown:{throughput}{ELAPSED_SHARE}")
    if listed is None or not isinstance(listed.value, str):
        return ()
    names = (name.strip() for name in listed.value.split(","))
    return tuple(dict.fromkeys(name.removesuffix(ELAPSED_SHARE) for name in names if name.endswith(ELAPSED_SHARE)))


# Names without suffix. Source: NVIDIA, Nsight Compute Profiling Guide, Metrics Decoder (units, pipelines, quantities).
UNIT_NAMES: dict[str, str] = {
    "sm__inst_executed": "instructions executed",
    "sm__issue_active": "instruction issue",
    "sm__inst_executed_pipe_adu": "address divergence unit",
    "sm__inst_executed_pipe_alu": "ALU pipe (integer adds, logic, comparisons)",
    "sm__inst_executed_pipe_cbu_pred_on_any": "branches and barriers (CBU)",
    "sm__inst_executed_pipe_fp16": "FP16 pipe",
    "sm__inst_executed_pipe_ipa": "attribute interpolation",
    "sm__inst_executed_pipe_lsu": "load and store instructions",
    "sm__inst_executed_pipe_tex": "texture instructions",
    "sm__inst_executed_pipe_uniform": "uniform datapath",
    "sm__inst_executed_pipe_xu": "special functions and conversions (XU)",
    "sm__pipe_alu_cycles_active": "ALU pipe (integer adds, logic, comparisons)",
    "sm__pipe_aluheavy_cycles_active": "ALU pipe, heavy half",
    "sm__pipe_fma_cycles_active": "FMA pipe (FP32, integer multiplications)",
    "sm__pipe_fmaheavy_cycles_active": "FMA pipe, the half that multiplies integers",
    "sm__pipe_fmalite_cycles_active": "FMA pipe, the half without integers",
    "sm__pipe_fp64_cycles_active": "FP64 pipe",
    "sm__pipe_shared_cycles_active": "FP64, FP16 and tensor pipes together",
    "sm__pipe_tensor_cycles_active": "tensor cores",
    "sm__pipe_tensor_op_dmma_cycles_active": "tensor cores in FP64",
    "sm__pipe_tma_cycles_active": "tensor memory accelerator (TMA)",
    "sm__mio_inst_issued": "instructions to memory units (MIO)",
    "sm__mio_pq_read_cycles_active": "MIO queue, reads",
    "sm__mio_pq_write_cycles_active": "MIO queue, writes",
    "sm__mio2rf_writeback_active": "results from memory units to registers",
    "gpu__compute_memory_access_throughput_internal_activity": "memory accesses (a counter NVIDIA does not explain)",
    "idc__request_cycles_active": "indexed constants",
    "dram__cycles_active": "DRAM",
    "fbpa__dram_sectors": "DRAM sectors at the memory controller",
    "l1tex__data_bank_reads": "L1 data banks, reads",
    "l1tex__data_bank_writes": "L1 data banks, writes",
    "l1tex__data_pipe_lsu_wavefronts": "L1 wavefronts of loads and stores",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared": "shared memory wavefronts",
    "l1tex__data_pipe_tex_wavefronts": "L1 wavefronts of textures",
    "l1tex__f_wavefronts": "texture filter",
    "l1tex__lsu_writeback_active": "L1 results of loads",
    "l1tex__lsuin_requests": "L1 requests of loads and stores",
    "l1tex__m_l1tex2xbar_req_cycles_active": "L1 to L2, requests and stores",
    "l1tex__m_xbar2l1tex_read_sectors": "L2 to L1, sectors",
    "l1tex__tex_writeback_active": "L1 results of textures",
    "l1tex__texin_sm2tex_req_cycles_active": "texture requests",
    "lts__d_atomic_input_cycles_active": "L2 atomics",
    "lts__d_sectors": "L2 data, sectors",
    "lts__d_sectors_fill_device": "L2 fills from DRAM",
    "lts__d_sectors_fill_sysmem": "L2 fills from system memory",
    "lts__lts2xbar_cycles_active": "L2 to the SMs",
    "lts__t_sectors": "L2 sectors",
    "lts__t_tag_requests": "L2 tag lookups",
    "lts__xbar2lts_cycles_active": "the SMs to L2",
}


def describe_unit(metric: str) -> str:
    """The meaning of a name; the name itself where nothing is known of it.

    >>> describe_unit("sm__issue_active"), describe_unit("lts__unheard_of")
    ('instruction issue', 'lts__unheard_of')
    """
    return UNIT_NAMES.get(metric, metric)


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
