"""Resources of a launch on an SM (:class:`LaunchShape`), and the waves of its grid (:class:`Waves`).

The last wave costs, by two bounds, for blocks of equal work:

* If a block takes as long however many share its SM (latency counts), time goes by waves: B blocks with room for C at once take ⌈B / C⌉ times as
  long as one, and B / (⌈B / C⌉ · C) of the room is used.
* If an SM works at the same rate however many blocks it has (throughput counts), time goes by the SM with most blocks: ⌈B / S⌉ of them on S SMs,
  and B / (⌈B / S⌉ · S) of the SMs is used, for whole waves too.

Source: Nsight Compute's rules for the tail and for small grids use the first; "CUDA C++ Best Practices Guide", section on thread and block
heuristics. Real kernels lie between.
"""

from math import prod

from msgspec import Struct

from gpa_lsp.code.binary.model import Function
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import NOTHING, Sentence, count, say
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.occupancy import BlockShape, Occupancy, OccupancyLimit, find_occupancy
from gpa_lsp.profile.model import Launch

DYNAMIC_SHARED = "launch__shared_mem_per_block_dynamic"  # Bytes of shared memory per block given at launch

# Percent of the warps that an SM can hold: of cycles in which it had any, and as the launch's shape allows
ACHIEVED = "sm__warps_active.avg.pct_of_peak_sustained_active"
THEORETICAL = "sm__maximum_warps_per_active_cycle_pct"

_MOST_SMS = 100_000  # More multiprocessors than this are no device

# From this compute capability on an image counts the driver's part as static shared memory
_STATIC_INCLUDES_RESERVE = (9, 0)


class LaunchShape(Struct, frozen=True, kw_only=True):
    """Resources that one launch asks an SM for."""

    block: BlockShape | None  # None where the profile does not say, or says what no GPU can hold
    # the part of the block's shared memory that was given at launch; None when unknown (the block is then without any)
    dynamic_bytes: int | None = None
    carveout_bytes: int | None = None  # shared memory the SMs were set to; None when unknown
    # blocks of the grid; None for code without a launch, and where the profile does not say
    grid_blocks: int | None = None
    sm_count: int | None = None  # multiprocessors the launch could use; None when unknown
    cluster_blocks: int | None = None  # blocks of a thread block cluster; None when there are none, or it is unknown
    # clusters that the whole GPU can hold at once; None when there are none, or it is unknown
    most_clusters: int | None = None

    def find_capacity(self, occupancy: Occupancy) -> int | None:
        """Blocks the whole GPU holds at once, clusters considered; None when unknown or none fits."""
        if self.sm_count is None or not occupancy.blocks_per_sm:
            return None
        most = occupancy.blocks_per_sm * self.sm_count
        clustered = self.most_clustered_blocks
        return most if not clustered else min(most, clustered)

    @property
    def most_clustered_blocks(self) -> int | None:
        """Blocks the whole GPU holds at once in clusters; None without clusters."""
        if self.cluster_blocks is None or self.most_clusters is None:
            return None
        return self.cluster_blocks * self.most_clusters


def measure_resident_warps(subject: Subject, architecture: Architecture) -> float | None:
    """Warps of one scheduler on average while its SM was active; None when not collected."""
    warps = subject.metric("smsp__warps_active.avg.per_cycle_active")
    if warps is not None:
        return warps or None
    percent = subject.metric(ACHIEVED)
    if not percent:
        return None
    return percent / 100 * architecture.occupancy.max_warps_per_sm.value / architecture.sm.sub_partitions_per_sm.value


MOST_LAUNCHES = 200  # Launches that are compared with each other; reading the numbers of one costs time


def list_compared_launches(subject: Subject) -> tuple[tuple[Launch, ...], Sentence]:
    """The first launches that have numbers, and a sentence where there are more; empty otherwise."""
    left_out = len(subject.runs) - MOST_LAUNCHES
    if left_out <= 0:
        return subject.runs, NOTHING
    note = say("{rest} {verb} left out.", rest=count(left_out, "later launch"), verb="is" if left_out == 1 else "are")
    return subject.runs[:MOST_LAUNCHES], note


