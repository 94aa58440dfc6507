"""How evenly the units of the GPU were busy: SMs, schedulers, L2 slices, DRAM channels."""

from msgspec import Struct

from gpa_lsp.diagnosis.analyses.facts import KernelFacts
from gpa_lsp.diagnosis.analyses.occupancy.launch import read_amount


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


# Units, measure, and the metrics of the least, the mean and the most of them
_MEASURES = (
    ("SMs", "active cycles", "sm__cycles_active.min", "sm__cycles_active.avg", "sm__cycles_active.max"),
    ("SMs", "warp instructions", "sm__inst_executed.min", "sm__inst_executed.avg", "sm__inst_executed.max"),
    ("schedulers", "active cycles", "smsp__cycles_active.min", "smsp__cycles_active.avg", "smsp__cycles_active.max"),
    (
        "schedulers",
        "warp instructions",
        "smsp__inst_executed.min",
        "smsp__inst_executed.avg",
        "smsp__inst_executed.max",
    ),
    ("L1 caches", "active cycles", "l1tex__cycles_active.min", "l1tex__cycles_active.avg", "l1tex__cycles_active.max"),
    ("L2 slices", "sectors", "lts__t_sectors.min", "lts__t_sectors.avg", "lts__t_sectors.max"),
    ("L2 slices", "active cycles", "lts__cycles_active.min", "lts__cycles_active.avg", "lts__cycles_active.max"),
    (
        "DRAM channels",
        "bytes per second",
        "dram__bytes.min.per_second",
        "dram__bytes.avg.per_second",
        "dram__bytes.max.per_second",
    ),
    ("DRAM channels", "active cycles", "dram__cycles_active.min", "dram__cycles_active.avg", "dram__cycles_active.max"),
)

_MOST_UNITS = 1e6  # No GPU has more units of a kind, so that no mean is a smaller part of the largest


def measure_units(facts: KernelFacts) -> tuple[UnitLoad, ...]:
    """Every measure of the longest launch with a mean and a maximum, from SMs to DRAM."""
    found = []
    for unit, measure, *metrics in _MEASURES:
        least, mean, most = (read_amount(facts, metric) for metric in metrics)
        if mean is None or most is None or not mean / (1 + 1e-6) <= most <= mean * _MOST_UNITS:
            continue
        least = least if least is None or least <= mean * (1 + 1e-6) else None
        found.append(UnitLoad(unit=unit, measure=measure, metric=metrics[1], least=least, mean=mean, most=most))
    return tuple(found)


def find_unit(loads: tuple[UnitLoad, ...], metric: str) -> UnitLoad | None:
    """The load by the metric of its mean; None when it was not collected."""
    return next((load for load in loads if load.metric == metric), None)
