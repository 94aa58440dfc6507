"""Binding of instructions that end a segment: branches, returns, traps, barriers, calls."""

from collections.abc import Callable
from functools import cache

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.emulator.engine import calls
from gpa_lsp.emulator.engine.barriers import BlockBarrier, WarpBarrier, end_with_barrier
from gpa_lsp.emulator.engine.binder import Binder, UnsupportedInstruction, flatten
from gpa_lsp.emulator.engine.control import (
    end_guarded,
    end_with_branch,
    end_with_exit,
    end_with_fault,
    end_with_jump,
    end_with_table,
)
from gpa_lsp.emulator.engine.fragments import Closing, ClosingKind, End, Segment
from gpa_lsp.emulator.engine.machine import Machine
from gpa_lsp.emulator.engine.system_functions import find_builtin
from gpa_lsp.emulator.model import FaultKind
from gpa_lsp.ptx.blocks import PtxBlocks
from gpa_lsp.ptx.model import Immediate, Symbol
from gpa_lsp.ptx.scalar_types import ScalarType


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """A segment that is to get its end.

    Attributes:
        binder: stands at the instruction.
        machine: what all functions share.
        segment: that the instruction ends.
        following: what is behind it; None at the end of the function.
        starts: of each block its first segment.
        blocks: of the function.
    """

    binder: Binder
    machine: Machine
    segment: Segment
    following: Segment | None
    starts: list[Segment]
    blocks: PtxBlocks

    @property
    def next_segment(self) -> Segment:
        """What is behind it.

        Raises:
            UnsupportedInstruction: nothing is.
        """
        if self.following is None:
            raise UnsupportedInstruction("the function ends without ret")
        return self.following


def bind_end(ending: Ending) -> None:
    """Give a segment its end.

    Raises:
        UnsupportedInstruction: the form is not emulated.
    """
    binder, segment = ending.binder, ending.segment
    match binder.instruction.opcode:
        case "bra" | "brx":
            segment.end = _bind_branch(ending)
        case "exit":
            segment.end = end_with_exit(binder.guard, ending.following)
            segment.closing = _close_with_exit(ending)
        case "ret":
            leaves = end_with_exit(None, None) if binder.function.is_entry else calls.leave
            segment.closing = _close_with_exit(ending) if binder.function.is_entry else None
            segment.end = end_guarded(binder.guard, ending.following, leaves)
        case "trap":
            message = "trap: the kernel aborted"
            segment.end = end_with_fault(
                binder.guard, ending.following, kind=FaultKind.TRAP, message=message, static=binder.static
            )
        case "call":
            segment.end = end_guarded(binder.guard, ending.following, _bind_call(ending))
        case _:
            segment.end = end_guarded(binder.guard, ending.following, _bind_barrier(ending))


def _close_with_exit(ending: Ending) -> Closing | None:
    guard = ending.binder.instruction.guard
    if guard is None or ending.following is None:
        return Closing(kind=ClosingKind.EXIT) if guard is None else None
    return Closing(
        kind=ClosingKind.EXIT,
        fallen=ending.following,
        guard=guard.slot,
        is_negated=guard.is_negated,
        static=ending.binder.static,
    )


def _bind_branch(ending: Ending) -> End:
    binder, machine = ending.binder, ending.machine
    instruction = binder.instruction
    if instruction.opcode == "brx":
        targets = [ending.starts[ending.blocks.block_of[index]] for index in instruction.targets]
        index = binder.read(instruction.sources[0], ScalarType.U32)
        following = ending.following
        return end_with_table(targets, index, following, guard=binder.guard, static=binder.static, machine=machine)
    if instruction.target is None:
        raise UnsupportedInstruction("bra without a target")
    target = ending.starts[ending.blocks.block_of[instruction.target]]
    guard = instruction.guard
    if guard is None:
        ending.segment.closing = Closing(kind=ClosingKind.JUMP, taken=target)
        return end_with_jump(target)
    ending.segment.closing = Closing(
        kind=ClosingKind.BRANCH,
        taken=target,
        fallen=ending.next_segment,
        guard=guard.slot,
        is_negated=guard.is_negated,
        static=binder.static,
    )
    return end_with_branch(
        target,
        ending.next_segment,
        guard.slot,
        static=binder.static,
        tracer=machine.tracer,
        is_negated=guard.is_negated,
    )


def _bind_barrier(ending: Ending) -> End:
    binder, following = ending.binder, ending.next_segment
    instruction = binder.instruction
    words = instruction.suffixes
    if "warp" in words:
        members = binder.read(instruction.sources[0], ScalarType.U32)
        gate = WarpBarrier(static=binder.static, following=following, members=members, guard=None, is_sync=True)
        following.live_in = (*following.live_in, members)
        if binder.guard is None:
            ending.segment.closing = Closing(kind=ClosingKind.GATE, taken=following)
        return end_with_barrier(gate)
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
        is_bypassed=_make_bypass_test(binder, ending.blocks),
    )
    is_plain = not reduction and barrier.waits and barrier.threads is None and binder.guard is None
    if is_plain and not (operands and not isinstance(operands[0], Immediate)):
        ending.segment.closing = Closing(kind=ClosingKind.BARRIER, taken=following, static=binder.static)
    return end_with_barrier(barrier)


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


def _bind_call(ending: Ending) -> End:
    binder, machine, following = ending.binder, ending.machine, ending.next_segment
    call = binder.instruction.call
    if call is None:
        raise UnsupportedInstruction("call without a callee")
    arguments = [binder.take_stored(_name(operand)) for operand in call.arguments]
    following.returned = [binder.expect_returned(_name(operand)) for operand in call.results]
    site = calls.CallSite(machine=machine, arguments=arguments, return_to=following, static=binder.static)
    if call.callee is None:
        if call.pointer is None:
            raise UnsupportedInstruction("call without a callee")
        return calls.end_with_indirect_call(call.pointer.slot, site)
    function = machine.module.functions.get(call.callee)
    if function is not None and function.instructions:
        return calls.end_with_call(call.callee, site)
    builtin = find_builtin(machine, call.callee)
    if builtin is None:
        raise UnsupportedInstruction(f"{call.callee} has no body")
    return calls.end_with_builtin(builtin, site)


def _name(operand: object) -> str:
    if not isinstance(operand, Symbol):
        raise UnsupportedInstruction("parameters in registers")
    return operand.name
