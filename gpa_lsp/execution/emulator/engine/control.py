"""What ends segments: branches, calls and returns of device functions, traps. Parameters are handed over in parts, as registers."""

from collections.abc import Callable

import numpy as np
from msgspec import Struct

from gpa_lsp.execution.emulator.engine.fragments import BoundFunction, Dispatcher, End, Fragment, Registers, Segment
from gpa_lsp.execution.emulator.engine.lane_steps import guarded_mask
from gpa_lsp.execution.emulator.engine.layout import Piece
from gpa_lsp.execution.emulator.engine.machine import Machine
from gpa_lsp.execution.emulator.engine.tracing import Tracer
from gpa_lsp.execution.emulator.engine.values import Value
from gpa_lsp.execution.emulator.model import DeviceError, FaultKind


def end_with_jump(target: Segment) -> End:
    """All lanes go to one segment."""

    def end(dispatcher: Dispatcher, fragment: Fragment) -> None:
        dispatcher.go(fragment, target)

    return end


def end_with_branch(
    taken: Segment, fallen: Segment, guard: int, *, static: int, tracer: Tracer | None, is_negated: bool
) -> End:
    """Lanes with a true guard jump, the others fall through.

    Args:
        tracer: records the branch; None when nobody wants it.
    """
    first, second = (fallen, taken) if is_negated else (taken, fallen)

    def end(dispatcher: Dispatcher, fragment: Fragment) -> None:
        chosen = fragment.registers[guard]
        if not chosen.ndim:
            if tracer is not None:
                tracer.record_uniform_branch(fragment, static, is_taken=bool(chosen) != is_negated)
            dispatcher.go(fragment, first if chosen else second)
            return
        mask = fragment.mask
        mine = chosen if mask is None else chosen & mask
        count = int(np.count_nonzero(mine))
        if tracer is not None:
            jumped = mine if not is_negated else (~chosen if mask is None else mask & ~chosen)
            tracer.record_branch(fragment, static, jumped)
        if count == fragment.count:
            dispatcher.go(fragment, first)
        elif count == 0:
            dispatcher.go(fragment, second)
        else:
            others = ~chosen if mask is None else mask & ~chosen
            left = fragment.count - count
            dispatcher.go(fragment.narrow(mine, count, first), first)
            dispatcher.go(fragment.narrow(others, left, second), second)

    return end


def end_with_table(
    targets: list[Segment], index: int, fallen: Segment | None, *, guard: int | None, static: int, machine: Machine
) -> End:
    """``brx.idx``: each lane jumps to the target its index names; an index beyond the table ends the lane.

    Args:
        fallen: where lanes with a false guard go; None without a guard.
    """

    def end(dispatcher: Dispatcher, fragment: Fragment) -> None:
        chosen = np.broadcast_to(fragment.registers[index].view(np.uint32), (fragment.warps.lanes,))
        mask = guarded_mask(fragment, guard)
        numbers = np.unique(chosen[mask])
        if machine.tracer is not None and len(numbers):
            machine.tracer.record_branch(fragment, static, mask & (chosen != _find_common(chosen, mask, numbers)))
        if guard is not None and fallen is not None:
            _send(dispatcher, fragment, fragment.active() & ~mask, fallen)
        by_target: dict[Segment, Value] = {}
        for number in numbers.tolist():
            where = mask & (chosen == number)
            if number >= len(targets):
                message = f"index {number} of a jump table with {len(targets)} targets"
                lanes = np.flatnonzero(where)
                machine.faults.add_lanes(
                    FaultKind.TRAP, message, fragment.warps, lanes, instruction=static, is_fatal=True
                )
                dispatcher.retire(fragment.narrow(where, len(lanes)))
                continue
            target = targets[number]
            by_target[target] = by_target[target] | where if target in by_target else where
        for target, where in by_target.items():
            _send(dispatcher, fragment, where, target)

    return end


def _find_common(chosen: Value, mask: Value, numbers: Value) -> Value:
    """The index that most lanes of each warp have, the lowest of several: uint32[n]."""
    counts = np.stack([(mask & (chosen == number)).reshape(-1, 32).sum(axis=1) for number in numbers])
    return np.repeat(numbers[counts.argmax(axis=0)], 32)


def _send(dispatcher: Dispatcher, fragment: Fragment, mask: Value, target: Segment) -> None:
    count = int(np.count_nonzero(mask))
    if count == fragment.count:
        dispatcher.go(fragment, target)
    elif count:
        dispatcher.go(fragment.narrow(mask, count, target), target)


def end_with_exit(guard: int | None, following: Segment | None) -> End:
    """``exit``, and ``ret`` of a kernel."""
    return end_guarded(guard, following, lambda dispatcher, fragment: dispatcher.retire(fragment))


def end_with_fault(guard: int | None, following: Segment | None, *, kind: FaultKind, message: str, static: int) -> End:
    """``trap``, and instructions that are not supported: the lanes end here."""

    def finish(dispatcher: Dispatcher, fragment: Fragment) -> None:
        lanes = np.flatnonzero(fragment.active())
        dispatcher.faults.add_lanes(kind, message, fragment.warps, lanes, instruction=static, is_fatal=True)
        dispatcher.retire(fragment)

    return end_guarded(guard, following, finish)


def end_guarded(guard: int | None, following: Segment | None, finish: End) -> End:
    """Lanes with a true guard finish, the others go on."""
    if guard is None or following is None:
        return finish

    def end(dispatcher: Dispatcher, fragment: Fragment) -> None:
        mine = guarded_mask(fragment, guard)
        count = int(np.count_nonzero(mine))
        if count == fragment.count:
            finish(dispatcher, fragment)
            return
        if count:
            others = fragment.active() & ~mine
            left = fragment.narrow(others, fragment.count - count, following)
            finish(dispatcher, fragment.narrow(mine, count))
            dispatcher.go(left, following)
            return
        dispatcher.go(fragment, following)

    return end


Parts = dict[Piece, int]
# Takes the lanes, the arguments (uint64) and the static number of the call; gives uint64, or None when the lanes end
Builtin = Callable[[Fragment, list[Value], int], Value]


def assemble(registers: Registers, parts: Parts, offset_bytes: int, size_bytes: int) -> Value:
    """A part of a parameter from the parts that were written, whatever their sizes; what was not written is zero."""
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
