"""What a machine can do at most: :class:`Machine`, peaks by type of operation and bandwidths by level of the memory.

A roof is a rate per cycle of some clock times that clock. Both factors are kept: a launch that ran at the base clock is put under the roofs of
the base clock, and never under those of the boost clock.
"""

from enum import StrEnum

from gpa_lsp.basis.lazy_dataclass import dataclass

TRANSFERS_PER_CLOCK = 2
"""Bits per pin and cycle of the memory clock that device attributes and ``dram__cycles`` count: on HBM2 to HBM3e, GDDR6, GDDR6X and GDDR7
alike. 9,751 MHz of an RTX 3090 are its 19.5 Gbit/s, 877 MHz of a V100 its 1.75."""

# No memory reaches 100 % of its peak for long, so each level has a *ceiling*: the share of its peak that it sustains.

HBM_CEILING = 0.91
"""Stacked memory (HBM). STREAM triad on a GH200 moved 3.31 of 4.02 TB/s, 0.82 (UoB-HPC/BabelStream, issue 194); Jia et al., "Dissecting the
NVIDIA Volta GPU Architecture via Microbenchmarking" (arXiv:1804.06826), read 750 of a V100's 900 GB/s, 0.83; kernels of published reports reached
0.81 on a V100 and 0.83 on a GH200, others 0.894 and 0.907: the highest seen is what counts."""

GDDR_CEILING = 0.95
"""Graphics memory (GDDR): kernels of published reports reached 0.96 on an A40 and 0.95 on an RTX 3070."""

NARROWEST_HBM_BITS = 1025
"""A bus wider than this is stacked memory: one stack alone has 1,024 bits, products two or more, and graphics memory at most 512."""

L2_CEILING = 0.94
"""The busiest published reports have 0.913 and 0.934 of the peak (RTX 4080 Laptop GPU). The same study reads 2,155 GB/s from the L2 of a V100, 0.76
of its 2,048 bytes per cycle."""

L1_CEILING = 0.97
"""A kernel of a published report kept the L1 of an A100 at 0.97 of its peak while its SMs were active. Shared memory is the same array."""


class OperationKind(StrEnum):
    """A type of operation with a peak of its own; the values are names for people. A multiply-add counts two."""

    FP64 = "FP64"
    FP32 = "FP32"
    FP16 = "FP16"
    """On pairs of halves, bfloat16 included: the counters do not tell the two apart."""
    INT32 = "INT32"
    SPECIAL = "special functions"
    """Reciprocal, square root, sine, exponential: the MUFU unit."""
    TENSOR_FP64 = "FP64 tensor"
    TENSOR_TF32 = "TF32 tensor"
    TENSOR_FP16 = "FP16 tensor"
    TENSOR_BF16 = "BF16 tensor"
    TENSOR_FP8 = "FP8 tensor"
    TENSOR_FP4 = "FP4 tensor"
    TENSOR_INT8 = "INT8 tensor"

    @property
    def is_integer(self) -> bool:
        """Counted in integer operations (IOP), not in floating-point ones (FLOP)."""
        return self in (OperationKind.INT32, OperationKind.TENSOR_INT8)

    @property
    def operation(self) -> str:
        """What one operation is called: ``FLOP``, ``IOP``, or ``OP`` for special functions, which nobody counts among floating-point ones."""
        if self is OperationKind.SPECIAL:
            return "OP"
        return "IOP" if self.is_integer else "FLOP"

    @property
    def is_tensor(self) -> bool:
        """Done by the tensor cores, dense."""
        return self.name.startswith("TENSOR_")


class MemoryLevel(StrEnum):
    """A level of the memory; the values are names for people."""

    SHARED = "shared memory"
    L1 = "L1"
    L2 = "L2"
    DRAM = "DRAM"


class ClockBasis(StrEnum):
    """Which clocks the roofs hold at."""

    MEASURED = "as measured"
    """The clocks the launch ran at, by its own counters."""
    BASE = "base"
    BOOST = "boost"
    """The highest the vendor states."""
    UNKNOWN = "unknown"


