"""What ends segments: branches, returns, traps."""

import numpy as np

from gpa_lsp.execution.emulator.engine.fragments import Dispatcher, End, Fragment, Segment
from gpa_lsp.execution.emulator.engine.lane_steps import guarded_mask
from gpa_lsp.execution.emulator.engine.machine import Machine
from gpa_lsp.execution.emulator.engine.tracing import Tracer
from gpa_lsp.execution.emulator.engine.values import Value
from gpa_lsp.execution.emulator.model import FaultKind


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
