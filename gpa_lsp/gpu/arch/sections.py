"""The sections of an architecture: SM, occupancy, caches, hierarchy, throughput, issue, producers, stalls.

A number of a table is a :class:`Figure` with its origin, or :class:`Unknown` with the reason there is none; both have ``.value``, None for the
latter. A field typed ``Figure[...]`` is known in every table, one typed ``... | Unknown`` may be missing. A sub-partition is a quarter of an SM,
with its own scheduler.
"""

import re
from enum import StrEnum
from typing import Generic, TypeVar

from msgspec import Struct

from gpa_lsp.foundation.errors import CatalogueError

T = TypeVar("T")


class Status(StrEnum):
    """The degree to which a value can be trusted."""

    MEASURED = "measured"  # A run on this architecture gave it, or code made for it shows it
    DOCUMENTED = "documented"  # The vendor, or data the vendor provided, says so
    # A model's constant, chosen so that it agrees with measurements on this architecture; the note says which model
    FITTED = "fitted"
    ASSUMED = "assumed"  # Carried over from a neighbour, proposed, or from a source that was not checked


class Figure(Struct, Generic[T], frozen=True, kw_only=True):
    """A value and where it comes from.

    >>> Figure(value=64, sources=("guide",), status=Status.DOCUMENTED).value
    64
    """

    value: T  # the value, in the unit its name ends with
    sources: tuple[str, ...]  # keys into ``Architecture.sources``; never empty
    status: Status  # how far it can be trusted
    note: str | None = None  # what else the reader must know; None when nothing
    # lowest and highest value the sources give; None where they agree or where there is one
    spread: tuple[float, float] | None = None


class Unknown(Struct, frozen=True, kw_only=True):
    """A value that is left out on purpose.

    >>> Unknown(why="no such instruction").value is None
    True
    """

    why: str  # the reason, one sentence without full stop

    @property
    def value(self) -> None:
        """Always None, so that a reader can ask any figure for its ``.value``, known or not."""
        return


# How people name an architecture: sm_90, sm_90a, compute_90, 9.0 or 90.
ARCHITECTURE_PATTERN = r"(?:(?:sm|compute)_)?(\d{1,2})\.?(\d)[af]?"


def parse_architecture_name(text: str) -> tuple[int, int] | None:
    """Compute capability of an architecture's name; None for other texts.

    >>> parse_architecture_name("sm_86"), parse_architecture_name("12.0"), parse_architecture_name("90"), parse_architecture_name("90x")
    ((8, 6), (12, 0), (9, 0), None)
    """
    match = re.fullmatch(ARCHITECTURE_PATTERN, text, re.ASCII)
    return None if match is None else (int(match[1]), int(match[2]))


def parse_compute_capability(text: str, file: str) -> tuple[int, int]:
    """``"8.6"`` as a pair.

    Raises:
        CatalogueError: it is not two numbers and a dot.

    >>> parse_compute_capability("12.1", "sm_120.toml")
    (12, 1)
    """
    major, dot, minor = text.partition(".")
    if not (dot and major.isdecimal() and minor.isdecimal()):
        raise CatalogueError(f'{file}: compute_capability {text!r} is not of the form "8.6"')
    return int(major), int(minor)


MaybeNumber = Figure[float] | Unknown  # A number that not every table knows


class ScoreboardKind(StrEnum):
    """The stall reason under which a wait for an instruction's scoreboard is counted."""

    LONG = "long"  # ``long_scoreboard``: answered by L1TEX
    SHORT = "short"  # ``short_scoreboard``: answered by the memory input/output unit
    # No scoreboard, or one that never shows as a scoreboard stall (waits show as ``wait`` or ``math_pipe_throttle``)
    NONE = "none"