def read_launch_shape(subject: Subject, launch: Launch) -> LaunchShape:
    """Read the resources of a launch; registers, static shared memory and barriers by the code where the profile lacks them."""
    function = subject.kernel.functions[0].function if subject.kernel.functions else None
    dynamic = launch.read_count(DYNAMIC_SHARED)
    sm_count = launch.read_count("launch__sm_count") or subject.kernel.device.sm_count
    cluster = launch.read_count("launch__cluster_size") or 1
    return LaunchShape(
        block=_read_block(subject.architecture, function, launch, dynamic or 0),
        dynamic_bytes=dynamic,
        carveout_bytes=launch.read_count("launch__shared_mem_config_size"),
        grid_blocks=None if launch.grid is None else max(0, prod(launch.grid)),
        sm_count=sm_count if sm_count is not None and 0 < sm_count <= _MOST_SMS else None,
        cluster_blocks=cluster if cluster > 1 else None,
        most_clusters=(launch.read_count("launch__cluster_max_active") or None) if cluster > 1 else None,
    )


def _read_block(
    architecture: Architecture | None, function: Function | None, launch: Launch, dynamic_bytes: int
) -> BlockShape | None:
    """Read a launch's block; None where threads, registers or static shared memory are unknown or implausible."""
    registers = launch.read_count("launch__registers_per_thread")
    static = launch.read_count("launch__shared_mem_per_block_static")
    barriers = launch.read_count("launch__barrier_count")
    if function is not None:
        registers = function.registers if registers is None else registers
        static = _read_static(architecture, function) if static is None else static
        barriers = function.barriers if barriers is None else barriers
    if registers is None or static is None or launch.block is None:
        return None
    block = BlockShape(
        threads=prod(launch.block),
        registers_per_thread=registers,
        shared_bytes=static + dynamic_bytes,
        barriers=barriers or 0,
    )
    return block if _is_sensible(block, architecture) else None


def read_code_shape(architecture: Architecture, function: Function | None) -> BlockShape | None:
    """A block of one warp with the registers and the static shared memory of the code; None where the code does not say."""
    if function is None or function.registers is None:
        return None
    block = BlockShape(
        threads=architecture.sm.warp_size_threads.value,
        registers_per_thread=function.registers,
        shared_bytes=_read_static(architecture, function),
        barriers=function.barriers or 0,
    )
    return block if _is_sensible(block, architecture) else None


def find_launch_occupancy(architecture: Architecture, shape: LaunchShape, launch: Launch) -> Occupancy | None:
    """Occupancy of a launch, with the carve-out that the profiler assumed; None where the block is unknown.

    Reports name the carve-out that was set, but those of 2020.3 reckon with the largest one: where the limit that the report prints is not
    that of the carve-out that was set, but of the largest, the largest is taken.
    """
    if shape.block is None:
        return None
    found = find_occupancy(architecture, shape.block, shape.carveout_bytes)
    printed = launch.read_count("launch__occupancy_limit_shared_mem")
    if printed is None or found.limit_of(OccupancyLimit.SHARED_MEMORY) == printed:
        return found
    largest = find_occupancy(architecture, shape.block)
    return largest if largest.limit_of(OccupancyLimit.SHARED_MEMORY) == printed else found


def _read_static(architecture: Architecture | None, function: Function) -> int:
    """The static shared memory of the code, without the driver's part."""
    if architecture is None or architecture.compute_capability < _STATIC_INCLUDES_RESERVE:
        return function.shared_static_bytes
    return max(0, function.shared_static_bytes - architecture.occupancy.shared_reserved_per_block_bytes.value)


def _is_sensible(block: BlockShape, architecture: Architecture | None) -> bool:
    """A GPU could be asked for it, even if it has no room."""
    if architecture is None:
        return block.threads >= 1
    rules = architecture.occupancy
    return (
        1 <= block.threads <= rules.max_threads_per_block.value
        and block.registers_per_thread <= rules.max_registers_per_thread.value + 1
        and block.shared_bytes <= rules.shared_per_sm_bytes.value
        and block.barriers <= rules.block_barriers_per_sm.value
    )


class UnitLoad(Struct, frozen=True, kw_only=True):
    """One measure over all units of a kind."""

    unit: str  # what they are, plural, for people
    measure: str  # what was counted
    metric: str  # of the mean
    least: float | None  # of the unit with least; None when not collected
    mean: float  # over all units
    most: float  # of the unit with most

    @property
    def idle_ratio(self) -> float:
        """Share of the mean unit's idle time under the busiest, 0..1: a part of the time if the busiest sets it."""
        return max(0.0, 1 - self.mean / self.most) if self.most > 0 else 0.0

    @property
    def excess(self) -> float:
        """The busiest over the mean, at least 1."""
        return max(1.0, self.most / self.mean) if self.mean > 0 else 1.0


