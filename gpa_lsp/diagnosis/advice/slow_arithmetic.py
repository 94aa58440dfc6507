"""Arithmetic that is slow on an architecture: long until its result is there, or on a unit that takes few instructions per cycle."""

from enum import Enum

from msgspec import Struct

from gpa_lsp.code.binary.opcodes import Pipe, describe_mnemonic
from gpa_lsp.foundation.prose import Sentence, count, cycles, join, say
from gpa_lsp.gpu.arch.hazards import ProducerGroup
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.sections import Throughput

# From here on an arithmetic result is long in coming (GPA's rule for strength reduction); FP32 and integers take 4 or 5
LONG_LATENCY_CYCLES = 10

LOW_RATE = 0.25  # Up to this share of the FP32 rate a unit is narrow


class SlowKind(Enum):
    """Kind of slow instruction; remedies differ by it."""

    DOUBLE_PRECISION = "FP64 arithmetic"
    CONVERSION = "conversion"
    SPECIAL_FUNCTION = "special function"
    BIT_COUNT = "bit count"


class Slowness(Struct, frozen=True, kw_only=True):
    """Figures that make an opcode slow."""

    kind: SlowKind  # what it is
    latency_cycles: float | None  # from issue to result at best; None when not known
    rate_ratio: float | None  # instructions per cycle, of FP32's; None when not known

    @property
    def words(self) -> Sentence:
        """The figures that make it slow: ``1/8 of the FP32 rate, latency 18 cycles``."""
        clauses = []
        if self.rate_ratio is not None and self.rate_ratio > 0:
            clauses.append(say("1/{part} of the FP32 rate", part=count(1 / self.rate_ratio)))
        if self.latency_cycles is not None and self.latency_cycles >= LONG_LATENCY_CYCLES:
            clauses.append(say("latency {latency}", latency=cycles(round(self.latency_cycles))))
        return join(clauses, ", ")


# Groups of arithmetic; matrix units are no arithmetic that something cheaper could replace
_KINDS = {
    ProducerGroup.FP64: SlowKind.DOUBLE_PRECISION,
    ProducerGroup.CONVERSION: SlowKind.CONVERSION,
    ProducerGroup.SPECIAL_FUNCTION: SlowKind.SPECIAL_FUNCTION,
    ProducerGroup.BIT_COUNT: SlowKind.BIT_COUNT,
}

_DOUBLE = "F64"
_WIDE_TYPES = {_DOUBLE, "S64", "U64"}
_TO_INTEGER, _BETWEEN_FLOATS = "F2I", "F2F"


def find_slowness(
    architecture: Architecture, mnemonic: str, low_rate: float = LOW_RATE, *, joins_doubles: bool = False
) -> Slowness | None:
    """Find the slowness of an instruction on an architecture; None where it is not slow, or is no arithmetic.

    Args:
        low_rate: up to which share of the FP32 rate its unit is narrow.
        joins_doubles: whether conversions between integers and FP64 count as FP64 arithmetic, with which they disappear.

    >>> from gpa_lsp.gpu.arch.lookup import find_architecture
    >>> find_slowness(find_architecture((8, 6)), "DFMA").rate_ratio
    0.015625
    >>> find_slowness(find_architecture((8, 0)), "DFMA") is None
    True
    >>> find_slowness(find_architecture((8, 0)), "MUFU.EX2").kind
    <SlowKind.SPECIAL_FUNCTION: 'special function'>
    """
    group = architecture.opcodes.find_producer(mnemonic)
    kind = _KINDS.get(group) if group is not None else None
    if kind is None:
        return None
    is_of_doubles = joins_doubles and _DOUBLE in mnemonic.split(".")
    if kind is SlowKind.CONVERSION and is_of_doubles and not mnemonic.startswith(_BETWEEN_FLOATS):
        kind = SlowKind.DOUBLE_PRECISION  # conversions between floats stay: they are there for data in memory
    rate = _find_rate(architecture.throughput, kind, mnemonic)
    ratio = None if rate is None else rate / architecture.throughput.fp32_instructions_per_cycle.value
    latency = _find_latency(architecture, mnemonic)
    is_long = latency is not None and latency >= LONG_LATENCY_CYCLES
    is_narrow = ratio is not None and ratio <= low_rate
    return Slowness(kind=kind, latency_cycles=latency, rate_ratio=ratio) if is_long or is_narrow else None


def _find_rate(throughput: Throughput, kind: SlowKind, mnemonic: str) -> float | None:
    name, *modifiers = mnemonic.split(".")
    if kind is SlowKind.DOUBLE_PRECISION:
        return throughput.fp64_instructions_per_cycle.value
    if kind is SlowKind.SPECIAL_FUNCTION:
        return throughput.mufu_instructions_per_cycle.value
    if kind is SlowKind.BIT_COUNT:
        return throughput.bit_count_instructions_per_cycle.value
    if not _WIDE_TYPES.isdisjoint(modifiers):
        return throughput.conversion_64_instructions_per_cycle.value
    is_to_integer = name == _TO_INTEGER
    return (
        throughput.float_to_int_instructions_per_cycle
        if is_to_integer
        else throughput.conversion_instructions_per_cycle
    ).value


def _find_latency(architecture: Architecture, mnemonic: str) -> float | None:
    """Cycles until an instruction of the same kind could use the result, at best."""
    producer = architecture.find_producer(mnemonic)
    if producer is not None and describe_mnemonic(mnemonic).pipe is not Pipe.FP64:
        return producer.min_cycles.value
    bounds = architecture.find_register_latency(mnemonic, mnemonic)
    return None if bounds is None else bounds.low_cycles
