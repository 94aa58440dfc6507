"""Which binder an instruction has: :func:`bind_instruction`."""

from collections.abc import Callable

import numpy as np

from gpa_lsp.code.ptx.model import Immediate, Vector
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.engine.address_steps import (
    bind_activemask,
    bind_cvta,
    bind_isspacep,
    bind_mapa,
    bind_mov,
)
from gpa_lsp.execution.emulator.engine.atomic_steps import bind_atomic, bind_mbarrier
from gpa_lsp.execution.emulator.engine.binder import Binder, UnsupportedInstruction, flatten, read_as
from gpa_lsp.execution.emulator.engine.copy_steps import bind_copy
from gpa_lsp.execution.emulator.engine.fragments import Fragment
from gpa_lsp.execution.emulator.engine.lane_steps import bind_lane_operation, bind_warp_operation, guarded_mask
from gpa_lsp.execution.emulator.engine.matrix_steps import bind_matrix_move, is_matrix_move
from gpa_lsp.execution.emulator.engine.memory_steps import bind_load, bind_store
from gpa_lsp.execution.emulator.engine.texture_steps import bind_texture
from gpa_lsp.execution.emulator.engine.values import U32
from gpa_lsp.execution.emulator.engine.warp_group_steps import bind_warp_group, is_warp_group_product
from gpa_lsp.execution.emulator.operations.find import bind_operation
from gpa_lsp.execution.emulator.operations.model import LaneOperation, WarpOperation


def bind_elect(binder: Binder) -> None:
    """The lowest lane named in the mask is the leader, as the hardware chooses today.

    Raises:
        UnsupportedInstruction: an operand is of a kind it cannot have.
    """
    instruction = binder.instruction
    members = binder.read(instruction.sources[0], ScalarType.U32)
    results = flatten(instruction.destinations)
    leader = binder.write(results[0], ScalarType.U32)
    elected = binder.write(results[1], ScalarType.PRED) if len(results) > 1 else None
    guard = binder.guard

    def step(fragment: Fragment) -> None:
        bits = np.broadcast_to(fragment.warps.column("lanemask_eq"), (fragment.warps.lanes,))
        named = guarded_mask(fragment, guard) & ((read_as(fragment, members, U32) & bits) != 0)
        first = np.repeat(named.reshape(-1, 32).argmax(axis=1).astype(np.uint32), 32)
        fragment.registers[leader] = first
        if elected is not None:
            fragment.registers[elected] = first == fragment.warps.column("laneid")

    binder.steps.append(step)
    binder.finish()


def _bind_nothing(binder: Binder) -> None:
    """Hints, fences and sleeping: memory is in order already."""
    binder.finish()


_BINDERS: dict[str, Callable[[Binder], None]] = {
    "ld": bind_load,
    "ldu": bind_load,
    "st": bind_store,
    "atom": bind_atomic,
    "red": bind_atomic,
    "mbarrier": bind_mbarrier,
    "cp": bind_copy,
    "cvta": bind_cvta,
    "isspacep": bind_isspacep,
    "mapa": bind_mapa,
    "activemask": bind_activemask,
    "elect": bind_elect,
    "wgmma": bind_warp_group,
    "tex": bind_texture,
    "tld4": bind_texture,
    "txq": bind_texture,
    "suq": bind_texture,
    "suld": bind_texture,
    "sust": bind_texture,
}
_BINDERS |= dict.fromkeys(
    ("membar", "fence", "nanosleep", "prefetch", "prefetchu", "applypriority", "discard", "griddepcontrol", "pmevent",
     "brkpt", "setmaxnreg"),
    _bind_nothing,
)  # fmt: skip


def bind_instruction(binder: Binder) -> None:
    """Add the steps of the instruction a binder stands at, which ends no segment.

    Raises:
        UnsupportedInstruction: it is not emulated.
    """
    instruction = binder.instruction
    if ScalarType.B128 in instruction.types:
        raise UnsupportedInstruction("values of 128 bits")
    if is_matrix_move(instruction):
        bind_matrix_move(binder)
        return
    bind = _BINDERS.get(instruction.opcode)
    if bind is not None:
        bind(binder)
        return
    operands = (*instruction.sources, *instruction.destinations)
    if instruction.opcode == "mov" and not any(isinstance(one, Vector) for one in operands):
        bind_mov(binder)
        return
    operation = bind_operation(instruction)
    if isinstance(operation, LaneOperation):
        bind_lane_operation(binder, operation)
    elif isinstance(operation, WarpOperation):
        bind_warp_operation(binder, operation)
    else:
        raise UnsupportedInstruction


def find_gate(binder: Binder) -> int | None:
    """The slot of the member mask of an instruction whose lanes wait for each other; None when they do not."""
    instruction = binder.instruction
    if "sync" not in instruction.suffixes or (instruction.opcode == "wgmma" and not is_warp_group_product(instruction)):
        return None
    everyone = Immediate(0xFFFFFFFF)
    if instruction.opcode == "elect":
        return binder.read(instruction.sources[0] if instruction.sources else everyone, ScalarType.U32)
    operation = None if is_matrix_move(instruction) else bind_operation(instruction)
    if isinstance(operation, WarpOperation) and operation.member_mask_source is not None:
        return binder.read(flatten(instruction.sources)[operation.member_mask_source], ScalarType.U32)
    return binder.read(everyone, ScalarType.U32)
