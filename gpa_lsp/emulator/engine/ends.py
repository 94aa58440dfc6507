"""Binding of instructions that end a segment: branches, returns, traps, barriers, calls."""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from gpa_lsp.emulator.engine import calls
from gpa_lsp.emulator.engine.barriers import BlockBarrier, WarpBarrier
from gpa_lsp.emulator.engine.binder import Binder, UnsupportedInstruction, flatten
from gpa_lsp.emulator.engine.control import (
    end_guarded,
    end_with_branch,
    end_with_exit,
    end_with_fault,
    end_with_jump,
    end_with_table,
)
from gpa_lsp.emulator.engine.layout import Piece
from gpa_lsp.emulator.engine.segments import Segment
from gpa_lsp.emulator.engine.system_functions import find_builtin
from gpa_lsp.emulator.model import FaultKind
from gpa_lsp.emulator.ptx.blocks import PtxBlocks
from gpa_lsp.emulator.ptx.model import CallDetails, Immediate, Symbol
from gpa_lsp.emulator.ptx.scalar_types import ScalarType

if TYPE_CHECKING:
    from gpa_lsp.emulator.engine.machine import Machine


def bind_end(
    binder: Binder,
    machine: "Machine",
    segment: Segment,
    following: Segment | None,
    starts: list[Segment],
    blocks: PtxBlocks,
) -> None:
    """Give a segment its end.

    Args:
        binder: stands at the instruction.
        machine: what all functions share.
        segment: that the instruction ends.
        following: what is behind it; None at the end of the function.
        starts: of each block its first segment.
        blocks: of the function.

    Raises:
        UnsupportedInstruction: the form is not emulated.
    """
    instruction = binder.instruction
    match instruction.opcode:
        case "bra" | "brx":
            _bind_branch(binder, machine, segment, following, starts, blocks)
        case "exit":
            segment.end = end_with_exit(binder.guard, following)
        case "ret":
            leaves = end_with_exit(None, None) if binder.function.is_entry else calls.leave
            segment.end = end_guarded(binder.guard, following, leaves)
        case "trap":
            segment.end = end_with_fault(
                binder.guard, following, kind=FaultKind.TRAP, message="trap: the kernel gave up", static=binder.static
            )
        case "call":
            _bind_call(binder, machine, segment, _need(following))
        case _:
            _bind_barrier(binder, segment, _need(following), blocks)


def _need(following: Segment | None) -> Segment:
    if following is None:
        raise UnsupportedInstruction("the function ends without ret")
    return following


def _bind_branch(
    binder: Binder,
    machine: "Machine",
    segment: Segment,
    following: Segment | None,
    starts: list[Segment],
    blocks: PtxBlocks,
) -> None:
    instruction = binder.instruction
    if instruction.opcode == "brx":
        targets = [starts[blocks.block_of[index]] for index in instruction.targets]
        index = binder.read(instruction.sources[0], ScalarType.U32)
        segment.end = end_with_table(targets, index, following, binder.guard, binder.static, machine)
        return
    if instruction.target is None:
        raise UnsupportedInstruction("bra without a target")
    target = starts[blocks.block_of[instruction.target]]
    guard = instruction.guard
    if guard is None:
        segment.end = end_with_jump(target)
        return
    segment.end = end_with_branch(
        target, _need(following), guard.slot, static=binder.static, tracer=machine.tracer, is_negated=guard.is_negated
    )


def _bind_barrier(binder: Binder, segment: Segment, following: Segment, blocks: PtxBlocks) -> None:
    instruction = binder.instruction
    words = instruction.suffixes
    if "warp" in words:
        members = binder.read(instruction.sources[0], ScalarType.U32)
        gate = WarpBarrier(static=binder.static, following=following, members=members, guard=None, is_sync=True)
        following.live_in = (*following.live_in, members)
        segment.end = end_guarded(binder.guard, following, gate.arrive)
        return
    if "cluster" in words:
        raise UnsupportedInstruction("barriers of clusters")
    reduction = next((word for word in ("popc", "and", "or") if "red" in words and word in words), "")
    operands = list(instruction.sources)
    predicate = binder.read(operands.pop(), ScalarType.PRED) if reduction else None
    result = None
    if reduction:
        kind = ScalarType.U32 if reduction == "popc" else ScalarType.PRED
        result = binder.write(flatten(instruction.destinations)[0], kind)
        binder.defer(following.steps)
        following.live_in = (*following.live_in, result)
    barrier = BlockBarrier(
        static=binder.static,
        following=following,
        number=binder.read(operands[0] if operands else Immediate(0), ScalarType.U32),
        threads=binder.read(operands[1], ScalarType.U32) if len(operands) > 1 else None,
        reduction=reduction,
        predicate=predicate,
        result=result,
        waits="arrive" not in words,
        is_aligned=instruction.opcode == "bar" or "aligned" in words,
        is_bypassed=_make_bypass_test(binder, blocks),
    )
    segment.end = end_guarded(binder.guard, following, barrier.arrive)


def _make_bypass_test(binder: Binder, blocks: PtxBlocks) -> Callable[[], bool]:
    """See :attr:`.BlockBarrier.is_bypassed`; found when it is first asked for."""
    instructions, barrier = binder.function.instructions, binder.instruction
    block = blocks.block_of[barrier.index]

    @cache
    def is_bypassed() -> bool:
        after = _find_reached(blocks, list(blocks.successors[block]), None)
        around = _find_reached(blocks, [0], block) if block else set()
        return any(instructions[blocks.first[other]].opcode not in ("ret", "exit") for other in after & around)

    return is_bypassed


def _find_reached(blocks: PtxBlocks, starts: list[int], left_out: int | None) -> set[int]:
    """Blocks that can be reached from some without going through one."""
    reached = {start for start in starts if start != left_out}
    waiting = list(reached)
    while waiting:
        for other in blocks.successors[waiting.pop()]:
            if other not in reached and other != left_out:
                reached.add(other)
                waiting.append(other)
    return reached


def _bind_call(binder: Binder, machine: "Machine", segment: Segment, following: Segment) -> None:
    call = binder.instruction.call
    if call is None:
        raise UnsupportedInstruction("call without a callee")
    arguments = [binder.take_stored(_name(operand)) for operand in call.arguments]
    results = [binder.expect_returned(_name(operand)) for operand in call.results]
    following.returned = results
    if call.callee is None:
        if call.pointer is None:
            raise UnsupportedInstruction("call without a callee")
        end = calls.end_with_indirect_call(call.pointer.slot, arguments, following, machine, binder.static)
        segment.end = end_guarded(binder.guard, following, end)
        return
    segment.end = end_guarded(
        binder.guard, following, _end_direct(binder, machine, call, arguments, results, following)
    )


def _end_direct(
    binder: Binder,
    machine: "Machine",
    call: CallDetails,
    arguments: list[dict[Piece, int]],
    results: list[dict[Piece, int]],
    following: Segment,
) -> "calls.End":
    assert call.callee is not None
    function = machine.module.functions.get(call.callee)
    if function is not None and function.instructions:
        return calls.end_with_call(call.callee, arguments, following, machine, binder.static)
    builtin = find_builtin(machine, call.callee)
    if builtin is None:
        raise UnsupportedInstruction(f"{call.callee} has no body")
    return calls.end_with_builtin(builtin, arguments, results, following, binder.static)


def _name(operand: object) -> str:
    if not isinstance(operand, Symbol):
        raise UnsupportedInstruction("parameters in registers")
    return operand.name
