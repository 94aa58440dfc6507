"""One SM and its share of L2 and DRAM, as numbers: :class:`SmModel`, built by :func:`build_model`."""

from dataclasses import replace

from gpa_lsp.arch.model import Architecture
from gpa_lsp.basis.errors import InputError
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.device.model import Machine, MemoryLevel


@dataclass(frozen=True, slots=True, kw_only=True)
class SmModel:
    """See :mod:`gpa_lsp.simulator.core` for what each does. Cycles are of the SM, rates are one SM's share."""

    queue_cycles: float = 3.0
    mio_queue_instructions: int = 6
    lg_queue_instructions: int = 4
    accept_cycles: float = 2.0
    address_cycles: float = 4.0
    data_queue_cycles: float = 8.0
    tag_queue_cycles: float = 8.0
    read_cycles: float = 9.0
    store_queue_instructions: int = 16
    store_bytes_per_cycle: float = 32.0
    store_retire_cycles: float = 60.0
    read_backlog_cycles: float = 100.0
    write_buffer_cycles: float = 300.0
    written_back_share: float = 1.0
    miss_requests: int = 256
    l1_lines: int = 512
    l2_bytes_per_cycle: float = 32.0
    l2_cycles: float = 200.0
    l2_hit_share: float = 0.0
    dram_bytes_per_cycle: float = 6.0
    dram_cycles: float = 430.0
    branch_resolve_cycles: float = 3.0
    jump_fetch_cycles: float = 5.0
    return_resolve_cycles: float = 29.0
    converge_cycles: float = 5.0
    exit_cycles: float = 15.0
    barrier_cycles: float = 14.0
    membar_cycles: float = 200.0
    warp_start_cycles: float = 6.0
    code_first_cycles: float = 200.0
    code_cold_cycles: float = 30.0
    code_prefetch_lines: int = 8
    code_stream_cycles: float = 2.0
    code_near_cycles: float = 5.0
    code_near_lines: int = 128
    constant_cold_cycles: float = 500.0
    constant_near_cycles: float = 79.0
    warp_launch_cycles: float = 2.0
    block_launch_cycles: float = 30.0
    block_interval_cycles: float = 0.0
    dispatch_share: float = 0.35
    launch_cycles: float = 3000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchTraffic:
    """What the model has to know of a launch's data.

    Attributes:
        active_sms: SMs that get a block.
        shared_bytes_per_sm: shared memory of the resident blocks, the driver's part included.
        written_bytes: by the whole launch, to L2.
        l2_hit_share: of the sectors that an SM asks for first, those another SM has brought into L2.
        carveout_bytes: shared memory the SM was set to; None where that is not known.
    """

    active_sms: int
    shared_bytes_per_sm: int
    written_bytes: float
    l2_hit_share: float
    carveout_bytes: int | None = None


_HBM_SHARE, _GDDR_SHARE = 0.83, 0.93
_NARROWEST_HBM_BITS = 1025
_L2_SHARE = 0.8
_DIRTY_SHARE = 0.55
_ECC_BYTES = 1.15
_SM_L2_BYTES = 64.0
_BLOCKS_PER_CYCLE = 0.87


def build_model(
    architecture: Architecture,
    machine: Machine,
    l2_bytes: float,
    traffic: LaunchTraffic,
    *,
    is_hbm: bool,
    has_inline_ecc: bool,
) -> SmModel:
    """The SM of a GPU, with its share of what all share.

    Raises:
        InputError: the machine's clocks or bandwidths are not known.
    """
    dram, l2 = machine.find_bandwidth(MemoryLevel.DRAM), machine.find_bandwidth(MemoryLevel.L2)
    sm_hz, sm_count = machine.clocks.sm_hz, machine.sm_count
    if dram is None or dram.bytes_per_s is None or sm_hz is None or sm_count is None:
        message = f"the clocks or the bandwidth of the {machine.name} are not known"
        raise InputError(message, remedy="name a GPU with --machine")
    dram_rate = dram.bytes_per_s * (_HBM_SHARE if is_hbm else _GDDR_SHARE) / (_ECC_BYTES if has_inline_ecc else 1.0)
    l2_rate = (l2.bytes_per_s if l2 is not None and l2.bytes_per_s else 4 * dram.bytes_per_s) * _L2_SHARE
    per_sm = 1.0 / sm_hz / traffic.active_sms
    hierarchy = architecture.hierarchy
    line = architecture.caches.line_bytes.value
    carveouts = architecture.occupancy.shared_carveouts_bytes.value
    needed = traffic.shared_bytes_per_sm
    shared = traffic.carveout_bytes or min((size for size in carveouts if size >= needed), default=max(carveouts))
    l1_bytes = max(0, architecture.caches.unified_data_cache_bytes.value - max(shared, needed))
    written = traffic.written_bytes
    l2_cycles = hierarchy.l2_near_cycles.value or 220.0
    dram_cycles = hierarchy.dram_tlb_warm_cycles.value or 500.0
    return SmModel(
        l1_lines=l1_bytes // line,
        l2_bytes_per_cycle=min(_SM_L2_BYTES, l2_rate * per_sm),
        store_bytes_per_cycle=min(32.0, l2_rate * per_sm),
        l2_cycles=l2_cycles - (hierarchy.l1_hit_cycles.value or 33.0),
        dram_cycles=dram_cycles - (hierarchy.l1_hit_cycles.value or 33.0),
        dram_bytes_per_cycle=min(_SM_L2_BYTES, dram_rate * per_sm),
        l2_hit_share=traffic.l2_hit_share,
        written_back_share=max(0.0, 1.0 - _DIRTY_SHARE * l2_bytes / written) if written else 0.0,
        constant_cold_cycles=l2_cycles + 180.0,
        constant_near_cycles=hierarchy.constant_operand_miss_cycles.value or 79.0,
        block_interval_cycles=sm_count / _BLOCKS_PER_CYCLE,
        jump_fetch_cycles=10.0 if architecture.compute_capability[0] in (7, 12) else 5.0,
        code_cold_cycles=90.0 if architecture.compute_capability[0] < 8 else 30.0,
    )


def change(model: SmModel, **values: float) -> SmModel:
    """A model with other numbers."""
    return replace(model, **values)  # type: ignore[arg-type]
