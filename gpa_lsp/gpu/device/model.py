"""The most a machine can do: :class:`Machine`, its peaks by type of operation and its bandwidths by level of the memory.

A roof is a rate per cycle of some clock times that clock. Both factors are kept: a launch that ran at the base clock is put under the roofs of
the base clock, and never under those of the boost clock.
"""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

from gpa_lsp.foundation.json_elements import Capability
from gpa_lsp.foundation.numbers import format_bytes_per_s, format_count, format_number
from gpa_lsp.gpu.arch.model import Architecture

# Bits per pin and cycle of the memory clock that device attributes and ``dram__cycles`` count: on HBM2 to HBM3e, GDDR6, GDDR6X and GDDR7 alike. 9,751
# MHz of an RTX 3090 are its 19.5 Gbit/s, 877 MHz of a V100 its 1.75.
TRANSFERS_PER_CLOCK = 2

# No memory reaches 100 % of its peak for long, so each level has a *ceiling*: the share of its peak that it sustains.

# Stacked memory (HBM). STREAM triad on a GH200 moved 3.31 of 4.02 TB/s, 0.82 (UoB-HPC/BabelStream, issue 194); Jia et al., "Dissecting the NVIDIA
# Volta GPU Architecture via Microbenchmarking" (arXiv:1804.06826), read 750 of a V100's 900 GB/s, 0.83; kernels of published reports reached 0.81 on
# a V100 and 0.83 on a GH200, others 0.894 and 0.907: the highest seen is what counts.
HBM_CEILING = 0.91

# Graphics memory (GDDR): kernels of published reports reached 0.96 on an A40 and 0.95 on an RTX 3070
GDDR_CEILING = 0.95

# A bus wider than this is stacked memory: one stack alone has 1,024 bits, products two or more, and graphics memory at most 512
NARROWEST_HBM_BITS = 1025

# The busiest published reports have 0.913 and 0.934 of the peak (RTX 4080 Laptop GPU). The same study reads 2,155 GB/s from the L2 of a V100, 0.76 of
# its 2,048 bytes per cycle.
L2_CEILING = 0.94

# What each SM reads from L2 in one cycle of the SMs, as Starlight's roof has it on every GPU (section 4.2)
STARLIGHT_L2_BYTES = 32

# A kernel of a published report kept the L1 of an A100 at 0.97 of its peak while its SMs were active. Shared memory is the same array.
L1_CEILING = 0.97


# Of the peak of DRAM that is reached while reads and writes take turns: kernels of published reports reached 0.83 on a GH200 and 0.75 to 0.81 on a
# V100, 0.91 on an RTX 3070 and 0.95 on an A40
_HBM_ACHIEVED, _GDDR_ACHIEVED = 0.83, 0.93
# Bytes that graphics memory moves per byte where it keeps its check bits among the data: 303.7 for 264.2 MB on an A40
_INLINE_CHECK_RATIO = 1.15
# Of L2 that may hold what was written: 3.4 of 6.3 MB on an A40, by what its DRAM had been given at the end of launches of three sizes
_DIRTY_RATIO = 0.55


class OperationKind(StrEnum):
    """A type of operation with a peak of its own; the values are names for people. A multiply-add counts two."""

    FP64 = "FP64"
    FP32 = "FP32"
    FP16 = "FP16"  # On pairs of halves, bfloat16 included: the counters do not tell the two apart
    INT32 = "INT32"
    SPECIAL = "special functions"  # Reciprocal, square root, sine, exponential: the MUFU unit
    TENSOR_FP64 = "FP64 tensor"
    TENSOR_TF32 = "TF32 tensor"
    TENSOR_FP16 = "FP16 tensor"
    TENSOR_BF16 = "BF16 tensor"
    TENSOR_FP8 = "FP8 tensor"
    TENSOR_FP4 = "FP4 tensor"
    TENSOR_INT8 = "INT8 tensor"

    @property
    def is_integer(self) -> bool:
        """Whether it is counted in integer operations (IOP), not in floating-point ones (FLOP)."""
        return self in (OperationKind.INT32, OperationKind.TENSOR_INT8)

    @property
    def operation(self) -> str:
        """The name of one operation: ``FLOP``, ``IOP``, or ``OP`` for special functions, which are not counted among floating-point ones."""
        if self is OperationKind.SPECIAL:
            return "OP"
        return "IOP" if self.is_integer else "FLOP"

    @property
    def is_tensor(self) -> bool:
        """Whether the tensor cores do it, dense."""
        return self.name.startswith("TENSOR_")


