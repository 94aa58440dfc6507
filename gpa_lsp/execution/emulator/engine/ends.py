"""Binding of instructions that end a segment: branches, returns, traps, barriers, calls."""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np
from msgspec import Struct

from gpa_lsp.code.ptx.blocks import PtxBlocks
from gpa_lsp.code.ptx.model import Immediate, Operand, PtxFunction, PtxInstruction, Register, Symbol, list_reads
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.engine.barriers import BlockBarrier, ClusterBarrier, WarpBarrier, end_with_barrier
from gpa_lsp.execution.emulator.engine.control import (
    Builtin,
    end_guarded,
    end_with_builtin,
    end_with_fault,
    end_with_indirect_call,
    end_with_table,
)
from gpa_lsp.execution.emulator.engine.device_runtime import PREFIXES
from gpa_lsp.execution.emulator.engine.fragments import (
    BoundFunction,
    CallEdge,
    Closing,
    ClosingKind,
    End,
    Fragment,
    Parts,
    Segment,
)
from gpa_lsp.execution.emulator.engine.geometry import BOOL, U32, Value
from gpa_lsp.execution.emulator.engine.layout import Layout
from gpa_lsp.execution.emulator.engine.machine import Machine
from gpa_lsp.execution.emulator.engine.operands import Reader, UnsupportedInstruction, read_operand
from gpa_lsp.execution.emulator.model import FAILED_ASSERTION, FaultKind
from gpa_lsp.execution.emulator.semantics.model import LOCAL_WINDOW, WINDOW_BYTES, flatten

_LONGEST_TEXT = 1024
_CONVERSION = re.compile(r"%[-+ #0]*(\d+|\*)?(?:\.(\d+|\*))?(hh|h|ll|l|z|j|t)?([diouxXeEfFgGaAcsp%])")


def find_builtin(machine: Machine, name: str) -> Builtin | None:
    """Implementation of a function without a body; None for unknown ones."""
    if machine.device_runtime is not None and name.startswith(PREFIXES):
        return machine.device_runtime.find_function(machine, name)
    found: dict[str, Builtin] = {
        "vprintf": _Printer(machine).call,
        "__assertfail": lambda fragment, values, static: _fail(machine, fragment, values, static),
        "malloc": lambda fragment, values, _: _allocate(machine, fragment, values),
        "free": lambda fragment, values, _: _free(machine, fragment, values),
    }
    return found.get(name)


def _fail(machine: Machine, fragment: Fragment, values: list[Value], static: int) -> None:
    lane = int(fragment.active().argmax())
    numbers = [int(value[lane] if value.ndim else value) for value in values[:3]]
    words = [_read_text(machine, number) for number in numbers[:2]]
    line = numbers[2] & 0xFFFFFFFF if len(numbers) > 2 else 0
    message = (
        f"{FAILED_ASSERTION} {words[0]!r} failed, {words[1] if len(words) > 1 else ''}:{line}"
        if words
        else f"{FAILED_ASSERTION} failed"
    )
    machine.faults.add_lanes(
        FaultKind.TRAP, message, fragment.warps, np.flatnonzero(fragment.active()), instruction=static, is_fatal=True
    )


def _allocate(machine: Machine, fragment: Fragment, values: list[Value]) -> Value:
    sizes = np.broadcast_to(values[0], (fragment.warps.lanes,))
    out = np.zeros(fragment.warps.lanes, np.uint64)
    for lane in np.flatnonzero(fragment.active()).tolist():
        out[lane] = machine.heap.allocate(int(sizes[lane]))
    machine.follow_heap()
    return out


def _free(machine: Machine, fragment: Fragment, values: list[Value]) -> Value:
    addresses = np.broadcast_to(values[0], (fragment.warps.lanes,))
    for address in addresses[fragment.active()].tolist():
        machine.heap.free(address)
    machine.follow_heap()
    return np.uint64(0)


def _read_text(machine: Machine, address: int) -> str:
    data = machine.arena.read_bytes(address, _LONGEST_TEXT)
    return data.split(b"\0")[0].decode("utf-8", "replace")


