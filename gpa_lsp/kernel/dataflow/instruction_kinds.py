"""Kinds of instructions as sources of stalls: what a warp waits for, and the queue it waits in."""

from enum import StrEnum
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.model import Flow
from gpa_lsp.code.binary.opcodes import MemorySpace, Opcode, Synchronisation, describe_mnemonic
from gpa_lsp.foundation.records import remembered
from gpa_lsp.gpu.arch.hazards import LatencyClass, ProducerGroup
from gpa_lsp.gpu.arch.lookup import load_opcode_classes
from gpa_lsp.kernel.model import KernelRows


class InstructionKind(StrEnum):
    """Kind of an instruction; values are names for people, in the plural."""

    GLOBAL_LOAD = "loads from global memory"
    LOCAL_LOAD = "loads from local memory"
    TEXTURE = "texture fetches"
    SURFACE = "surface accesses"
    GLOBAL_ATOMIC = "atomics that return a value"
    GLOBAL_REDUCTION = "atomics without a result"
    GLOBAL_STORE = "stores to global memory"
    LOCAL_STORE = "stores to local memory"
    ASYNC_COPY = "asynchronous copies to shared memory"
    BULK_COPY = "bulk copies (TMA)"
    SHARED_LOAD = "loads from shared memory"
    SHARED_STORE = "stores to shared memory"
    SHARED_ATOMIC = "atomics in shared memory"
    MATRIX_LOAD = "matrix loads from shared memory"
    BARRIER_OBJECT = "barrier objects in shared memory (mbarrier)"
    CONSTANT_LOAD = "constant loads"
    SPECIAL_FUNCTION = "special functions (MUFU)"
    CONVERSION = "conversions between integers and floats"
    BIT_COUNT = "bit counts and reversals"
    DIVISION_CHECK = "checks of division operands"
    SHUFFLE = "shuffles"
    WARP_OPERATION = "votes, matches and reductions in a warp"
    SPECIAL_REGISTER = "special registers"
    WIDE_MOVE = "moves of zeros or clocks into pairs of registers (CS2R)"
    TO_UNIFORM = "moves to uniform registers"
    INTEGER = "integer, logic and compares (ALU)"
    MULTIPLY_ADD = "FP32 and multiply-adds (FMA)"
    FP16 = "half precision"
    FP64 = "double precision"
    TENSOR = "matrix instructions"
    UNIFORM = "uniform instructions"
    BLOCK_BARRIER = "block barriers"
    FENCE = "memory fences"
    WARP_GROUP = "warp group synchronisation"
    RECONVERGENCE = "reconvergence points"
    BRANCH = "branches"
    INDIRECT_BRANCH = "indirect branches and calls"
    CALL = "calls and returns"
    EXIT = "exits"
    SLEEP = "sleeps and yields"
    OTHER = "other instructions"
    UNKNOWN = "instructions that were not decoded"


KINDS = tuple(InstructionKind)  # All kinds; rows name theirs by the index in it

