"""Lowering of what completes transactions of barrier objects: bulk copies (``cp.async.bulk``, ``cp.reduce.async.bulk``) and ``complete_tx``."""

from typing import Any

import numpy as np

from gpa_lsp.code.ptx.model import Operand, PtxInstruction, Space
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.emulator.compiled.lane_operations import LaneFunction
from gpa_lsp.execution.emulator.compiled.lowering import Lowering, NotLowered, Report, pad
from gpa_lsp.execution.emulator.compiled.model import ATOMIC, BULK
from gpa_lsp.execution.emulator.compiled.transfers import COMPLETE
from gpa_lsp.execution.emulator.engine.functions import find_space
from gpa_lsp.execution.emulator.model import FaultKind
from gpa_lsp.execution.emulator.semantics.model import RANK_SHIFT, RANKS_MASK

BULK_BYTES = "mbarrier::complete_tx::bytes"
_UNKNOWN = frozenset({"tensor", "cp_mask", "ignore_oob", "im2col"})
_NO_MULTIPLE = "the bytes of a bulk copy are no multiple of 16"


def is_counted_elsewhere(instruction: PtxInstruction) -> bool:
    """Whether an instruction completes transactions, and is not emulated: then none are counted, or others would wait forever."""
    return instruction.opcode in ("cp", "clusterlaunchcontrol") and not _UNKNOWN.union(("try_cancel",)).isdisjoint(
        instruction.suffixes
    )


def find_address(lowering: Lowering, operand: Operand) -> int:
    """The place of an address, as 64 bits."""
    fields = lowering.describe_access(operand, ScalarType.U64, 1)
    value = f"u64(a(u{8 * fields['address_bytes']})) + {fields['literal'] % (1 << 64)}"
    return lowering.compute(64, value, a=fields["a"])


def complete(lowering: Lowering, barrier: int, size: int, **guard: Any) -> None:
    """Complete so many bytes of the transactions that a barrier object in shared memory expects.

    Args:
        barrier: place of its address, as 64 bits.
        size: place of the number, as 64 bits.
        guard: in place of the instruction's.
    """
    lowering.emit(
        ATOMIC,
        **({"is_guarded": False} if guard else {}),
        a=barrier,
        address_bytes=8,
        space=int(Space.SHARED),
        elements=1,
        element_bytes=8,
        register_bytes=8,
        is_strong=1,
        is_hidden=1,
        kind=int(AccessKind.REDUCTION),
        combination=COMPLETE,
        places=pad([size]),
        **guard,
    )


def lower_bulk(lowering: Lowering, change: dict[str, int]) -> None:
    """Bulk copies; of ``multicast::cluster``, one to each block of the mask, where each block's barrier is told.

    Args:
        change: ``combination`` of a reduction, and ``elements`` of so many ``element_bytes`` in 16 bytes; empty for copies.

    Raises:
        NotLowered: it copies by a tensor map, or in a form that is not known.
    """
    instruction = lowering.instruction
    words, (target, source, size, *more) = instruction.suffixes, instruction.sources
    spaces = [find_space((word,)) for word in words if word.partition("::")[0] in ("global", "shared")]
    if len(spaces) != 2:
        raise NotLowered
    count = lowering.read(size, ScalarType.U32)
    lowering.check(lowering.compute(8, "u8((a(u32) & 15) == 0)", a=count), Report(FaultKind.MISALIGNED, _NO_MULTIPLE))
    bytes_ = lowering.compute(64, "u64(a(u32) & 0xFFFFFFF0)", a=count)
    fields: dict[str, Any] = {
        "a": find_address(lowering, source), "b": find_address(lowering, target), "c": bytes_, "space": int(spaces[1]),
        "other_space": int(spaces[0]), "elements": 2, "element_bytes": 8, "combination": -1, **change,
        "kind": int(AccessKind.STORE if spaces[0] is Space.GLOBAL else AccessKind.LOAD),
    }  # fmt: skip
    barrier = find_address(lowering, more[0]) if BULK_BYTES in words else None
    if "multicast::cluster" not in words:
        lowering.emit(BULK, **fields)
        if barrier is not None:
            complete(lowering, barrier, bytes_)
        return
    if barrier is None:
        raise NotLowered
    asked = lowering.narrow(lowering.frames.constant(np.uint8(1)))["guard"]
    blocks = lowering.compute(
        32, "u32(a(u16)) if b(u8) != 0 else u32(0)", a=lowering.read(more[1], ScalarType.U16), b=asked
    )
    chosen, others, to, told = (lowering.take_scratch() for _ in range(4))
    cluster = lowering.machine.geometry.cluster_blocks
    for rank in range(cluster):
        there = f"a(u64) & {~RANKS_MASK % (1 << 64)} | {(rank + 1 if cluster > 1 else 0) << RANK_SHIFT}"
        is_first = f"u8((a(u32) & {(1 << rank) - 1}) == 0)"
        for bits, value, place, of in (
            (8, f"u8(a(u32) >> {rank} & 1)", chosen, blocks),
            (8, f"u8(a(u32) >> {rank} & 1) & ({is_first} ^ 1)", others, blocks),
            (64, there, to, fields["b"]),
            (64, there, told, barrier),
        ):
            lowering.emit(LaneFunction(bits, value), is_guarded=False, a=of, result=place, result_bytes=bits // 8)
        # memory is read once, for the first of the blocks
        lowering.emit(BULK, is_guarded=False, guard=others, **{**fields, "b": to, "is_hidden": 1})
        lowering.emit(
            LaneFunction(8, "a(u8) ^ b(u8)"), is_guarded=False, a=chosen, b=others, result=others, result_bytes=1
        )
        lowering.emit(BULK, is_guarded=False, guard=others, **{**fields, "b": to})
        complete(lowering, told, bytes_, guard=chosen)