class MemoryLevel(StrEnum):
    """A level of the memory; the values are names for people."""

    SHARED = "shared memory"
    L1 = "L1"
    L2 = "L2"
    DRAM = "DRAM"


class ClockBasis(StrEnum):
    """The clocks that the roofs hold at."""

    MEASURED = "as measured"  # The clocks the launch ran at, by its own counters
    BASE = "base"
    BOOST = "boost"  # The highest the vendor states
    UNKNOWN = "unknown"


class RoofOrigin(StrEnum):
    """The origin of a roof."""

    COUNTERS = "counters"  # The report states the peak per cycle
    DEVICE = "device"  # Attributes of the device, with the architecture's rates per cycle
    PRODUCT = "product"  # Published figures of a product, looked up by name
    EMPIRICAL = "empirical"  # Measured by a benchmark


class Clocks(Struct, frozen=True, kw_only=True):
    """Clocks in Hz; None where unknown."""

    basis: ClockBasis  # which clocks these are
    sm_hz: float | None  # of the SMs, their L1 and shared memory
    l2_hz: float | None  # of the L2 slices
    dram_hz: float | None  # of the memory, as ``dram__cycles`` counts; bytes per cycle below are of this clock
    source: str  # where they come from, one clause


class Peak(Struct, frozen=True, kw_only=True):
    """The most operations of one type."""

    kind: OperationKind  # the type
    # of the whole GPU, per SM cycle; a multiply-add is two. None where only the rate was measured.
    ops_per_cycle: float | None
    ops_per_s: float | None  # at the machine's clocks; None when the clock is unknown
    origin: RoofOrigin  # where it comes from
    source: str  # citation or counter, one clause
    is_certain: bool = True  # False where the architecture's table only assumes the rate

    @property
    def citation(self) -> str:
        """The source, and that the rate is only assumed where it is."""
        return _cite(self.source, is_certain=self.is_certain)


class Bandwidth(Struct, frozen=True, kw_only=True):
    """The most bytes of one level."""

    level: MemoryLevel  # which
    bytes_per_cycle: float | None  # of the whole GPU, per cycle of ``clock_hz``; None where only the rate is known
    # the clock it runs on: of the SMs for shared memory and L1, of L2 or DRAM for these; None when unknown
    clock_hz: float | None
    bytes_per_s: float | None  # at that clock; None when unknown
    origin: RoofOrigin  # where it comes from
    source: str  # citation or counter, one clause
    is_certain: bool = True  # False where a table only assumes the rate

    @property
    def citation(self) -> str:
        """The source, and that the rate is only assumed where it is."""
        return _cite(self.source, is_certain=self.is_certain)


class Machine(Struct, frozen=True, kw_only=True):
    """A GPU's roofs."""

    name: str  # the device's
    compute_capability: tuple[int, int] | None  # None when unknown
    sm_count: int | None  # None when unknown
    clocks: Clocks  # at which the theoretical roofs hold
    peaks: tuple[Peak, ...]  # at most one per type; types the GPU lacks are missing
    bandwidths: tuple[Bandwidth, ...]  # at most one per level
    issue_per_cycle: float | None  # warp instructions the whole GPU can issue per SM cycle; None when unknown
    # what a reader must know (a clock that had to be assumed, a rate that is), one sentence each
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


def explain_l2(machine: Machine) -> str:
    """The reason for the height of L2's roof, one sentence; empty where its bytes per cycle were not counted on slices.

    Starlight takes 32 bytes per cycle of each SM. What L2 sends is bounded by its slices as well, and a product has its own number of them: fewer
    than SMs on GA102 (48 slices of 32 bytes for the 64 SMs of an RTX A5000), and wider ones on A100 and later.

    Source: Starlight, section 4.2; the slices and their width as :class:`Bandwidth` cites them.
    """
    found, sms = machine.find_bandwidth(MemoryLevel.L2), machine.sm_count
    if found is None or not found.bytes_per_cycle or not sms or found.origin is RoofOrigin.EMPIRICAL:
        return ""
    theirs = None if machine.clocks.sm_hz is None else sms * STARLIGHT_L2_BYTES * machine.clocks.sm_hz
    rate = "" if theirs is None else f", which would be {format_bytes_per_s(theirs)}"
    return (
        f"L2: its slices send {format_count(found.bytes_per_cycle)} bytes per cycle, {format_number(found.bytes_per_cycle / sms)} for each of "
        f"{format_count(sms)} SMs; Starlight's paper takes {STARLIGHT_L2_BYTES} for each{rate}."
    )


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


class ClockDomain(StrEnum):
    """The clock that a figure per cycle counts."""

    SM = "sm"
    L2 = "l2"
    DRAM = "dram"