# Units, measure, and what stands before and behind ``.min``, ``.avg`` and ``.max`` in the metrics of it
_MEASURES = (
    ("SMs", "active cycles", "sm__cycles_active", ""),
    ("SMs", "warp instructions", "sm__inst_executed", ""),
    ("schedulers", "active cycles", "smsp__cycles_active", ""),
    ("schedulers", "warp instructions", "smsp__inst_executed", ""),
    ("L1 caches", "active cycles", "l1tex__cycles_active", ""),
    ("L2 slices", "sectors", "lts__t_sectors", ""),
    ("L2 slices", "active cycles", "lts__cycles_active", ""),
    ("DRAM channels", "bytes per second", "dram__bytes", ".per_second"),
    ("DRAM channels", "active cycles", "dram__cycles_active", ""),
)

_MOST_UNITS = 1e6  # No GPU has more units of a kind, so that no mean is a smaller part of the largest


def measure_units(subject: Subject) -> tuple[UnitLoad, ...]:
    """Every measure of the longest launch with a mean and a maximum, from SMs to DRAM."""
    found = []
    for unit, measure, stem, suffix in _MEASURES:
        least, mean, most = (subject.metric(f"{stem}.{part}{suffix}") for part in ("min", "avg", "max"))
        if mean is None or most is None or not mean / (1 + 1e-6) <= most <= mean * _MOST_UNITS:
            continue
        least = least if least is None or least <= mean * (1 + 1e-6) else None
        found.append(
            UnitLoad(unit=unit, measure=measure, metric=f"{stem}.avg{suffix}", least=least, mean=mean, most=most)
        )
    return tuple(found)


def find_unit(loads: tuple[UnitLoad, ...], metric: str) -> UnitLoad | None:
    """The load by the metric of its mean; None when it was not collected."""
    return next((load for load in loads if load.metric == metric), None)


_MOST_BLOCKS_PER_SM = 1024  # More than any architecture has


