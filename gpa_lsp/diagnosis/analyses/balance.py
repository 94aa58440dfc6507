"""How the blocks of a grid divide into waves, and what the last one costs.

Two bounds, for blocks of equal work:

* If a block takes as long however many share its SM (latency counts), time goes by waves: B blocks with room for C at once take ⌈B / C⌉ times as
  long as one, and B / (⌈B / C⌉ · C) of the room is used.
* If an SM works at the same rate however many blocks it has (throughput counts), time goes by the SM with most blocks: ⌈B / S⌉ of them on S SMs,
  and B / (⌈B / S⌉ · S) of the SMs is used, for whole waves too.

Source: Nsight Compute's rules for the tail and for small grids use the first; "CUDA C++ Best Practices Guide", section on thread and block
heuristics. Real kernels lie between.
"""

from msgspec import Struct

from gpa_lsp.diagnosis.analyses.facts import KernelFacts
from gpa_lsp.diagnosis.analyses.occupancy.launch import find_launch_occupancy, read_amount, read_launch_shape
from gpa_lsp.profile.model import Launch


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
        """What the mean unit lacks of the one with most, 0..1: a part of the time if the busiest sets it."""
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


def measure_units(facts: KernelFacts) -> tuple[UnitLoad, ...]:
    """Every measure of the longest launch with a mean and a maximum, from SMs to DRAM."""
    found = []
    for unit, measure, stem, suffix in _MEASURES:
        least, mean, most = (read_amount(facts, f"{stem}.{part}{suffix}") for part in ("min", "avg", "max"))
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
    """How a grid fills the GPU."""

    blocks: int  # of the grid, at least 1
    sm_count: int  # at least 1
    capacity_blocks: int  # that the GPU holds at once, at least 1

    @property
    def count(self) -> float:
        """How often the GPU has to be filled, parts included."""
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
        """The same if blocks take as long however many share an SM; of less than a wave, whose blocks all start at once, only the SMs without any.

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


def find_waves(facts: KernelFacts, launch: Launch) -> Waves | None:
    """The waves of a launch: by the rules of occupancy, or else by what the profiler says; None where neither is known."""
    shape = read_launch_shape(facts, launch)
    blocks, sm_count = shape.grid_blocks, shape.sm_count
    if not blocks or sm_count is None:
        return None
    architecture = facts.architecture
    occupancy = None if architecture is None else find_launch_occupancy(architecture, shape, launch)
    capacity = None if occupancy is None else shape.find_capacity(occupancy)
    if capacity is None or shape.dynamic_bytes is None:
        stored = launch.read_number("launch__waves_per_multiprocessor")
        most = sm_count * _MOST_BLOCKS_PER_SM
        if stored is not None and blocks / most <= stored <= blocks:
            capacity = round(blocks / stored)
    return Waves(blocks=blocks, sm_count=sm_count, capacity_blocks=capacity) if capacity else None