class StreamingMultiprocessor(Struct, frozen=True, kw_only=True):
    """Structure and issue of one SM."""

    sub_partitions_per_sm: Figure[int]  # each with one scheduler
    warp_size_threads: Figure[int]  # threads in a warp
    issued_instructions_per_cycle: Figure[int]  # by one scheduler
    scoreboards_per_warp: Figure[int]  # counters a wait mask can name
    scoreboard_max_count: Figure[int]  # how far one of them counts
    memory_queue_instructions: Figure[int]  # memory instructions a sub-partition holds before its warps see a throttle
    memory_issue_interval_cycles: Figure[int]  # between memory instructions of one sub-partition
    memory_accept_interval_cycles: Figure[int]  # between memory instructions of the whole SM
    # how long a constant operand's miss keeps the scheduler from other warps
    constant_miss_issue_block_cycles: Figure[int]
    fp32_lanes_per_sm: Figure[int]  # single precision results per cycle
    int32_lanes_per_sm: Figure[int]  # 32-bit integer additions per cycle
    fp64_lanes_per_sm: Figure[int] | Unknown  # double precision results per cycle
    tensor_cores_per_sm: Figure[int]  # tensor cores


class OccupancyRules(Struct, frozen=True, kw_only=True):
    """The rules that limit the number of blocks and warps an SM holds.

    Registers are given to warps: ``registers · warp_size`` rounded up to ``register_allocation_unit_registers``, out of
    ``registers_per_sm / sub_partitions_per_sm`` of the warp's sub-partition. A block is refused when its warps, rounded up to
    ``warp_allocation_granularity_warps``, would take more than ``max_registers_per_block``. A block's shared memory is static + dynamic +
    ``shared_reserved_per_block_bytes``, rounded up to ``shared_allocation_unit_bytes``; the SM's is the smallest carve-out that serves.
    """

    max_warps_per_sm: Figure[int]  # resident warps
    max_threads_per_sm: Figure[int]  # resident threads
    max_blocks_per_sm: Figure[int]  # resident blocks
    max_threads_per_block: Figure[int]  # threads of one block
    registers_per_sm: Figure[int]  # 32-bit registers
    max_registers_per_block: Figure[int]  # registers of one block
    max_registers_per_thread: Figure[int]  # registers a thread can name
    register_allocation_unit_registers: Figure[int]  # registers are given to a warp in multiples of this
    warp_allocation_granularity_warps: Figure[int]  # see above
    shared_per_sm_bytes: Figure[int]  # shared memory at the largest carve-out
    max_shared_per_block_bytes: Figure[int]  # the most one block can have, having opted in; without the reserved part
    default_shared_per_block_bytes: Figure[int]  # the most without opting in
    shared_allocation_unit_bytes: Figure[int]  # shared memory is given to a block in multiples of this
    shared_carveouts_bytes: Figure[tuple[int, ...]]  # sizes the SM's shared memory can be set to, ascending
    shared_reserved_per_block_bytes: Figure[int]  # what the driver takes of each block
    max_named_barriers_per_block: Figure[int]  # barriers ``BAR`` can name
    block_barriers_per_sm: Figure[int]  # barriers of all resident blocks together
    barriers_limit_blocks: Figure[bool]  # whether the vendor's rules count them as a limit
    max_cluster_blocks: Figure[int]  # portable size of a thread block cluster; 1 where there are none


class Caches(Struct, frozen=True, kw_only=True):
    """Sizes and rates of the memories of one SM, and granularities of all."""

    line_bytes: Figure[int]  # a cache line; the unit of tags
    sector_bytes: Figure[int]  # the unit of transfer, a quarter of a line
    unified_data_cache_bytes: Figure[int]  # L1, texture and shared memory together
    shared_banks: Figure[int]  # banks of the shared memory
    shared_bank_bytes: Figure[int]  # width of one
    shared_bytes_per_cycle: Figure[int]  # per SM
    l1_bytes_per_cycle: Figure[int]  # per SM
    # from one L2 slice to the SMs, per cycle of L2's clock; slices as device attribute ``l2s_count`` counts them
    l2_slice_bytes_per_cycle: Figure[int] | Unknown
    l2_partitions: Figure[int] | Unknown  # parts of L2 with different latency from one SM
    l2_ways: Figure[int]  # of each of L2's sets
    # lines that L1 looks up in a cycle in which it hands over no data; unknown where it may do both at once
    l1_tags_per_cycle: Figure[int] | Unknown
    dram_fetch_bytes: Figure[int] | Unknown  # least that is fetched from DRAM
    constant_bank_bytes: Figure[int]  # size of one constant bank


