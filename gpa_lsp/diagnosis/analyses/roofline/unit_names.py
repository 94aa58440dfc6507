"""What the profiler's names of its units' activities mean, for people."""

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