# Every group of instructions of variable latency; a test holds it against the groups there are
_OF_GROUP = {
    ProducerGroup.GLOBAL_LOAD: InstructionKind.GLOBAL_LOAD,
    ProducerGroup.LOCAL_LOAD: InstructionKind.LOCAL_LOAD,
    ProducerGroup.SHARED_LOAD: InstructionKind.SHARED_LOAD,
    ProducerGroup.MATRIX_LOAD: InstructionKind.MATRIX_LOAD,
    ProducerGroup.CONSTANT_LOAD: InstructionKind.CONSTANT_LOAD,
    ProducerGroup.UNIFORM_CONSTANT_LOAD: InstructionKind.CONSTANT_LOAD,
    ProducerGroup.TEXTURE: InstructionKind.TEXTURE,
    ProducerGroup.SURFACE: InstructionKind.SURFACE,
    ProducerGroup.GLOBAL_STORE: InstructionKind.GLOBAL_STORE,
    ProducerGroup.LOCAL_STORE: InstructionKind.LOCAL_STORE,
    ProducerGroup.SHARED_STORE: InstructionKind.SHARED_STORE,
    ProducerGroup.GLOBAL_ATOMIC: InstructionKind.GLOBAL_ATOMIC,
    ProducerGroup.GLOBAL_REDUCTION: InstructionKind.GLOBAL_REDUCTION,
    ProducerGroup.SHARED_ATOMIC: InstructionKind.SHARED_ATOMIC,
    ProducerGroup.ASYNC_COPY: InstructionKind.ASYNC_COPY,
    ProducerGroup.ASYNC_COPY_FENCE: InstructionKind.ASYNC_COPY,
    ProducerGroup.SPECIAL_FUNCTION: InstructionKind.SPECIAL_FUNCTION,
    ProducerGroup.CONVERSION: InstructionKind.CONVERSION,
    ProducerGroup.BIT_COUNT: InstructionKind.BIT_COUNT,
    ProducerGroup.DIVISION_CHECK: InstructionKind.DIVISION_CHECK,
    ProducerGroup.SHUFFLE: InstructionKind.SHUFFLE,
    ProducerGroup.MATCH: InstructionKind.WARP_OPERATION,
    ProducerGroup.WARP_REDUCTION: InstructionKind.WARP_OPERATION,
    ProducerGroup.SPECIAL_REGISTER: InstructionKind.SPECIAL_REGISTER,
    ProducerGroup.REGISTER_TO_UNIFORM: InstructionKind.TO_UNIFORM,
    ProducerGroup.FP64: InstructionKind.FP64,
    ProducerGroup.TENSOR: InstructionKind.TENSOR,
    ProducerGroup.TENSOR_FP64: InstructionKind.TENSOR,
    ProducerGroup.WARPGROUP_MMA: InstructionKind.TENSOR,
    ProducerGroup.TENSOR_MEMORY: InstructionKind.TENSOR,
    ProducerGroup.BULK_COPY: InstructionKind.BULK_COPY,
    ProducerGroup.MBARRIER: InstructionKind.BARRIER_OBJECT,
}

_OF_SYNCHRONISATION = {
    Synchronisation.BLOCK: InstructionKind.BLOCK_BARRIER,
    Synchronisation.FENCE: InstructionKind.FENCE,
    Synchronisation.WARPGROUP: InstructionKind.WARP_GROUP,
    Synchronisation.WARP: InstructionKind.RECONVERGENCE,
    Synchronisation.SLEEP: InstructionKind.SLEEP,
}

_OF_FLOW = {
    Flow.BRANCH: InstructionKind.BRANCH,
    Flow.INDIRECT_BRANCH: InstructionKind.INDIRECT_BRANCH,
    Flow.CALL: InstructionKind.CALL,
    Flow.INDIRECT_CALL: InstructionKind.INDIRECT_BRANCH,
    Flow.RETURN: InstructionKind.CALL,
    Flow.EXIT: InstructionKind.EXIT,
    Flow.BARRIER_SET: InstructionKind.RECONVERGENCE,
    Flow.BARRIER_WAIT: InstructionKind.RECONVERGENCE,
    Flow.TRAP: InstructionKind.EXIT,
}

_OF_LATENCY_CLASS = {
    LatencyClass.ALU: InstructionKind.INTEGER,
    LatencyClass.DUAL_ALU: InstructionKind.INTEGER,
    LatencyClass.FMA: InstructionKind.MULTIPLY_ADD,
    LatencyClass.IMAD_WIDE: InstructionKind.MULTIPLY_ADD,
    LatencyClass.DISPATCH: InstructionKind.WARP_OPERATION,
    LatencyClass.DISPATCH_64: InstructionKind.WIDE_MOVE,
    LatencyClass.FP16: InstructionKind.FP16,
    LatencyClass.FP16_ALU: InstructionKind.FP16,
    LatencyClass.FP16_F32: InstructionKind.FP16,
    LatencyClass.HFMA2_MMA: InstructionKind.FP16,
    LatencyClass.FP64: InstructionKind.FP64,
    LatencyClass.CLMAD: InstructionKind.MULTIPLY_ADD,
    LatencyClass.R2P: InstructionKind.INTEGER,
    LatencyClass.UNIFORM: InstructionKind.UNIFORM,
    LatencyClass.UNIFORM_MOVE: InstructionKind.UNIFORM,
    LatencyClass.VOTE_UNIFORM: InstructionKind.WARP_OPERATION,
}

