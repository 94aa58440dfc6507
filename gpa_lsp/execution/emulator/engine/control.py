"""Ends of segments that no :class:`~.fragments.Closing` describes: branch tables, traps, calls through pointers and of system functions."""

from collections.abc import Callable

import numpy as np

from gpa_lsp.code.ptx.model import Register
from gpa_lsp.execution.emulator.engine.fragments import (
    Dispatcher,
    End,
    Fragment,
    Parts,
    Registers,
    Segment,
    guarded_mask,
)
from gpa_lsp.execution.emulator.engine.geometry import Value
from gpa_lsp.execution.emulator.engine.machine import Machine
from gpa_lsp.execution.emulator.engine.operands import Reader
from gpa_lsp.execution.emulator.model import DeviceError, FaultKind


def end_with_table(
    targets: list[Segment],
    index: Reader,
    fallen: Segment | None,
    *,
    guard: Register | None,
    static: int,
    machine: Machine,
) -> End:
    """``brx.idx``: each lane jumps to the target its index names; an index beyond the table ends the lane.

    Args:
        fallen: where lanes with a false guard go; None without a guard.
    """

    def end(dispatcher: Dispatcher, fragment: Fragment) -> None:
        chosen = np.broadcast_to(index(fragment), (fragment.warps.lanes,))
        mask = guarded_mask(fragment, guard)
        if guard is not None:
            machine.guarded[static] += int(np.count_nonzero(mask))
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
        dispatcher.go(fragment.narrow(mask, count), target)


def end_with_fault(kind: FaultKind, message: str, static: int) -> End:
    """``trap``, and instructions that are not supported: the lanes end here."""
    return lambda one, fragment: end_lanes(one, fragment, kind, message, static)


def end_guarded(guard: Register | None, following: Segment, finish: End, *, counts: list[int], static: int) -> End:
    """Lanes whose guard holds finish, the others go on.

    Args:
        counts: of lanes that finished, by the static number of the instruction.
    """
    if guard is None:
        return finish

    def end(dispatcher: Dispatcher, fragment: Fragment) -> None:
        mine = guarded_mask(fragment, guard)
        count = int(np.count_nonzero(mine))
        counts[static] += count
        if count == fragment.count:
            finish(dispatcher, fragment)
            return
        if count:
            others = fragment.active() & ~mine
            left = fragment.narrow(others, fragment.count - count)
            finish(dispatcher, fragment.narrow(mine, count))
            dispatcher.go(left, following)
            return
        dispatcher.go(fragment, following)

    return end


# Takes the lanes, the arguments (uint64) and the static number of the call; gives uint64, or None when the lanes end
Builtin = Callable[[Fragment, list[Value], int], Value]


def assemble(registers: Registers, parts: Parts, offset_bytes: int, size_bytes: int) -> Value:
    """A part of a parameter, put together from the parts that were written; bytes never written are zero."""
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


def end_with_indirect_call(
    pointer: int, entries: dict[str, Segment], others: Segment, *, machine: Machine, static: int
) -> End:
    """A call through a pointer: lanes part by the function they call, one after the other, for their registers lie at the same place of the
    frames. A pointer to nothing ends the lane.

    Args:
        entries: where the way into each function begins, by its name.
        others: where those wait that call another one than the first.
    """

    def end(dispatcher: Dispatcher, fragment: Fragment) -> None:
        addresses = np.broadcast_to(fragment.registers[pointer].view(np.uint64), (fragment.warps.lanes,))
        active = fragment.active()
        for address in np.unique(addresses[active]).tolist():
            where = active & (addresses == address)
            count = int(np.count_nonzero(where))
            part = fragment if count == fragment.count else fragment.narrow(where, count)
            entry = entries.get(machine.find_function(address) or "")
            if entry is not None:
                dispatcher.go(part, entry)
                rest = active & (addresses > address)
                if rest.any():
                    dispatcher.go(fragment.narrow(rest, int(np.count_nonzero(rest))), others)
                return
            dispatcher.faults.end_on_gpu(DeviceError.INVALID_PC)
            message = f"call of 0x{address:x}, which is not a function"
            end_lanes(dispatcher, part, FaultKind.OUT_OF_BOUNDS, message, static)

    return end


def end_lanes(dispatcher: Dispatcher, fragment: Fragment, kind: FaultKind, message: str, static: int) -> None:
    """End lanes with a fault."""
    lanes = np.flatnonzero(fragment.active())
    dispatcher.faults.add_lanes(kind, message, fragment.warps, lanes, instruction=static, is_fatal=True)
    dispatcher.retire(fragment)


def end_with_builtin(builtin: Builtin, arguments: list[Parts], return_to: Segment, static: int) -> End:
    """A call of a system function: ``vprintf``, ``malloc`` … An argument of more than 8 bytes becomes several values."""
    sizes = [(parts, max((offset + size for offset, size in parts), default=1)) for parts in arguments]

    def end(dispatcher: Dispatcher, fragment: Fragment) -> None:
        values = [assemble(fragment.registers, parts, start, 8) for parts, size in sizes for start in range(0, size, 8)]
        result = builtin(fragment, values, static)
        if result is None:
            dispatcher.retire(fragment)
            return
        for parts in return_to.returned:
            for (_, size), slot in parts.items():
                fragment.registers[slot] = result.astype(np.dtype(f"u{size}"))
        dispatcher.go(fragment, return_to)

    return end
