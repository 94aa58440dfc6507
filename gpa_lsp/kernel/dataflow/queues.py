"""The queues in front of the units that the warps of an SM share: which instructions stand in which, and which of those are memory's."""

from gpa_lsp.kernel.dataflow.instruction_kinds import InstructionKind

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