# Kinds of accesses in no group: those of the uniform datapath, and a few rare ones
_OF_MEMORY = {
    MemorySpace.CONSTANT: InstructionKind.CONSTANT_LOAD,
    MemorySpace.SHARED: InstructionKind.SHARED_LOAD,
    MemorySpace.LOCAL: InstructionKind.LOCAL_LOAD,
    MemorySpace.TEXTURE: InstructionKind.TEXTURE,
    MemorySpace.SURFACE: InstructionKind.SURFACE,
    MemorySpace.TENSOR: InstructionKind.TENSOR,
    MemorySpace.GLOBAL: InstructionKind.BULK_COPY,
}


@lru_cache(maxsize=8192)
def find_kind(mnemonic: str) -> InstructionKind:
    """The kind of an instruction.

    >>> find_kind("LDG.E.64").name, find_kind("MUFU.RCP").name, find_kind("IMAD.WIDE").name, find_kind("BAR.SYNC.DEFER_BLOCKING").name
    ('GLOBAL_LOAD', 'SPECIAL_FUNCTION', 'MULTIPLY_ADD', 'BLOCK_BARRIER')
    """
    classes = load_opcode_classes()
    group = classes.find_producer(mnemonic)
    if group is not None:
        return _OF_GROUP[group]
    opcode = describe_mnemonic(mnemonic)
    known = _find_by_effect(opcode)
    if known is not None:
        return known
    latency_class = classes.find_latency_class(mnemonic)
    if latency_class is None:
        return InstructionKind.OTHER
    return _OF_LATENCY_CLASS.get(latency_class, InstructionKind.OTHER)


def _find_by_effect(opcode: Opcode) -> InstructionKind | None:
    if opcode.synchronises is not None:
        return _OF_SYNCHRONISATION[opcode.synchronises]
    if opcode.flow in _OF_FLOW:
        return _OF_FLOW[opcode.flow]
    return None if opcode.memory is None else _OF_MEMORY.get(opcode.memory, InstructionKind.OTHER)


# Instructions that go through the memory input/output queue
MIO_KINDS = frozenset(
    {
        InstructionKind.SHARED_LOAD,
        InstructionKind.SHARED_STORE,
        InstructionKind.SHARED_ATOMIC,
        InstructionKind.MATRIX_LOAD,
        InstructionKind.BARRIER_OBJECT,
        InstructionKind.CONSTANT_LOAD,
        InstructionKind.SPECIAL_FUNCTION,
        InstructionKind.CONVERSION,
        InstructionKind.BIT_COUNT,
        InstructionKind.DIVISION_CHECK,
        InstructionKind.SHUFFLE,
        InstructionKind.WARP_OPERATION,
        InstructionKind.SPECIAL_REGISTER,
        InstructionKind.TO_UNIFORM,
        InstructionKind.BLOCK_BARRIER,
        InstructionKind.INDIRECT_BRANCH,
    }
)

# Instructions that go through the queue for local and global memory
LG_KINDS = frozenset(
    {
        InstructionKind.GLOBAL_LOAD,
        InstructionKind.LOCAL_LOAD,
        InstructionKind.GLOBAL_STORE,
        InstructionKind.LOCAL_STORE,
        InstructionKind.GLOBAL_ATOMIC,
        InstructionKind.GLOBAL_REDUCTION,
        InstructionKind.ASYNC_COPY,
    }
)

TEX_KINDS = frozenset({InstructionKind.TEXTURE, InstructionKind.SURFACE})

# Reason → the kinds of instruction that stand in its queue. Source: Nsight Compute Profiling Guide, Warp Stall Reasons and Pipelines.
QUEUES: dict[str, frozenset[InstructionKind]] = {
    "mio_throttle": MIO_KINDS,
    "lg_throttle": LG_KINDS,
    "tex_throttle": TEX_KINDS,
}


@remembered
def list_kinds(rows: KernelRows) -> npt.NDArray[np.int16]:
    """int16[n] into :data:`KINDS`, the kind of every row; ``UNKNOWN`` without a disassembly."""
    return rows.spread_by_mnemonic(
        lambda name: KINDS.index(find_kind(name)), KINDS.index(InstructionKind.UNKNOWN)
    ).astype(np.int16)


def select_kinds(rows: KernelRows, wanted: frozenset[InstructionKind]) -> npt.NDArray[np.bool_]:
    """bool[n], rows of one of the kinds."""
    is_wanted = np.array([kind in wanted for kind in KINDS], dtype=bool)
    selected: npt.NDArray[np.bool_] = is_wanted[list_kinds(rows)]
    return selected
