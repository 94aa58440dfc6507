"""Figures of one SM and its share of L2 and DRAM: :class:`SmModel`, built by :func:`build_model`; traffic of a launch: :func:`find_traffic`."""

from collections import defaultdict
from math import inf, prod

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.execution.accesses.l2_traffic import (
    BlockPlace,
    L2Cache,
    Numbers,
    Sectors,
    count_readers,
    list_distinct,
    measure_traffic,
)
from gpa_lsp.execution.simulator.program import Kind, SassProgram
from gpa_lsp.execution.simulator.warp_walk import LOCAL_SECTOR, SHARED_SECTORS, KernelWalk, list_touched
from gpa_lsp.execution.volumes.devices import SM_BYTES_PER_CYCLE
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
    """Bytes that a launch moves, and what of them L2 keeps."""

    stored_bytes: float  # to L2
    # of them, those of distinct sectors: what is stored again to where it was stored replaces it in L2, while it is there
    written_bytes: float
    parted_bytes: float  # of distinct sectors that an instruction stores a part of
    filled_bytes: float  # of them, those of which all stores leave a part, and those that atomic operations change
    l2_hit_ratio: float  # of the sectors a block reads first, those that another block has brought into L2
    meeting_blocks: float  # whose atomic operations go to the same sector, where the most do; at least 1
    read_bytes: float = 0.0  # of distinct sectors
    fetched_ratio: float = 1.0  # what DRAM gives at least where a sector is asked of it, of those that are asked


_L2_RATIO = 0.8  # Of the peak of L2 that is reached; assumed
_L1_CYCLES, _L2_CYCLES, _DRAM_CYCLES = 33.0, 220.0, 530.0  # Where a table has none