class MemoryHierarchy(Struct, frozen=True, kw_only=True):
    """Latency of one dependent access by the level that answers it, in SM cycles, with nothing else going on.

    Approximation: pointer chases of different authors at different clocks; ``spread`` holds how far they lie apart. Under load latencies
    are several times as long.
    """

    l1_hit_cycles: MaybeNumber
    shared_cycles: MaybeNumber
    l2_near_cycles: MaybeNumber
    l2_far_cycles: MaybeNumber
    dram_tlb_warm_cycles: MaybeNumber
    dram_tlb_cold_cycles: MaybeNumber
    constant_l1_hit_cycles: MaybeNumber
    constant_l15_hit_cycles: MaybeNumber
    constant_miss_cycles: MaybeNumber
    constant_operand_miss_cycles: MaybeNumber
    texture_hit_cycles: MaybeNumber
    texture_miss_cycles: MaybeNumber
    distributed_shared_cycles: MaybeNumber


class Throughput(Struct, frozen=True, kw_only=True):
    """Rates at best.

    ``…_instructions_per_cycle`` are warp instructions per cycle and sub-partition: 0.5 means that one takes two cycles. ``tensor_…`` are
    dense operations (a multiply-add is two) per cycle and SM; 0 where the tensor cores lack the type. ``block_starts_per_cycle`` is of the
    whole GPU: thread blocks that can begin.
    """

    fp32_instructions_per_cycle: Figure[float]
    fp16_instructions_per_cycle: Figure[float]
    fp64_instructions_per_cycle: MaybeNumber
    int32_add_instructions_per_cycle: Figure[float]
    int32_logic_instructions_per_cycle: Figure[float]
    imad_instructions_per_cycle: Figure[float]
    mufu_instructions_per_cycle: Figure[float]
    bit_count_instructions_per_cycle: Figure[float]
    conversion_instructions_per_cycle: Figure[float]
    float_to_int_instructions_per_cycle: Figure[float]
    conversion_64_instructions_per_cycle: MaybeNumber
    shuffle_instructions_per_cycle: Figure[float]
    memory_instructions_per_cycle: Figure[float]
    block_starts_per_cycle: MaybeNumber
    tensor_fp16_flops_per_cycle: MaybeNumber
    tensor_fp16_fp32_flops_per_cycle: MaybeNumber
    tensor_bf16_flops_per_cycle: MaybeNumber
    tensor_tf32_flops_per_cycle: MaybeNumber
    tensor_fp8_flops_per_cycle: MaybeNumber
    tensor_fp4_flops_per_cycle: MaybeNumber
    tensor_int8_ops_per_cycle: MaybeNumber
    tensor_fp64_flops_per_cycle: MaybeNumber


class IssueCosts(Struct, frozen=True, kw_only=True):
    """Cycles an instruction holds its warp apart from results that are waited for."""

    barrier_issue_cycles: Figure[int]  # BAR and MEMBAR
    cache_control_issue_cycles: Figure[int]  # CCTL
    branch_issue_cycles: Figure[int]  # BRA, BSYNC, CALL, EXIT, RET
    depbar_issue_cycles: Figure[int]  # DEPBAR
    scoreboard_visible_cycles: Figure[int]  # from setting a scoreboard to waiting for it
    war_coupled_cycles: Figure[int]  # write after read, by an instruction of fixed latency
    # write after read, by one of variable latency over a source of one of fixed latency
    war_decoupled_cycles: Figure[int]


