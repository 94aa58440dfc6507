"""Reaching definitions by trying out every run: the answer that quick queries must give.

A run is a walk over single instructions. What is known of a predicate inside a block (somebody executed, or did not, under it) holds until it is
written or the block ends. Calls of local functions push where to return to; a run that returns further than it began goes to every caller.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from gpa_lsp.code.binary.model import Flow
from gpa_lsp.report.model import KernelCode

_MOST_CALLS = 4
"""Deeper than any chain of calls in the tests that has no recursion."""


@dataclass(frozen=True)
class State:
    """About to execute ``row``, returning to the blocks behind ``stack``, with ``known`` guards (condition numbers that hold)."""

    row: int
    stack: tuple[int, ...]
    known: frozenset[int]


def find_all_uses(code: KernelCode, row: int, resource: int) -> tuple[set[int], bool]:
    """Rows that read what a row writes, and whether the value may leave a function whose callers are not known."""
    uses: set[int] = set()
    leaves = False
    known = _assume(frozenset(), _condition(code, row))
    if known is None or _is_never(code, row):
        return uses, leaves
    seen: set[State] = set()
    waiting = list(_go_on(code, State(row, (), known)))
    while waiting:
        state = waiting.pop()
        if isinstance(state, str):
            leaves = True
            continue
        if state in seen:
            continue
        seen.add(state)
        for executed, after in _execute(code, state):
            is_guard = resource == code.guard[state.row]  # which is read to find out
            if (executed or is_guard) and resource in code.reads.of(state.row):
                uses.add(state.row)
            if executed and resource in code.writes.of(state.row):
                continue
            waiting.extend(_go_on(code, State(state.row, state.stack, after)))
    return uses, leaves


def _condition(code: KernelCode, row: int) -> int:
    guard = int(code.guard[row])
    return -1 if guard < 0 else 2 * guard + bool(code.guard_negated[row])


def _is_never(code: KernelCode, row: int) -> bool:
    return bool(code.guard[row] < 0 and code.guard_negated[row])


def _assume(known: frozenset[int], condition: int) -> frozenset[int] | None:
    """Add a condition to the known ones; None where they contradict it."""
    if condition < 0:
        return known
    return None if condition ^ 1 in known else known | {condition}


def _execute(code: KernelCode, state: State) -> Iterator[tuple[bool, frozenset[int]]]:
    """(executed, what is known then) for both ways a guarded instruction can go."""
    condition = _condition(code, state.row)
    if _is_never(code, state.row):
        yield False, state.known
        return
    for executed, wanted in ((True, condition), (False, condition ^ 1)):
        if condition < 0 and not executed:
            continue
        known = _assume(state.known, wanted)
        if known is not None:
            yield executed, known


def _go_on(code: KernelCode, state: State) -> Iterator["State | str"]:
    block = int(code.block_of_row[state.row])
    written = set(code.writes.of(state.row))  # if only perhaps
    known = frozenset(one for one in state.known if one >> 1 not in written)
    if state.row < code.last_row[block]:
        yield State(state.row + 1, state.stack, known)
        return
    for place in _leave_block(code, state):
        yield place if isinstance(place, str) else State(place[0], place[1], frozenset())


def _leave_block(code: KernelCode, state: State) -> Iterator["tuple[int, tuple[int, ...]] | str"]:
    """Successors of a block; guards of jumps are not evaluated."""
    row, stack = state.row, state.stack
    block = int(code.block_of_row[row])
    flow = Flow(int(code.flow[row]))
    callee = find_callee(code, block)
    if callee is not None:
        yield int(code.first_row[callee]), (*stack[-_MOST_CALLS:], block)
        if code.guard[row] < 0:
            return
    if flow is Flow.RETURN and code.is_reachable[block]:
        if stack:
            yield from ((place, stack[:-1]) for place in _list_successors(code, stack[-1]))
        else:
            procedure = int(code.procedure_of_block[block])
            callers = [one for one in range(len(code.first_row)) if _calls(code, one, procedure)]
            yield from ((place, ()) for caller in callers for place in _list_successors(code, caller))
            if not callers or not code.procedure_is_local[procedure]:
                yield "outside"
    yield from ((place, stack) for place in _list_successors(code, block))


def _list_successors(code: KernelCode, block: int) -> list[int]:
    found = code.successors[code.successor_starts[block] : code.successor_starts[block + 1]].tolist()
    return [int(code.first_row[one]) for one in found if code.is_reachable[block] or not code.is_reachable[one]]


def find_callee(code: KernelCode, block: int) -> int | None:
    """The entry block of the local function that a block calls and that returns."""
    row = int(code.last_row[block])
    if code.flow[row] != Flow.CALL or code.target_row[row] < 0:
        return None
    target = int(code.block_of_row[code.target_row[row]])
    entries = code.procedure_entry.tolist()
    if target not in entries:
        return None
    procedure = entries.index(target)
    returns = (code.flow[code.last_row] == Flow.RETURN) & (code.procedure_of_block == procedure) & code.is_reachable
    return target if returns.any() else None


def _calls(code: KernelCode, block: int, procedure: int) -> bool:
    return find_callee(code, block) == int(code.procedure_entry[procedure])
