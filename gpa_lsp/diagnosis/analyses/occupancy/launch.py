"""What a launch asks an SM for, as far as the profile says and as far as it makes sense: :class:`LaunchShape`."""

from math import prod

from msgspec import Struct

from gpa_lsp.code.binary.model import Function
from gpa_lsp.diagnosis.analyses.facts import KernelFacts
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
    """What one launch asks an SM for."""

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


MOST_LAUNCHES = 200  # Launches that are compared with each other; reading the numbers of one costs time


def list_compared_launches(facts: KernelFacts) -> tuple[tuple[Launch, ...], Sentence]:
    """The first launches that have numbers, and a sentence where there are more; empty otherwise."""
    usable = tuple(launch for launch in facts.kernel.launches if launch.failure is None)
    left_out = len(usable) - MOST_LAUNCHES
    if left_out <= 0:
        return usable, NOTHING
    note = say("{rest} {verb} left out.", rest=count(left_out, "later launch"), verb="is" if left_out == 1 else "are")
    return usable[:MOST_LAUNCHES], note


def read_amount(facts: KernelFacts, *names: str) -> float | None:
    """The first of these metrics that the longest launch has; None where that is none, or negative."""
    value = facts.metric(*names)
    return None if value is None or value < 0 else value


def read_launch_shape(facts: KernelFacts, launch: Launch) -> LaunchShape:
    """What a launch asks for; registers, static shared memory and barriers by the code where the profile does not say."""
    function = facts.kernel.functions[0].function if facts.kernel.functions else None
    dynamic = launch.read_count(DYNAMIC_SHARED)
    sm_count = launch.read_count("launch__sm_count") or facts.kernel.device.sm_count
    cluster = launch.read_count("launch__cluster_size") or 1
    return LaunchShape(
        block=_read_block(facts.architecture, function, launch, dynamic or 0),
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
    """None where threads, registers or static shared memory are unknown, or make no sense."""
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
    """What an SM holds, with the carve-out that the profiler reckoned with; None where the block is unknown.

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
