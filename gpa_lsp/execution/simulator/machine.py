"""One SM and its share of L2 and DRAM, as numbers: :class:`SmModel`, built by :func:`build_model`."""

from msgspec import Struct

from gpa_lsp.foundation.errors import InputError
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.device.model import Machine, MemoryFacts, MemoryLevel
from gpa_lsp.kernel.dataflow.accesses import SECTOR_BYTES


class SmModel(Struct, frozen=True, kw_only=True):
    """An SM in a launch. Fields that :class:`~gpa_lsp.gpu.arch.sections.Simulation` has mean the same here; rates are one SM's share."""

    accept_cycles: float  # between instructions that all sub-cores together give to the LSU
    address_cycles: float  # between those of one sub-core
    l1_lines: int  # of L1, beside shared memory
    # lines that L1 looks up in a cycle in which it hands over no data; 0 where it does both at once
    l1_tags_per_cycle: float
    l2_bytes_per_cycle: float  # from L2
    l2_cycles: float  # unloaded, behind L1
    l2_hit_ratio: float  # of the sectors the SM asks for first, those that another has brought into L2
    dram_bytes_per_cycle: float  # to and from DRAM
    fetched_bytes: float  # from DRAM for each sector that is asked of it
    dram_cycles: float  # unloaded, behind L1
    # of what is stored, what has to go to DRAM while the launch runs, and what has to come from there for it
    written_back_ratio: float
    atomic_cycles: float  # for each cycle of L2 in which an atomic operation holds its address: with those of the other SMs that meet there
    block_interval_cycles: float  # between blocks that the SM is given, as all get theirs from one place
    queue_cycles: float
    mio_queue_instructions: int
    lg_queue_instructions: int
    data_queue_cycles: float
    tag_queue_cycles: float
    read_cycles: float
    store_queue_instructions: int
    store_bytes_per_cycle: float
    store_retire_cycles: float
    read_backlog_cycles: float
    write_buffer_cycles: float
    miss_queue_instructions: int
    branch_resolve_cycles: float
    jump_fetch_cycles: float
    return_resolve_cycles: float
    converge_cycles: float
    exit_resolve_cycles: float
    barrier_open_cycles: float
    membar_cycles: float
    warp_start_cycles: float
    code_first_cycles: float
    code_cold_cycles: float
    code_prefetch_lines: int
    code_stream_cycles: float
    code_near_cycles: float
    code_cache_lines: int
    constant_cold_cycles: float
    constant_near_cycles: float
    warp_launch_cycles: float
    block_launch_cycles: float
    launch_cycles: float
    operand_window_cycles: float
    bank_registers_per_cycle: float


class Traffic(Struct, frozen=True, kw_only=True):
    """What a launch moves."""

    stored_bytes: float  # to L2
    # of them, those of distinct sectors: what a block stores again to where it has stored replaces it in L2
    written_bytes: float
    parted_bytes: float  # of distinct sectors that an instruction stores a part of
    filled_bytes: float  # of them, those of which all stores leave a part
    l2_hit_ratio: float  # of the sectors a block reads first, those that another block has brought into L2
    meeting_blocks: float  # whose atomic operations go to the same sector, where the most do; at least 1
    read_bytes: float = 0.0  # of distinct sectors
    refetched_ratio: float = 1.0  # what is read from DRAM, as L2 has lost it from one wave of blocks to the next, of ``read_bytes``; at least 1
    fetched_ratio: float = 1.0  # what DRAM gives at least where a sector is asked of it, of those that are asked


_L2_RATIO = 0.8  # Of the peak of L2 that is reached; assumed
_SM_L2_BYTES_PER_CYCLE = 64.0
_L1_CYCLES, _L2_CYCLES, _DRAM_CYCLES = 33.0, 220.0, 530.0  # Where a table has none


def build_model(
    architecture: Architecture,
    machine: Machine,
    memory: MemoryFacts,
    traffic: Traffic,
    *,
    active_sms: int,
    sharing_sms: float,
    shared_bytes_per_sm: int,
) -> SmModel:
    """The SM of a GPU in a launch.

    Args:
        active_sms: that get a block.
        sharing_sms: as the busiest one, that have as many blocks between them as there are.
        shared_bytes_per_sm: of all resident blocks.

    Raises:
        InputError: the machine's clocks or bandwidths are not known.
    """
    dram, l2 = machine.find_bandwidth(MemoryLevel.DRAM), machine.find_bandwidth(MemoryLevel.L2)
    sm_hz, sm_count = machine.clocks.sm_hz, machine.sm_count
    if dram is None or dram.bytes_per_s is None or sm_hz is None or sm_count is None:
        message = f"the clocks or the bandwidth of the {machine.name} are not known"
        raise InputError(message, remedy="name a GPU with --machine")
    dram_rate = dram.bytes_per_s * memory.achieved_ratio
    l2_rate = (l2.bytes_per_s if l2 is not None and l2.bytes_per_s else 4 * dram.bytes_per_s) * _L2_RATIO
    per_sm = 1.0 / sm_hz / sharing_sms
    hierarchy, figures = architecture.hierarchy, architecture.simulation
    l1_cycles = hierarchy.l1_hit_cycles.value or _L1_CYCLES
    own = {name: getattr(figures, name).value for name in figures.__struct_fields__ if name in _FIELDS}
    own["store_bytes_per_cycle"] = min(own["store_bytes_per_cycle"], l2_rate * per_sm)
    return SmModel(
        accept_cycles=architecture.sm.memory_accept_interval_cycles.value,
        address_cycles=architecture.sm.memory_issue_interval_cycles.value,
        l1_lines=memory.find_l1_bytes(architecture, shared_bytes_per_sm) // architecture.caches.line_bytes.value,
        l1_tags_per_cycle=float(architecture.caches.l1_tags_per_cycle.value or 0),
        l2_bytes_per_cycle=min(_SM_L2_BYTES_PER_CYCLE, l2_rate * per_sm),
        l2_cycles=(hierarchy.l2_near_cycles.value or _L2_CYCLES) - l1_cycles,
        l2_hit_ratio=traffic.l2_hit_ratio,
        dram_bytes_per_cycle=min(_SM_L2_BYTES_PER_CYCLE, dram_rate * per_sm),
        fetched_bytes=SECTOR_BYTES * traffic.fetched_ratio,
        dram_cycles=(hierarchy.dram_tlb_warm_cycles.value or _DRAM_CYCLES) - l1_cycles,
        written_back_ratio=_find_written_back(traffic, memory),
        atomic_cycles=sm_hz / (machine.clocks.l2_hz or sm_hz) * min(active_sms, traffic.meeting_blocks),
        block_interval_cycles=sm_count / figures.launched_blocks_per_cycle.value,
        **own,
    )


_FIELDS = frozenset(SmModel.__struct_fields__)


def _find_written_back(traffic: Traffic, memory: MemoryFacts) -> float:
    """Of what is stored: L2 keeps some of what is written, and the rest has to make way for it. A sector that is stored in part is read before,
    at once where check bits are among the data (T4: lts__t_sectors_data_ecc), else where its rest is still missing in the end.
    """
    if not traffic.stored_bytes:
        return 0.0
    leaving = memory.find_leaving_bytes(traffic.written_bytes)
    filled = traffic.parted_bytes if memory.check_ratio > 1.0 else traffic.filled_bytes
    return min(1.0, (leaving + filled) / traffic.stored_bytes)
