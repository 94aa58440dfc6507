"""One SM and its share of L2 and DRAM, as numbers: :class:`SmModel`."""

from gpa_lsp.basis.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SmModel:
    """See :mod:`gpa_lsp.simulator.core` for what each does. Cycles are of the SM, rates are one SM's share."""

    queue_cycles: float = 3.0
    mio_queue_instructions: int = 8
    lg_queue_instructions: int = 6
    accept_cycles: float = 2.0
    address_cycles: float = 4.0
    data_queue_cycles: float = 8.0
    tag_queue_cycles: float = 8.0
    read_cycles: float = 9.0
    store_queue_instructions: int = 24
    store_bytes_per_cycle: float = 32.0
    store_retire_cycles: float = 60.0
    write_buffer_cycles: float = 300.0
    written_back_share: float = 1.0
    miss_requests: int = 256
    l1_lines: int = 512
    l2_bytes_per_cycle: float = 32.0
    l2_cycles: float = 200.0
    l2_hit_share: float = 0.0
    dram_bytes_per_cycle: float = 6.0
    dram_cycles: float = 430.0
    branch_cycles: float = 12.0
    exit_cycles: float = 15.0
    barrier_cycles: float = 14.0
    membar_cycles: float = 200.0
    code_cold_cycles: float = 500.0
    code_prefetch_lines: int = 4
    code_stream_cycles: float = 2.0
    code_near_cycles: float = 8.0
    code_near_lines: int = 128
    constant_cold_cycles: float = 500.0
    constant_near_cycles: float = 20.0
    warp_launch_cycles: float = 2.0
    block_launch_cycles: float = 30.0
    dispatch_share: float = 0.35