class _Printer:
    """Formats the text that lanes print, in the order of the lanes."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def call(self, fragment: Fragment, values: list[Value], static: int) -> Value:
        """``vprintf``: gives the number of arguments that each lane's format names.

        Source: CUDA C++ Programming Guide, "Formatted Output".
        """
        del static
        lanes = np.flatnonzero(fragment.active())
        formats, arguments, numbers = (
            np.broadcast_to(one, (fragment.warps.lanes,)) for one in (*values[:2], fragment.warps.column("lane"))
        )
        texts = {place: _read_text(self._machine, place) for place in np.unique(formats[lanes]).tolist()}
        for lane in lanes.tolist():
            buffer = self._read_buffer(fragment, int(arguments[lane]), int(numbers[lane]))
            if not self._machine.print_text(self._format(texts[int(formats[lane])], buffer)):
                break
        out = np.zeros(fragment.warps.lanes, np.uint64)
        for place, text in texts.items():
            out[formats == place] = _count_arguments(text)
        return out

    def _read_buffer(self, fragment: Fragment, address: int, lane: int) -> bytes:
        if LOCAL_WINDOW <= address < LOCAL_WINDOW + WINDOW_BYTES:
            return fragment.batch.memory.read_local(lane, address - LOCAL_WINDOW, _LONGEST_TEXT)
        return self._machine.arena.read_bytes(address, _LONGEST_TEXT)

    def _format(self, text: str, buffer: bytes) -> str:
        place = 0

        def take(size: int, dtype: str) -> Any:
            nonlocal place
            place = -(-place // size) * size
            raw = buffer[place : place + size].ljust(size, b"\0")
            place += size
            return np.frombuffer(raw, dtype)[0]

        def convert(found: "re.Match[str]") -> str:
            width, digits, length, letter = found.groups()
            if letter == "%":
                return "%"
            flags = found.group(0)[1:].rstrip(letter).removesuffix(length or "")
            if width == "*":
                flags = flags.replace("*", str(int(take(4, "<i4"))), 1)
            if digits == "*":
                flags = flags.replace("*", str(int(take(4, "<i4"))), 1)
            return self._convert_one(flags, length or "", letter, take)

        return _CONVERSION.sub(convert, text)

    def _convert_one(self, flags: str, length: str, letter: str, take: Any) -> str:
        wide = length in ("l", "ll", "z", "j", "t")
        value: Any
        match letter:
            case "d" | "i":
                value, letter = int(take(8, "<i8") if wide else take(4, "<i4")), "d"
            case "o" | "u" | "x" | "X":
                value = int(take(8, "<u8") if wide else take(4, "<u4"))
                letter = "d" if letter == "u" else letter
            case "c":
                value = chr(int(take(4, "<u4")) & 0xFF)
            case "s":
                value = _read_text(self._machine, int(take(8, "<u8")))
            case "p":
                value, letter, flags = int(take(8, "<u8")), "x", "#"
            case _:
                value = float(take(8, "<f8"))
                if letter in "aA":
                    return float(value).hex()
        flags = _limit(flags)
        return str(f"%{flags}{letter}" % value)


def _count_arguments(text: str) -> int:
    """Arguments that a format names, widths and precisions given by ``*`` included."""
    found = [one for one in _CONVERSION.finditer(text) if one[4] != "%"]
    return len(found) + sum((one[1], one[2]).count("*") for one in found)


def _limit(flags: str) -> str:
    """Cut widths and precisions that would fill the memory."""
    return re.sub(r"\d+", lambda found: found.group(0)[:3], flags)


class Ending(Struct, frozen=True, kw_only=True):
    """A segment that is to get its end."""

    instruction: PtxInstruction  # it
    static: int  # its number
    machine: Machine  # what all functions share
    function: PtxFunction  # that it is of
    layout: Layout  # of its registers
    bound: BoundFunction  # that is being bound
    segment: Segment  # that the instruction ends
    following: Segment | None  # what is behind it; None at the end of the function
    others: Segment  # where lanes wait that call another function by the same pointer
    starts: list[Segment]  # of each block its first segment
    blocks: PtxBlocks  # of the function

    @property
    def next_segment(self) -> Segment:
        """The segment after it.

        Raises:
            UnsupportedInstruction: nothing is.
        """
        if self.following is None:
            raise UnsupportedInstruction("the function ends without ret")
        return self.following

    def read(self, operand: Operand, kind: ScalarType) -> Reader:
        """Reader of an operand.

        Raises:
            UnsupportedInstruction: it cannot be read.
        """
        return read_operand(operand, kind, self.machine.geometry)

    def guard(self, finish: End) -> End:
        """The end that lanes whose guard holds come to; the others go on."""
        guard, counts = self.instruction.guard, self.machine.guarded
        if guard is None:
            return finish
        return end_guarded(guard, self.next_segment, finish, counts=counts, static=self.static)


def bind_end(ending: Ending) -> None:
    """Bind the end of a segment.

    Raises:
        UnsupportedInstruction: the form is not emulated.
    """
    segment = ending.segment
    match ending.instruction.opcode:
        case "bra" | "brx":
            _bind_branch(ending)
        case "exit":
            segment.closing = _close(ending, ClosingKind.EXIT)
        case "ret":
            segment.closing = _close(ending, ClosingKind.EXIT if ending.function.is_entry else ClosingKind.RETURN)
        case "trap":
            fault = end_with_fault(FaultKind.TRAP, "trap: the kernel aborted", ending.static)
            segment.end = fault if ending.following is None else ending.guard(fault)
        case "call":
            _bind_call(ending)
        case _:
            segment.end = ending.guard(_bind_barrier(ending))


def _close(ending: Ending, kind: ClosingKind, taken: Segment | None = None) -> Closing:
    """End of a segment where all lanes, or those whose guard holds, do the same."""
    guard = ending.instruction.guard
    leaves = kind in (ClosingKind.EXIT, ClosingKind.RETURN)
    if guard is None or (leaves and ending.following is None):  # nothing is behind it for others either
        return Closing(kind=kind, taken=taken, static=ending.static)
    return Closing(
        kind=kind,
        taken=taken,
        fallen=ending.next_segment,
        guard=guard.slot,
        is_negated=guard.is_negated,
        static=ending.static,
    )


def _bind_branch(ending: Ending) -> None:
    instruction, machine = ending.instruction, ending.machine
    if instruction.opcode == "brx":
        targets = [ending.starts[ending.blocks.block_of[index]] for index in instruction.targets]
        index = ending.read(instruction.sources[0], ScalarType.U32)
        ending.segment.end = end_with_table(
            targets, index, ending.following, guard=instruction.guard, static=ending.static, machine=machine
        )
        return
    if instruction.target is None:
        raise UnsupportedInstruction("bra without a target")
    target = ending.starts[ending.blocks.block_of[instruction.target]]
    kind = ClosingKind.JUMP if instruction.guard is None else ClosingKind.BRANCH
    ending.segment.closing = _close(ending, kind, target)


def _bind_barrier(ending: Ending) -> End:
    instruction, following = ending.instruction, ending.next_segment
    words = instruction.suffixes
    if "warp" in words:
        members = ending.read(instruction.sources[0], ScalarType.U32)
        gate = WarpBarrier(static=ending.static, following=following, members=members, guard=None, is_sync=True)
        following.live_in = (*following.live_in, *list_reads(instruction))
        if instruction.guard is None:
            ending.segment.closing = Closing(kind=ClosingKind.GATE, taken=following)
        return end_with_barrier(gate)
    if "cluster" in words:
        return end_with_barrier(ClusterBarrier(ending.static, following, waits="wait" in words))
    reduction = next((word for word in ("popc", "and", "or") if "red" in words and word in words), "")
    operands = list(instruction.sources)
    predicate = ending.read(operands.pop(), ScalarType.PRED) if reduction else None
    result = _find_result(ending, reduction) if reduction else None
    barrier = BlockBarrier(
        static=ending.static,
        following=following,
        number=ending.read(operands[0] if operands else Immediate(0), ScalarType.U32),
        threads=ending.read(operands[1], ScalarType.U32) if len(operands) > 1 else None,
        reduction=reduction,
        predicate=predicate,
        result=result,
        result_dtype=U32 if result is None else ending.layout.dtypes[result],
        waits="arrive" not in words,
        is_aligned=instruction.opcode == "bar" or "aligned" in words,
        is_bypassed=_make_bypass_test(ending.function, instruction, ending.blocks),
    )
    is_plain = not reduction and barrier.waits and barrier.threads is None and instruction.guard is None
    if is_plain and not (operands and not isinstance(operands[0], Immediate)):
        ending.segment.closing = Closing(kind=ClosingKind.BARRIER, taken=following, static=ending.static)
    return end_with_barrier(barrier)


def _find_result(ending: Ending, reduction: str) -> int | None:
    """The slot of the result of a reduction; None where it is dropped."""
    operand = flatten(ending.instruction.destinations)[0]
    if operand is None:
        return None
    if not isinstance(operand, Register) or operand.selector:
        raise UnsupportedInstruction("result of this kind")
    if reduction != "popc" and ending.layout.dtypes[operand.slot] is not BOOL:
        raise UnsupportedInstruction("result of this kind")
    return operand.slot


def _make_bypass_test(function: PtxFunction, barrier: PtxInstruction, blocks: PtxBlocks) -> Callable[[], bool]:
    """See :attr:`.BlockBarrier.is_bypassed`; found when it is first asked for."""
    instructions, block = function.instructions, blocks.block_of[barrier.index]

    @cache
    def is_bypassed() -> bool:
        after = _find_reached(blocks.successors, blocks.successors[block], set())
        around = _find_reached(blocks.successors, [0], {block}) if block else set()
        aside = _find_ways_past(blocks, block)
        return any(instructions[blocks.first[other]].opcode not in ("ret", "exit") for other in after & around & aside)

    return is_bypassed


def _find_ways_past(blocks: PtxBlocks, block: int) -> set[int]:
    """Blocks on paths around one, from the branches that decide whether it is executed to where they decide again.

    Threads that leave a loop with a barrier for the end of the kernel have exited like any others; those that go round it in the loop have not.
    """
    before: list[list[int]] = [[] for _ in blocks.successors]
    for number, others in enumerate(blocks.successors):
        for other in others:
            before[other].append(number)
    leaving = _find_reached(before, [number for number, others in enumerate(blocks.successors) if not others], {block})
    past: set[int] = set()
    for number, others in enumerate(blocks.successors):
        missing = [other for other in others if other in leaving]
        if missing and len(missing) < len(others):
            past |= _find_reached(blocks.successors, missing, {block, number})
    return past


def _find_reached(following: Sequence[Sequence[int]], starts: Iterable[int], left_out: set[int]) -> set[int]:
    """Blocks that can be reached from some without going through others."""
    reached = set(starts) - left_out
    waiting = list(reached)
    while waiting:
        for other in following[waiting.pop()]:
            if other not in reached and other not in left_out:
                reached.add(other)
                waiting.append(other)
    return reached


def _bind_call(ending: Ending) -> None:
    layout, machine, following = ending.layout, ending.machine, ending.next_segment
    call, segment = ending.instruction.call, ending.segment
    if call is None:
        raise UnsupportedInstruction("call without a callee")
    arguments = [layout.take_stored(_name(operand)) for operand in call.arguments]
    following.returned = [layout.expect_returned(_name(operand)) for operand in call.results]
    if call.callee is None:
        if call.pointer is None:
            raise UnsupportedInstruction("call without a callee")
        others = ending.others
        entries = {name: _add_edge(ending, name, arguments, others).entry for name in machine.list_called()}
        to_one = end_with_indirect_call(call.pointer.slot, entries, others, machine=machine, static=ending.static)
        others.end = to_one
        segment.end = ending.guard(to_one)
        return
    function = machine.module.functions.get(call.callee)
    if function is not None and function.instructions:
        entry = _add_edge(ending, call.callee, arguments, following).entry
        segment.closing = _close(ending, ClosingKind.CALL, entry)
        return
    builtin = find_builtin(machine, call.callee)
    if builtin is None:
        raise UnsupportedInstruction(f"{call.callee} has no body")
    segment.end = ending.guard(end_with_builtin(builtin, arguments, following, ending.static))


def _add_edge(ending: Ending, callee: str, arguments: list[Parts], joined: Segment) -> CallEdge:
    name, following = ending.segment.function, ending.next_segment
    edge = CallEdge(
        callee=callee,
        arguments=arguments,
        site=ending.segment,
        entry=Segment(name, ()),
        landing=Segment(name, ()),
        following=following,
        joined=joined,
        static=ending.static,
    )
    edge.landing.closing = Closing(kind=ClosingKind.JUMP, taken=following)
    ending.bound.edges.append(edge)
    return edge


def _name(operand: object) -> str:
    if not isinstance(operand, Symbol):
        raise UnsupportedInstruction("parameters in registers")
    return operand.name