class Producer(Struct, frozen=True, kw_only=True):
    """Instructions of variable latency of one group."""

    scoreboard: Figure[ScoreboardKind] | Unknown  # the stall reason a wait for them is counted under
    min_cycles: MaybeNumber  # from issue to result at best: hits, no queue
    # from issue to result at worst with nothing else going on. Never a bound on what a profile shows: under load *means* of 4,900 cycles were
    # measured.
    unloaded_max_cycles: MaybeNumber
    read_release_cycles: MaybeNumber  # from issue until the sources may be overwritten, at best


class Stalls(Struct, frozen=True, kw_only=True):
    """The stall reasons a profiler reports of waiting warps."""

    reasons: Figure[tuple[str, ...]]  # stall reasons in Nsight Compute's spelling, sorted
    constant_miss_reason: Figure[str] | Unknown  # the one under which a constant operand's miss counts


class Simulation(Struct, frozen=True, kw_only=True):
    """The figures that the simulator of an SM needs beside the rest, of one SM unless a field says otherwise."""

    queue_cycles: Figure[float]  # cycles from issue to the head of an empty queue
    # per sub-partition and unit; fewer than it holds, since it drains between samples
    mio_queue_instructions: Figure[int]
    lg_queue_instructions: Figure[int]  # of them, those of global and local memory
    data_queue_cycles: Figure[float]  # accesses of shared memory that wait behind the queues
    tag_queue_cycles: Figure[float]  # look-ups of tags that wait behind the queues
    read_cycles: Figure[float]  # until the sources of an instruction in a queue have been read
    store_queue_instructions: Figure[int]  # stores of an SM on their way to L2
    store_bytes_per_cycle: Figure[float]  # from an SM to L2 at most
    store_retire_cycles: Figure[float]  # from leaving for L2 to the end of the store
    read_backlog_cycles: Figure[float]  # reads of DRAM that are due, from which on stores get half of it
    write_buffer_cycles: Figure[float]  # of writing to DRAM that L2 takes before stores wait
    miss_queue_instructions: Figure[int]  # loads of an SM that wait for L2
    branch_resolve_cycles: Figure[float]  # of a jump that is taken, behind its stall count
    jump_fetch_cycles: Figure[float]  # until the instructions at its target are there
    return_resolve_cycles: Figure[float]  # of a jump to an address in a register
    converge_cycles: Figure[float]  # of BSYNC and WARPSYNC
    exit_resolve_cycles: Figure[float]  # of EXIT, from its issue
    barrier_open_cycles: Figure[float]  # from the last warp that comes to the first that goes on
    membar_cycles: Figure[float]  # at least
    warp_start_cycles: Figure[float]  # until the first instruction of a warp is there
    code_first_cycles: Figure[float]  # until the first code of a kernel is in an SM
    code_cold_cycles: Figure[float]  # until other code that the SM has not is there
    code_prefetch_lines: Figure[int]  # of 128 bytes, fetched ahead of code that was not there
    code_stream_cycles: Figure[float]  # per line of code that follows another one
    code_near_cycles: Figure[float]  # per line of code that does not
    code_cache_lines: Figure[int]  # of 128 bytes, in a sub-partition
    constant_cold_cycles: Figure[float]  # until constants that the SM has not are there, 256 bytes at a time
    constant_near_cycles: Figure[float]  # until a line of 64 bytes of them can be an operand
    warp_launch_cycles: Figure[float]  # between warps of a block on one sub-partition
    block_launch_cycles: Figure[float]  # from the end of a block to the next one in its place
    launched_blocks_per_cycle: Figure[float]  # of the whole GPU
    launch_cycles: Figure[float]  # from the start of a launch to its first block, and from its last one to its end
    # from the issue of an instruction of fixed latency until its registers have to be read
    operand_window_cycles: Figure[float]
    bank_registers_per_cycle: Figure[float]  # that one of the two banks of a sub-partition gives
    special_register_cycles: Figure[float]  # S2R, S2UR
    special_function_cycles: Figure[float]  # MUFU, conversions, bit counts
    shuffle_cycles: Figure[float]  # SHFL
