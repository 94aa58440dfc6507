"""The sections of an architecture: SM, occupancy, caches, hierarchy, throughput, issue, producers, stalls.

A field typed ``Figure[...]`` is known in every table. A field typed ``... | Unknown`` may be missing; its ``.value`` is then None and its
``.why`` says for what reason. "Per sub-partition" is a quarter of an SM with its own scheduler.
"""

from enum import StrEnum

from gpa_lsp.arch.figures import Figure, Unknown
from gpa_lsp.basis.lazy_dataclass import dataclass

MaybeNumber = Figure[float] | Unknown
"""A number that not every table knows."""


class ScoreboardKind(StrEnum):
    """The stall reason under which a wait for an instruction's scoreboard is counted."""

    LONG = "long"
    """``long_scoreboard``: answered by L1TEX."""
    SHORT = "short"
    """``short_scoreboard``: answered by the memory input/output unit."""
    NONE = "none"
    """No scoreboard, or one that never shows as a scoreboard stall (waits show as ``wait`` or ``math_pipe_throttle``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamingMultiprocessor:
    """Structure and issue of one SM.

    Attributes:
        sub_partitions_per_sm: each with one scheduler.
        warp_size_threads: threads in a warp.
        issued_instructions_per_cycle: by one scheduler.
        scoreboards_per_warp: counters a wait mask can name.
        scoreboard_max_count: how far one of them counts.
        memory_queue_instructions: memory instructions a sub-partition holds before its warps see a throttle.
        memory_issue_interval_cycles: between memory instructions of one sub-partition.
        memory_accept_interval_cycles: between memory instructions of the whole SM.
        constant_miss_issue_block_cycles: how long a constant operand's miss keeps the scheduler from other warps.
        fp32_lanes_per_sm: single precision results per cycle.
        int32_lanes_per_sm: 32-bit integer additions per cycle.
        fp64_lanes_per_sm: double precision results per cycle.
        tensor_cores_per_sm: tensor cores.
    """

    sub_partitions_per_sm: Figure[int]
    warp_size_threads: Figure[int]
    issued_instructions_per_cycle: Figure[int]
    scoreboards_per_warp: Figure[int]
    scoreboard_max_count: Figure[int]
    memory_queue_instructions: Figure[int]
    memory_issue_interval_cycles: Figure[int]
    memory_accept_interval_cycles: Figure[int]
    constant_miss_issue_block_cycles: Figure[int]
    fp32_lanes_per_sm: Figure[int]
    int32_lanes_per_sm: Figure[int]
    fp64_lanes_per_sm: Figure[int] | Unknown
    tensor_cores_per_sm: Figure[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class OccupancyRules:
    """What limits how many blocks and warps an SM holds.

    Registers are given to warps: ``registers · warp_size`` rounded up to ``register_allocation_unit_registers``, out of
    ``registers_per_sm / sub_partitions_per_sm`` of the warp's sub-partition. A block is refused when its warps, rounded up to
    ``warp_allocation_granularity_warps``, would take more than ``max_registers_per_block``. A block's shared memory is static + dynamic +
    ``shared_reserved_per_block_bytes``, rounded up to ``shared_allocation_unit_bytes``; the SM's is the smallest carve-out that serves.

    Attributes:
        max_warps_per_sm: resident warps.
        max_threads_per_sm: resident threads.
        max_blocks_per_sm: resident blocks.
        max_threads_per_block: threads of one block.
        registers_per_sm: 32-bit registers.
        max_registers_per_block: registers of one block.
        max_registers_per_thread: registers a thread can name.
        register_allocation_unit_registers: registers are given to a warp in multiples of this.
        warp_allocation_granularity_warps: see above.
        shared_per_sm_bytes: shared memory at the largest carve-out.
        max_shared_per_block_bytes: the most one block can have, having opted in; without the reserved part.
        default_shared_per_block_bytes: the most without opting in.
        shared_allocation_unit_bytes: shared memory is given to a block in multiples of this.
        shared_carveouts_bytes: sizes the SM's shared memory can be set to, ascending.
        shared_reserved_per_block_bytes: what the driver takes of each block.
        max_named_barriers_per_block: barriers ``BAR`` can name.
        block_barriers_per_sm: barriers of all resident blocks together.
        barriers_limit_blocks: whether the vendor's rules count them as a limit.
        max_cluster_blocks: portable size of a thread block cluster; 1 where there are none.
    """

    max_warps_per_sm: Figure[int]
    max_threads_per_sm: Figure[int]
    max_blocks_per_sm: Figure[int]
    max_threads_per_block: Figure[int]
    registers_per_sm: Figure[int]
    max_registers_per_block: Figure[int]
    max_registers_per_thread: Figure[int]
    register_allocation_unit_registers: Figure[int]
    warp_allocation_granularity_warps: Figure[int]
    shared_per_sm_bytes: Figure[int]
    max_shared_per_block_bytes: Figure[int]
    default_shared_per_block_bytes: Figure[int]
    shared_allocation_unit_bytes: Figure[int]
    shared_carveouts_bytes: Figure[tuple[int, ...]]
    shared_reserved_per_block_bytes: Figure[int]
    max_named_barriers_per_block: Figure[int]
    block_barriers_per_sm: Figure[int]
    barriers_limit_blocks: Figure[bool]
    max_cluster_blocks: Figure[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Caches:
    """Sizes and rates of the memories of one SM, and granularities of all.

    Attributes:
        line_bytes: a cache line; the unit of tags.
        sector_bytes: the unit of transfer, a quarter of a line.
        unified_data_cache_bytes: L1, texture and shared memory together.
        shared_banks: banks of the shared memory.
        shared_bank_bytes: width of one.
        shared_bytes_per_cycle: per SM.
        l1_bytes_per_cycle: per SM.
        l2_slice_bytes_per_cycle: from one L2 slice to the SMs, per cycle of L2's clock; slices as device attribute ``l2s_count`` counts them.
        l2_partitions: parts of L2 with different latency from one SM.
        l2_ways: of each of L2's sets.
        l1_tags_per_cycle: lines that L1 looks up in a cycle in which it hands over no data; unknown where it may do both at once.
        dram_fetch_bytes: least that is fetched from DRAM.
        constant_bank_bytes: size of one constant bank.
    """

    line_bytes: Figure[int]
    sector_bytes: Figure[int]
    unified_data_cache_bytes: Figure[int]
    shared_banks: Figure[int]
    shared_bank_bytes: Figure[int]
    shared_bytes_per_cycle: Figure[int]
    l1_bytes_per_cycle: Figure[int]
    l2_slice_bytes_per_cycle: Figure[int] | Unknown
    l2_partitions: Figure[int] | Unknown
    l2_ways: Figure[int]
    l1_tags_per_cycle: Figure[int] | Unknown
    dram_fetch_bytes: Figure[int] | Unknown
    constant_bank_bytes: Figure[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryHierarchy:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueCosts:
    """Cycles an instruction holds its warp apart from results that are waited for.

    Attributes:
        barrier_issue_cycles: BAR and MEMBAR.
        cache_control_issue_cycles: CCTL.
        branch_issue_cycles: BRA, BSYNC, CALL, EXIT, RET.
        depbar_issue_cycles: DEPBAR.
        scoreboard_visible_cycles: from setting a scoreboard to waiting for it.
        war_coupled_cycles: write after read, by an instruction of fixed latency.
        war_decoupled_cycles: write after read, by one of variable latency over a source of one of fixed latency.
    """

    barrier_issue_cycles: Figure[int]
    cache_control_issue_cycles: Figure[int]
    branch_issue_cycles: Figure[int]
    depbar_issue_cycles: Figure[int]
    scoreboard_visible_cycles: Figure[int]
    war_coupled_cycles: Figure[int]
    war_decoupled_cycles: Figure[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Producer:
    """Instructions of variable latency of one group.

    Attributes:
        scoreboard: the stall reason a wait for them is counted under.
        min_cycles: from issue to result at best: hits, no queue.
        unloaded_max_cycles: from issue to result at worst with nothing else going on. Never a bound on what a profile shows: under load
            *means* of 4,900 cycles were measured.
        read_release_cycles: from issue until the sources may be overwritten, at best.
    """

    scoreboard: Figure[ScoreboardKind] | Unknown
    min_cycles: MaybeNumber
    unloaded_max_cycles: MaybeNumber
    read_release_cycles: MaybeNumber


@dataclass(frozen=True, slots=True, kw_only=True)
class Stalls:
    """What a profiler reports of waiting warps.

    Attributes:
        reasons: stall reasons in Nsight Compute's spelling, sorted.
        constant_miss_reason: the one under which a constant operand's miss counts.
    """

    reasons: Figure[tuple[str, ...]]
    constant_miss_reason: Figure[str] | Unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """What the simulator of an SM needs beside the rest; of one SM, unless it says otherwise.

    Attributes:
        queue_cycles: cycles from issue to the head of an empty queue.
        mio_queue_instructions: per sub-partition and unit; fewer than it holds, since it drains between samples.
        lg_queue_instructions: of them, those of global and local memory.
        data_queue_cycles: accesses of shared memory that wait behind the queues.
        tag_queue_cycles: look-ups of tags that wait behind the queues.
        read_cycles: until the sources of an instruction in a queue have been read.
        store_queue_instructions: stores of an SM on their way to L2.
        store_bytes_per_cycle: from an SM to L2 at most.
        store_retire_cycles: from leaving for L2 to the end of the store.
        read_backlog_cycles: reads of DRAM that are due, from which on stores get half of it.
        write_buffer_cycles: of writing to DRAM that L2 takes before stores wait.
        miss_queue_instructions: loads of an SM that wait for L2.
        branch_resolve_cycles: of a jump that is taken, behind its stall count.
        jump_fetch_cycles: until the instructions at its target are there.
        return_resolve_cycles: of a jump to an address in a register.
        converge_cycles: of BSYNC and WARPSYNC.
        exit_resolve_cycles: of EXIT, from its issue.
        barrier_open_cycles: from the last warp that comes to the first that goes on.
        membar_cycles: at least.
        warp_start_cycles: until the first instruction of a warp is there.
        code_first_cycles: until the first code of a kernel is in an SM.
        code_cold_cycles: until other code that the SM has not is there.
        code_prefetch_lines: of 128 bytes, fetched ahead of code that was not there.
        code_stream_cycles: per line of code that follows another one.
        code_near_cycles: per line of code that does not.
        code_cache_lines: of 128 bytes, in a sub-partition.
        constant_cold_cycles: until constants that the SM has not are there, 256 bytes at a time.
        constant_near_cycles: until a line of 64 bytes of them can be an operand.
        warp_launch_cycles: between warps of a block on one sub-partition.
        block_launch_cycles: from the end of a block to the next one in its place.
        launched_blocks_per_cycle: of the whole GPU.
        launch_cycles: from the start of a launch to its first block, and from its last one to its end.
        operand_window_cycles: from the issue of an instruction of fixed latency until its registers have to be read.
        bank_registers_per_cycle: that one of the two banks of a sub-partition gives.
        special_register_cycles: S2R, S2UR.
        special_function_cycles: MUFU, conversions, bit counts.
        shuffle_cycles: SHFL.
    """

    queue_cycles: Figure[float]
    mio_queue_instructions: Figure[int]
    lg_queue_instructions: Figure[int]
    data_queue_cycles: Figure[float]
    tag_queue_cycles: Figure[float]
    read_cycles: Figure[float]
    store_queue_instructions: Figure[int]
    store_bytes_per_cycle: Figure[float]
    store_retire_cycles: Figure[float]
    read_backlog_cycles: Figure[float]
    write_buffer_cycles: Figure[float]
    miss_queue_instructions: Figure[int]
    branch_resolve_cycles: Figure[float]
    jump_fetch_cycles: Figure[float]
    return_resolve_cycles: Figure[float]
    converge_cycles: Figure[float]
    exit_resolve_cycles: Figure[float]
    barrier_open_cycles: Figure[float]
    membar_cycles: Figure[float]
    warp_start_cycles: Figure[float]
    code_first_cycles: Figure[float]
    code_cold_cycles: Figure[float]
    code_prefetch_lines: Figure[int]
    code_stream_cycles: Figure[float]
    code_near_cycles: Figure[float]
    code_cache_lines: Figure[int]
    constant_cold_cycles: Figure[float]
    constant_near_cycles: Figure[float]
    warp_launch_cycles: Figure[float]
    block_launch_cycles: Figure[float]
    launched_blocks_per_cycle: Figure[float]
    launch_cycles: Figure[float]
    operand_window_cycles: Figure[float]
    bank_registers_per_cycle: Figure[float]
    special_register_cycles: Figure[float]
    special_function_cycles: Figure[float]
    shuffle_cycles: Figure[float]
