"""Calls and returns of device functions: parameters are handed over in parts, as registers."""

from collections.abc import Callable

import numpy as np
from msgspec import Struct

from gpa_lsp.execution.emulator.engine.fragments import BoundFunction, Dispatcher, End, Fragment, Registers, Segment
from gpa_lsp.execution.emulator.engine.layout import Piece
from gpa_lsp.execution.emulator.engine.machine import Machine
from gpa_lsp.execution.emulator.engine.values import Value
from gpa_lsp.execution.emulator.model import DeviceError, FaultKind

Parts = dict[Piece, int]
# Takes the lanes, the arguments (uint64) and the static number of the call; gives uint64, or None when the lanes end
Builtin = Callable[[Fragment, list[Value], int], Value]


def assemble(registers: Registers, parts: Parts, offset_bytes: int, size_bytes: int) -> Value:
    """A part of a parameter from the parts that were written, whatever their sizes; what nobody wrote is zero."""
    exact = parts.get((offset_bytes, size_bytes))
    dtype = np.dtype(f"u{size_bytes}")
    if exact is not None:
        value = registers[exact]
        return value if value.dtype is dtype else value.view(dtype)
    result: Value = np.uint64(0)
    for (start, size), slot in parts.items():
        if start + size <= offset_bytes or start >= offset_bytes + size_bytes:
            continue
        value = registers[slot]
        bits = value.view(np.dtype(f"u{size}")).astype(np.uint64)
        distance = 8 * (start - offset_bytes)
        moved = bits << np.uint64(distance) if distance >= 0 else bits >> np.uint64(-distance)
        result = result | moved
    return result.astype(dtype)


class CallSite(Struct, frozen=True, kw_only=True):
    """A call instruction."""

    machine: Machine  # knows the functions
    arguments: list[Parts]  # parts of each argument, in order
    return_to: Segment  # the segment behind the call
    static: int  # number of the instruction


def enter(dispatcher: Dispatcher, fragment: Fragment, callee: BoundFunction, site: CallSite) -> None:
    """Send lanes into a function. Calls nested too deeply end the lanes."""
    frame = fragment.frame.call(callee, fragment.segment, site.return_to, site.static)
    most = site.machine.meter.budget.call_depth
    if frame.depth > most:
        message = f"calls of {callee.name} nested more than {most} deep"
        _end_lanes(dispatcher, fragment, FaultKind.CALL_DEPTH, message, site.static)
        return
    memory, live = fragment.batch.memory, site.return_to.live_in
    memory.reserve_frames(frame.depth, len(live))
    if callee.local_bytes:
        memory.reserve_local(frame.local_base + callee.local_bytes)
    registers = callee.template.copy()
    for given, wanted in zip(site.arguments, callee.parameters, strict=False):
        for (offset, size), slot in wanted.items():
            registers[slot] = assemble(fragment.registers, given, offset, size)
    kept = frame.parent.function.template.copy() if frame.parent is not None else []
    for slot in live:
        kept[slot] = fragment.registers[slot]
    fragment.callers = (*fragment.callers, kept)
    fragment.registers = registers
    fragment.frame = frame
    dispatcher.go(fragment, callee.segments[0])


def _end_lanes(dispatcher: Dispatcher, fragment: Fragment, kind: FaultKind, message: str, static: int) -> None:
    lanes = np.flatnonzero(fragment.active())
    dispatcher.faults.add_lanes(kind, message, fragment.warps, lanes, instruction=static, is_fatal=True)
    dispatcher.retire(fragment)


def leave(dispatcher: Dispatcher, fragment: Fragment) -> None:
    """Take lanes back to their caller, with what the function returns."""
    frame = fragment.frame
    assert frame.parent is not None and frame.return_to is not None
    registers = fragment.callers[-1].copy()
    wanted = frame.return_to.returned
    for given, parts in zip(frame.function.returns, wanted, strict=False):
        for (offset, size), slot in parts.items():
            registers[slot] = assemble(fragment.registers, given, offset, size)
    fragment.callers = fragment.callers[:-1]
    fragment.registers = registers
    fragment.frame = frame.parent
    dispatcher.go(fragment, frame.return_to)


def end_with_call(name: str, site: CallSite) -> End:
    """A call whose callee is known; it is bound when it is first called."""

    def end(dispatcher: Dispatcher, fragment: Fragment) -> None:
        enter(dispatcher, fragment, site.machine.get_function(name), site)

    return end


def end_with_indirect_call(pointer: int, site: CallSite) -> End:
    """A call through a pointer: lanes part by the function they call. A pointer to nothing ends the lane."""

    def end(dispatcher: Dispatcher, fragment: Fragment) -> None:
        addresses = np.broadcast_to(fragment.registers[pointer].view(np.uint64), (fragment.warps.lanes,))
        active = fragment.active()
        for address in np.unique(addresses[active]).tolist():
            where = active & (addresses == address)
            count = int(np.count_nonzero(where))
            part = fragment if count == fragment.count else fragment.narrow(where, count)
            callee = site.machine.find_function(address)
            if callee is None:
                message = f"call of 0x{address:x}, which is not a function"
                dispatcher.faults.end_on_gpu(DeviceError.INVALID_PC)
                _end_lanes(dispatcher, part, FaultKind.OUT_OF_BOUNDS, message, site.static)
                continue
            enter(dispatcher, part, callee, site)

    return end


def end_with_builtin(builtin: Builtin, site: CallSite) -> End:
    """A call of a function the system brings: ``vprintf``, ``malloc`` … Of an argument of more than 8 bytes it gets several values."""
    sizes = [(parts, max((offset + size for offset, size in parts), default=1)) for parts in site.arguments]

    def end(dispatcher: Dispatcher, fragment: Fragment) -> None:
        values = [assemble(fragment.registers, parts, start, 8) for parts, size in sizes for start in range(0, size, 8)]
        result = builtin(fragment, values, site.static)
        if result is None:
            dispatcher.retire(fragment)
            return
        for parts in site.return_to.returned:
            for (_, size), slot in parts.items():
                fragment.registers[slot] = result.astype(np.dtype(f"u{size}"))
        dispatcher.go(fragment, site.return_to)

    return end