# What a file of measured roofs may say
_PerSecond = Annotated[float, Meta(gt=0, le=1e18)]  # operations or bytes; 100 times what the largest GPU does
_Hz = Annotated[float, Meta(gt=0, le=1e11)]
_Ratio = Annotated[float, Meta(ge=0, le=1)]


class EmpiricalPeak(Struct, frozen=True, kw_only=True):
    """The peak that was reached with operations of one type."""

    kind: OperationKind  # the type
    ops_per_s: _PerSecond  # the best of the repetitions; a multiply-add is two
    ops_per_cycle: _PerSecond | None = None  # the same per SM cycle, of the whole GPU; None when no clock was measured
    spread_ratio: _Ratio | None = None  # (best − worst) / best of the repetitions; None when there was one


class EmpiricalBandwidth(Struct, frozen=True, kw_only=True):
    """The bandwidth that was reached with reads of one level."""

    level: MemoryLevel  # which
    bytes_per_s: _PerSecond  # the best of the repetitions
    # the same per cycle of ``clock``, of the whole GPU; None when that clock was not measured
    bytes_per_cycle: _PerSecond | None = None
    clock: ClockDomain | None = None  # whose cycles these are; None when it was not measured
    working_set_bytes: Annotated[int, Meta(ge=1, le=1 << 50)] | None = (
        None  # that was read over and over; None when not stored
    )
    spread_ratio: _Ratio | None = None  # (best − worst) / best of the repetitions; None when there was one


class EmpiricalRoofs(Struct, frozen=True, kw_only=True):
    """All that was measured on one GPU."""

    device_name: str | None = None  # as the driver reports it; None when not stored
    compute_capability: Capability | None = None  # (major, minor); None when not stored
    sm_count: Annotated[int, Meta(ge=1, le=10_000)] | None = None  # None when not stored
    measured_on: str | None = None  # date in ISO 8601, ``2026-11-21``; None when not stored
    tool_version: str | None = None  # of what measured; None when not stored
    sm_hz: _Hz | None = None  # clock of the SMs while measuring; None when not measured
    l2_hz: _Hz | None = None  # of L2; None when not measured
    dram_hz: _Hz | None = None  # of the memory, as ``dram__cycles`` counts; None when not measured
    peaks: tuple[EmpiricalPeak, ...]  # at most one per type
    bandwidths: tuple[EmpiricalBandwidth, ...]  # at most one per level
    format_name: str = "gpa-lsp/roofs/1"  # ``gpa-lsp/roofs/1``, or ``starlight`` for its flat file


class MemoryFacts(Struct, frozen=True, kw_only=True):
    """Facts of a machine's memory that its roofs do not state."""

    l2_bytes: float | None  # None where it is not known
    bus_bits: float | None  # of DRAM; None where it is not known
    has_ecc: bool = False  # it checks and corrects; in graphics memory that costs bandwidth
    carveout_bytes: int | None = None  # shared memory the SM was set to; None where the driver chooses
    l1_bytes: int | None = None  # of one SM, with shared memory; None for that of the architecture

    @property
    def is_stacked(self) -> bool:
        """HBM, by the width of its bus."""
        return self.bus_bits is not None and self.bus_bits >= NARROWEST_HBM_BITS

    @property
    def check_ratio(self) -> float:
        """Bytes that DRAM moves per byte that is asked of it."""
        return _INLINE_CHECK_RATIO if self.has_ecc and not self.is_stacked else 1.0

    @property
    def achieved_ratio(self) -> float:
        """Bytes that are asked of DRAM per byte of its peak, at best."""
        return (_HBM_ACHIEVED if self.is_stacked else _GDDR_ACHIEVED) / self.check_ratio

    def find_leaving_bytes(self, written_bytes: float) -> float:
        """The bytes of a launch's writes that leave L2 to make way for the rest; L2 keeps some of them."""
        return max(0.0, written_bytes - _DIRTY_RATIO * (self.l2_bytes or 0.0))

    def find_l1_bytes(self, architecture: Architecture, shared_bytes: int) -> int:
        """The bytes of the SM's memory that shared memory leaves to L1, at the carve-out that was set or the least that serves.

        Args:
            shared_bytes: of all resident blocks.
        """
        sizes = architecture.occupancy.shared_carveouts_bytes.value
        shared = self.carveout_bytes or min((size for size in sizes if size >= shared_bytes), default=max(sizes))
        whole = self.l1_bytes or architecture.caches.unified_data_cache_bytes.value
        return max(0, whole - max(shared, shared_bytes))