class RoofOrigin(StrEnum):
    """Where a roof comes from."""

    COUNTERS = "counters"
    """The report states the peak per cycle."""
    DEVICE = "device"
    """Attributes of the device, with the architecture's rates per cycle."""
    PRODUCT = "product"
    """Published figures of a product, looked up by name."""
    EMPIRICAL = "empirical"
    """Measured by a benchmark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """Clocks in Hz; None where unknown.

    Attributes:
        basis: which clocks these are.
        sm_hz: of the SMs, their L1 and shared memory.
        l2_hz: of the L2 slices.
        dram_hz: of the memory, as ``dram__cycles`` counts; bytes per cycle below are of this clock.
        source: where they come from, one clause.
    """

    basis: ClockBasis
    sm_hz: float | None
    l2_hz: float | None
    dram_hz: float | None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """The most operations of one type.

    Attributes:
        kind: the type.
        ops_per_cycle: of the whole GPU, per SM cycle; a multiply-add is two. None where only the rate was measured.
        ops_per_s: at the machine's clocks; None when the clock is unknown.
        origin: where it comes from.
        source: citation or counter, one clause.
        is_certain: False where the architecture's table only assumes the rate.
    """

    kind: OperationKind
    ops_per_cycle: float | None
    ops_per_s: float | None
    origin: RoofOrigin
    source: str
    is_certain: bool = True

    @property
    def citation(self) -> str:
        """The source, and that the rate is only assumed where it is."""
        return _cite(self.source, is_certain=self.is_certain)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bandwidth:
    """The most bytes of one level.

    Attributes:
        level: which.
        bytes_per_cycle: of the whole GPU, per cycle of ``clock_hz``; None where only the rate is known.
        clock_hz: the clock it runs on: of the SMs for shared memory and L1, of L2 or DRAM for these; None when unknown.
        bytes_per_s: at that clock; None when unknown.
        origin: where it comes from.
        source: citation or counter, one clause.
        is_certain: False where a table only assumes the rate.
    """

    level: MemoryLevel
    bytes_per_cycle: float | None
    clock_hz: float | None
    bytes_per_s: float | None
    origin: RoofOrigin
    source: str
    is_certain: bool = True

    @property
    def citation(self) -> str:
        """The source, and that the rate is only assumed where it is."""
        return _cite(self.source, is_certain=self.is_certain)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A GPU's roofs.

    Attributes:
        name: the device's.
        compute_capability: None when unknown.
        sm_count: None when unknown.
        clocks: at which the theoretical roofs hold.
        peaks: at most one per type; types the GPU lacks are missing.
        bandwidths: at most one per level.
        issue_per_cycle: warp instructions the whole GPU can issue per SM cycle; None when unknown.
        doubts: what a reader must know (a clock that had to be assumed, a rate that is), one sentence each.
    """

    name: str
    compute_capability: tuple[int, int] | None
    sm_count: int | None
    clocks: Clocks
    peaks: tuple[Peak, ...]
    bandwidths: tuple[Bandwidth, ...]
    issue_per_cycle: float | None
    doubts: tuple[str, ...] = ()

    def find_peak(self, kind: OperationKind) -> Peak | None:
        """The peak of a type; None when the GPU lacks it or nothing is known."""
        return next((peak for peak in self.peaks if peak.kind is kind), None)

    def find_bandwidth(self, level: MemoryLevel) -> Bandwidth | None:
        """The bandwidth of a level; None when nothing is known."""
        return next((bandwidth for bandwidth in self.bandwidths if bandwidth.level is level), None)

    @property
    def issue_per_s(self) -> float | None:
        """Warp instructions per second at most; None when unknown."""
        if self.issue_per_cycle is None or self.clocks.sm_hz is None:
            return None
        return self.issue_per_cycle * self.clocks.sm_hz


def _cite(source: str, *, is_certain: bool) -> str:
    return source if is_certain else f"{source} (assumed)"


def find_dram_ceiling(bus_bits: object) -> float:
    """The share of its peak that the DRAM sustains, by the width of its bus; that of stacked memory when the width is not known.

    Args:
        bus_bits: as a device attribute states it; anything but a positive number is unknown.

    >>> find_dram_ceiling(5120), find_dram_ceiling(384), find_dram_ceiling(None)
    (0.91, 0.95, 0.91)
    """
    is_graphics_memory = isinstance(bus_bits, int | float) and 0 < bus_bits < NARROWEST_HBM_BITS
    return GDDR_CEILING if is_graphics_memory else HBM_CEILING