class Waves(Struct, frozen=True, kw_only=True):
    """Waves of a grid on the GPU."""

    blocks: int  # of the grid, at least 1
    sm_count: int  # at least 1
    capacity_blocks: int  # that the GPU holds at once, at least 1

    @property
    def count(self) -> float:
        """Number of waves, fractions included."""
        return self.blocks / self.capacity_blocks

    @property
    def whole(self) -> int:
        """Waves that fill the GPU."""
        return self.blocks // self.capacity_blocks

    @property
    def last_blocks(self) -> int:
        """Blocks of the last wave that does not fill it; 0 when there is none."""
        return self.blocks % self.capacity_blocks

    @property
    def rounds(self) -> int:
        """Waves, the last one included."""
        return -(-self.blocks // self.capacity_blocks)

    @property
    def efficiency_ratio(self) -> float:
        """Blocks of those that all waves together could hold, 0..1."""
        return self.blocks / (self.rounds * self.capacity_blocks)

    @property
    def balance_ratio(self) -> float:
        """Mean over largest number of blocks per SM, 0..1."""
        return self.blocks / (-(-self.blocks // self.sm_count) * self.sm_count)

    @property
    def idle_sms(self) -> int:
        """SMs that never get a block."""
        return max(0, self.sm_count - self.blocks)

    @property
    def lost_by_sms_ratio(self) -> float:
        """Part of the time that the uneven division costs if SMs work at the same rate however many blocks they have.

        >>> Waves(blocks=1024, sm_count=170, capacity_blocks=1020).lost_by_sms_ratio.__round__(3)
        0.139
        """
        return 1 - self.balance_ratio

    @property
    def lost_by_waves_ratio(self) -> float:
        """Lost share if blocks take as long however many share an SM; of less than a wave, whose blocks all start at once, only the SMs without any.

        >>> Waves(blocks=1200, sm_count=80, capacity_blocks=960).lost_by_waves_ratio
        0.375
        """
        return 1 - self.efficiency_ratio if self.whole else self.idle_sms / self.sm_count


def list_grid_sizes(waves: Waves) -> tuple[int, ...]:
    """Grids around the present one worth comparing: whole waves around it, all SMs once, a tenth less and more, half and twice; ascending.

    >>> list_grid_sizes(Waves(blocks=1200, sm_count=80, capacity_blocks=960))
    (80, 600, 960, 1080, 1200, 1320, 1920, 2400, 2880)
    """
    capacity, blocks = waves.capacity_blocks, waves.blocks
    whole = {capacity * count for count in range(max(1, waves.whole - 1), waves.whole + 3)}
    near = {blocks // 2, blocks * 9 // 10, blocks, -(-blocks * 11 // 10), blocks * 2}
    return tuple(sorted(size for size in {waves.sm_count, *whole, *near} if size > 0))


def find_waves(subject: Subject, launch: Launch) -> Waves | None:
    """The waves of a launch: by the rules of occupancy, or else by what the profiler says; None where neither is known."""
    shape = read_launch_shape(subject, launch)
    blocks, sm_count = shape.grid_blocks, shape.sm_count
    if not blocks or sm_count is None:
        return None
    architecture = subject.architecture
    occupancy = None if architecture is None else find_launch_occupancy(architecture, shape, launch)
    capacity = None if occupancy is None else shape.find_capacity(occupancy)
    if capacity is None or shape.dynamic_bytes is None:
        stored = launch.read_number("launch__waves_per_multiprocessor")
        most = sm_count * _MOST_BLOCKS_PER_SM
        if stored is not None and blocks / most <= stored <= blocks:
            capacity = round(blocks / stored)
    return Waves(blocks=blocks, sm_count=sm_count, capacity_blocks=capacity) if capacity else None


# Between the warps that fit and those that were resident: how many a small grid, the last wave and the rest cost.
#
# ``sm__warps_active`` counts only cycles in which the SM has a warp, so that SMs without any work do not count here (the analysis of the load
# does). Expected are, for a grid of B blocks of w warps on S SMs with room for b blocks each, if all blocks take equally long:
#
# * where not even one wave is there (B < S·b): w · B / min(B, S), the warps of the SMs that have any;
# * else, with n whole waves and a rest of t blocks, which lie on min(t, S) SMs: w · B / (n·S + min(t, S)).
#
# What is missing beyond that is time in which places stand empty: between the end of a block and the start of the next one, at the launch, and
# behind warps that end before their block does. By Little's law a block is resident for (resident blocks · cycles · S) / B cycles, which turns the
# rest into cycles per block.


class OccupancyGap(Struct, frozen=True, kw_only=True):
    """Warps of an SM on average while it is active, from what fits down to what was measured."""

    fitting_warps: int  # by the rules
    offered_warps: float  # with this many blocks in the grid; at most ``fitting_warps``
    expected_warps: float  # with the last wave; at most ``offered_warps``
    resident_warps: float  # as measured
    block_cycles: float | None  # how long a block is resident; None where the active cycles were not collected
    # how long its slot stays empty, per block; None where the active cycles were not collected
    empty_cycles: float | None

    @property
    def ratio(self) -> float:
        """Missing of what fits, 0..1."""
        return max(0.0, 1 - self.resident_warps / self.fitting_warps)

    @property
    def grid_warps(self) -> float:
        """Missing because the grid has no more blocks."""
        return self.fitting_warps - self.offered_warps

    @property
    def tail_warps(self) -> float:
        """Missing because of the last wave."""
        return self.offered_warps - self.expected_warps

    @property
    def other_warps(self) -> float:
        """Missing beyond that."""
        return max(0.0, self.expected_warps - self.resident_warps)


def measure_gap(
    shape: LaunchShape, occupancy: Occupancy, resident_warps: float, active_cycles: float | None
) -> OccupancyGap | None:
    """The gap and its parts.

    Returns None where the grid or the number of SMs is unknown, or nothing fits. ``active_cycles``: of an SM, on average over all SMs; None when not
    collected.

    >>> from gpa_lsp.gpu.arch.lookup import find_architecture
    >>> from gpa_lsp.gpu.arch.occupancy import BlockShape, find_occupancy
    >>> block = BlockShape(threads=256, registers_per_thread=32, shared_bytes=0)
    >>> fitting = find_occupancy(find_architecture((8, 0)), block)
    >>> gap = measure_gap(LaunchShape(block=block, grid_blocks=1000, sm_count=100), fitting, 50.0, 5000.0)
    >>> gap.fitting_warps, gap.offered_warps, gap.expected_warps, gap.block_cycles, gap.empty_cycles
    (64, 64.0, 40.0, 3125.0, 0.0)
    """
    capacity = shape.find_capacity(occupancy)
    blocks, sms = shape.grid_blocks, shape.sm_count
    if capacity is None or not blocks or sms is None or resident_warps <= 0:
        return None
    warps = occupancy.warps_per_block
    held = capacity / sms
    offered = warps * min(held, blocks / min(blocks, sms))
    whole, rest = divmod(blocks, capacity)
    expected = min(offered, warps * blocks / (whole * sms + min(rest, sms)))
    block_cycles = empty_cycles = None
    if active_cycles is not None:
        block_cycles = resident_warps / warps * active_cycles * sms / blocks
        empty_cycles = max(0.0, block_cycles * (expected / resident_warps - 1))
    return OccupancyGap(
        fitting_warps=occupancy.warps_per_sm,
        offered_warps=offered,
        expected_warps=expected,
        resident_warps=resident_warps,
        block_cycles=block_cycles,
        empty_cycles=empty_cycles,
    )
