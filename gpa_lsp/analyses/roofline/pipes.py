"""How busy the arithmetic pipes are, recomputed from how often each opcode was executed.

The rules were found on 42 launches of published reports by comparing with the profiler's own percentages, and hold to a tenth of a percent on the
compute capabilities they are given for; what is not known to hold is not recomputed.
"""

from collections.abc import Mapping
from enum import Enum
from functools import lru_cache

from gpa_lsp.arch.model import Architecture
from gpa_lsp.binary.opcodes import Pipe, describe_mnemonic


class PipeUse(Enum):
    """Pipes whose use can be recomputed; the values are the profiler's names of it."""

    XU = "sm__inst_executed_pipe_xu"
    FP64 = "sm__pipe_fp64_cycles_active"
    ALU = "sm__pipe_alu_cycles_active"
    FMA = "sm__pipe_fma_cycles_active"


_KNOWN: dict[PipeUse, frozenset[tuple[int, int]]] = {
    PipeUse.XU: frozenset({(7, 0), (8, 0), (8, 6), (8, 9), (9, 0), (12, 0)}),
    PipeUse.FP64: frozenset({(7, 0), (8, 0), (8, 6), (8, 9), (9, 0), (12, 0)}),
    PipeUse.ALU: frozenset({(7, 0), (8, 0), (8, 6), (8, 9), (9, 0)}),
    PipeUse.FMA: frozenset({(7, 0), (8, 0), (8, 6), (8, 9), (9, 0)}),
}
"""Compute capabilities a rule is known for; 8.9 has the SM of 8.6."""

_NOT_ON_ALU = {(7, 0): frozenset({"CS2R"}), **dict.fromkeys([(8, 0), (8, 6), (8, 9)], frozenset({"CS2R", "R2UR"}))}
_NOT_ON_ALU[(9, 0)] = frozenset({"R2UR", "VIADD"})
_HALF_OPCODES = frozenset({"HADD2", "HADD2_32I", "HMUL2", "HMUL2_32I", "HFMA2", "HFMA2_32I"})
_WIDE = frozenset({"WIDE", "HI"})
_SPLIT_FMA = frozenset({(8, 6), (8, 9), (9, 0)})
"""FMA in two halves, of which one multiplies integers: a wide product takes it twice."""
_SLOW_FP64 = 0.1
"""Warp instructions per cycle and sub-partition; GPUs below it convert from and to FP64 in their FP64 unit."""


def find_pipe_use(
    use: PipeUse, warps: Mapping[str, float], architecture: Architecture, sm_cycles: float
) -> float | None:
    """The share of its peak that a pipe had.

    Args:
        use: which.
        warps: mnemonic → executions by warps.
        architecture: the GPU's.
        sm_cycles: elapsed cycles, summed over the SMs; positive.

    Returns:
        0..1; None where the rule is not known to hold.
    """
    capability = architecture.compute_capability
    rate = _find_rate(use, architecture)
    if capability not in _KNOWN[use] or rate is None or rate <= 0:
        return None
    fp64_rate = _find_rate(PipeUse.FP64, architecture)
    is_slow = fp64_rate is not None and fp64_rate < _SLOW_FP64
    cost = sum(count * _weigh(use, mnemonic, capability, is_slow) for mnemonic, count in warps.items())
    return cost / (sm_cycles * architecture.sm.sub_partitions_per_sm.value * rate)


def _find_rate(use: PipeUse, architecture: Architecture) -> float | None:
    """Warp instructions per cycle and sub-partition."""
    throughput = architecture.throughput
    figure = {
        PipeUse.XU: throughput.mufu_instructions_per_cycle,
        PipeUse.FP64: throughput.fp64_instructions_per_cycle,
        PipeUse.ALU: throughput.int32_logic_instructions_per_cycle,
        PipeUse.FMA: throughput.fp32_instructions_per_cycle,
    }[use]
    return None if figure.value is None else float(figure.value)


@lru_cache(maxsize=8192)
def _weigh(use: PipeUse, mnemonic: str, capability: tuple[int, int], is_slow_fp64: bool) -> float:
    """How often an instruction takes the pipe."""
    opcode, *modifiers = mnemonic.split(".")
    pipe = describe_mnemonic(mnemonic).pipe
    if use is PipeUse.FMA:
        return _weigh_fma(opcode, modifiers, pipe, capability)
    if use is PipeUse.ALU:
        return float(pipe is Pipe.ALU and opcode not in _NOT_ON_ALU[capability])
    is_converted = pipe is Pipe.XU and is_slow_fp64 and "F64" in modifiers
    if use is PipeUse.FP64:
        return float(pipe is Pipe.FP64 or is_converted)
    return float(pipe is Pipe.XU and not is_converted)


def _weigh_fma(opcode: str, modifiers: list[str], pipe: Pipe | None, capability: tuple[int, int]) -> float:
    if capability not in _SPLIT_FMA:
        return float(pipe is Pipe.FMA)
    if opcode in _HALF_OPCODES:
        # Both halves on 8.6; on 9.0 the compiler's HFMA2.MMA goes to the tensor cores.
        return 0.0 if "MMA" in modifiers else 2.0
    if opcode == "VIADD":
        return float(capability >= (9, 0))
    return (2.0 if _WIDE & set(modifiers[:1]) else 1.0) * (pipe is Pipe.FMA)


_HALF_ON_TENSOR_CYCLES = {(8, 0): 0.25, (9, 0): 0.5}


def find_half_cycles(warps: Mapping[str, float], architecture: Architecture) -> float:
    """Cycles of an SM that half-precision arithmetic takes the tensor cores: ``HFMA2.MMA`` of 8.0 and 9.0."""
    cycles = _HALF_ON_TENSOR_CYCLES.get(architecture.compute_capability, 0.0)
    return cycles * sum(count for mnemonic, count in warps.items() if mnemonic.startswith("HFMA2.MMA"))