def build_model(
    architecture: Architecture,
    machine: Machine,
    memory: MemoryFacts,
    traffic: Traffic,
    *,
    sharing_sms: float,
    shared_bytes_per_sm: int,
) -> SmModel:
    """The SM of a GPU in a launch.

    Args:
        sharing_sms: SMs such as the busiest one that all blocks of the launch would fill.
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
        l2_bytes_per_cycle=min(SM_BYTES_PER_CYCLE, l2_rate * per_sm),
        l2_cycles=(hierarchy.l2_near_cycles.value or _L2_CYCLES) - l1_cycles,
        l2_hit_ratio=traffic.l2_hit_ratio,
        dram_bytes_per_cycle=min(SM_BYTES_PER_CYCLE, dram_rate * per_sm),
        fetched_bytes=SECTOR_BYTES * traffic.fetched_ratio,
        dram_cycles=(hierarchy.dram_tlb_warm_cycles.value or _DRAM_CYCLES) - l1_cycles,
        written_back_ratio=_find_written_back(traffic, memory),
        atomic_cycles=sm_hz / (machine.clocks.l2_hz or sm_hz) * min(sharing_sms, traffic.meeting_blocks),
        block_interval_cycles=sm_count / figures.launched_blocks_per_cycle.value,
        **own,
    )


_FIELDS = frozenset(SmModel.__struct_fields__)


def _find_written_back(traffic: Traffic, memory: MemoryFacts) -> float:
    """Part of the stored bytes that moves between L2 and DRAM while the launch runs: L2 keeps some of what is written, and the rest makes way for it.

    A sector that is stored in part is read before: at once where check bits are among the data (T4: lts__t_sectors_data_ecc), else where its rest is
    still missing in the end.
    """
    if not traffic.stored_bytes:
        return 0.0
    leaving = memory.find_leaving_bytes(traffic.written_bytes)
    filled = traffic.parted_bytes if memory.check_ratio > 1.0 else traffic.filled_bytes
    return min(1.0, (leaving + filled) / traffic.stored_bytes)


_WHOLE = 0.99  # Share of a sector from which on it counts as stored, by rounding


def find_traffic(
    walk: KernelWalk,
    program: SassProgram,
    widths: npt.NDArray[np.int64],
    mates_of: BlockPlace,
    *,
    resident_blocks: int | None = None,
    l2: L2Cache = L2Cache(size_bytes=None),  # noqa: B008  (frozen)
    fetch_bytes: int = SECTOR_BYTES,
) -> Traffic:
    """The traffic of all blocks, by those that were walked.

    Args:
        widths: int64[rows], bytes that an instruction accesses for a lane.
        mates_of: the block that stands for all.
        fetch_bytes: least that is fetched from DRAM.
        resident_blocks: blocks that all SMs hold at once; None for the whole grid.
    """
    kinds = np.array(program.kind)
    stores = np.isin(kinds, [Kind.STORE, Kind.REDUCTION])
    touched: list[dict[BlockPlace, list[Sectors]]] = [defaultdict(list) for _ in range(3)]
    reads, stored, parted = touched
    shares: dict[BlockPlace, list[Numbers]] = defaultdict(list)
    for one in walk.walks:
        counts = np.diff(one.first_sector)
        is_store = stores[np.repeat(one.instruction, counts)]
        given = np.bitwise_count(one.active) * widths[one.instruction]
        share = np.repeat(given / np.maximum(counts * SECTOR_BYTES, 1), counts)
        is_changed = np.repeat(kinds[one.instruction] == Kind.REDUCTION, counts)
        stored[one.block].append(one.sectors[is_store])
        parted[one.block].append(one.sectors[is_store & (share < 1)])
        # atomic operations need what was there before, however much of it they change
        shares[one.block].append(np.where(is_changed, -inf, share)[is_store])
        mine = one.sectors[~is_store]
        reads[one.block].append(mine[mine < LOCAL_SECTOR])
    grid = prod(walk.grid)
    (own, held, fetched), (own_stored, _, written) = measure_traffic(
        (reads, stored), walk.grid, mates_of, l2, resident=resident_blocks, extents=walk.extents
    )
    asked, fetch_sectors = float(len(own)) * grid, fetch_bytes // SECTOR_BYTES
    distinct_stored, scale = list_distinct(stored), grid * SECTOR_BYTES / max(1, len(reads))
    # of what blocks store, what none of them has stored before while it was in L2
    replaced = written / (grid * len(own_stored)) if len(own_stored) else 1.0
    return Traffic(
        stored_bytes=scale * sum(len(part) for parts in stored.values() for part in parts),
        written_bytes=scale * replaced * sum(map(len, distinct_stored.values())),
        parted_bytes=scale * replaced * sum(map(len, list_distinct(parted).values())),
        filled_bytes=scale * replaced * _count_filled(stored, shares, distinct_stored, walk.grid, mates_of),
        l2_hit_ratio=min(1.0, max(0.0, 1.0 - fetched / asked)) if asked else 0.0,
        meeting_blocks=_count_meeting(walk, program, mates_of),
        read_bytes=SECTOR_BYTES * held,
        fetched_ratio=fetch_sectors * len(np.unique(own // fetch_sectors)) / len(own) if len(own) else 1.0,
    )


def _count_meeting(walk: KernelWalk, program: SassProgram, mates_of: BlockPlace) -> float:
    """Blocks whose atomic operations go to the same sector: of each instruction that shares more than a few, the most."""
    most = 1.0
    for distinct in list_touched(walk.walks, np.isin(program.kind, [Kind.REDUCTION, Kind.ATOMIC])).values():
        own = distinct.get(mates_of, np.zeros(0, dtype=np.int64))
        readers = count_readers(own, distinct, walk.grid, mates_of)
        if np.count_nonzero(readers > 1) > SHARED_SECTORS * len(own):
            most = max(most, float(readers.max()))
    return most


def _count_filled(
    stored: dict[BlockPlace, list[Sectors]],
    shares: dict[BlockPlace, list[Numbers]],
    distinct: dict[BlockPlace, Sectors],
    grid: BlockPlace,
    mates_of: BlockPlace,
) -> int:
    """Number of distinct sectors of each block that its stores, and those of blocks that store there as well, leave a part of.

    Stores to one place are taken to be of different bytes of it.
    """
    writers = 1.0
    if mates_of in distinct and len(distinct[mates_of]):
        writers = float(count_readers(distinct[mates_of], distinct, grid, mates_of).mean())
    parted = 0
    for place, parts in stored.items():
        numbers = np.searchsorted(distinct[place], np.concatenate(parts))
        parted += int((np.bincount(numbers, np.concatenate(shares[place])) * writers < _WHOLE).sum())
    return parted
