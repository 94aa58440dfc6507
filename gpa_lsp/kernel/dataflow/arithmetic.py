"""The compiler's expansions of slow arithmetic in a kernel: divisions, roots, mathematical functions, widened single precision.

Hardware has no division and few functions; the compiler writes tens of instructions for each and calls a routine of its own for operands they
cannot handle. Only this module knows which instructions those are.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.model import Flow, ResourceKind
from gpa_lsp.code.binary.opcodes import MemorySpace, Pipe
from gpa_lsp.code.binary.uses import parse_operand
from gpa_lsp.foundation.records import ColumnRecord, remembered
from gpa_lsp.gpu.arch.hazards import find_longest_entry
from gpa_lsp.kernel.calls import find_callee
from gpa_lsp.kernel.dataflow.expansions import (
    ArithmeticSequence,
    Chain,
    Constancy,
    Divisor,
    Family,
    Routine,
    Signature,
    accept,
    find_conversion,
    find_divisor,
    find_integer_divisions,
    find_widened_arithmetic,
    is_constant_set_up,
    lift_rows,
    load_patterns,
    recognise_routine,
)
from gpa_lsp.kernel.dataflow.value_flow import FunctionFlow, build_flow
from gpa_lsp.kernel.model import FunctionSamples, KernelRows

# Operations that the compiler inlines with a call of one of its routines for operands out of the fast path's range.
#
# The shape, on every architecture: an approximation (MUFU), some Newton steps, a test, and a branch round a small block that calls the routine;
# both ways meet at one instruction. Reciprocals and square roots of single precision have the fast path on the other side of the branch.
# Found from the call backwards.

_LONGEST_CALL_BLOCK = 24  # Instructions of the block around a call; longer ones hold other code too

_LONGEST_FAST_PATH = 80
_LONGEST_SET_UP = 160  # Instructions before the branch among which constants are looked for

# Instructions at the meeting point that may stand before its BSYNC: code of sm_120 puts a NOP where a call returns to
_MOST_FILLERS = 4

_TEST_STEPS = 2  # Integer instructions one behind the other that may prepare a test

_CALLS = (Flow.CALL, Flow.INDIRECT_CALL)
_NEWTON_STEPS = 2  # A chain without an approximation of its own (a constant's reciprocal) needs so many steps to count


def find_guarded_operation(
    flow: FunctionFlow, site: int, routine: Routine, callee: range, taken: set[int]
) -> ArithmeticSequence:
    """The code around one call of a compiler's routine."""
    block = flow.block_of[site]
    guard = _find_guard(flow, block)
    if guard is None:
        return ArithmeticSequence(
            operation=routine.operation,
            anchor=flow.first_row + site,
            inlined=(),
            call_block=lift_rows(flow, _find_arguments(flow, site)),
            site=flow.first_row + site,
            callee=callee,
        )
    call_block, join, fast_path = _find_paths(flow, block, guard)
    inlined = {guard, *fast_path, *_find_synchronisation(flow, guard, join)}
    test = _find_test(flow, guard)
    inlined.update(test)
    before = [row for row in flow.rows_before(guard) if row not in taken]
    seed = _find_seed(flow, guard, test, routine, sorted(fast_path))
    seed = _find_seed(flow, guard, test, routine, before) if seed is None else seed
    chain = _find_chain(flow, guard, seed) if seed is not None and seed not in fast_path else set()
    if seed is None and routine.seeds and not fast_path:
        chain = _find_steps_without_seed(flow, guard, test, call_block)
    inlined |= chain
    prepares = {row for row in _find_ancestors(flow, test, before) if flow.reads_of[row]}
    inlined |= flow.find_feeders(
        inlined | call_block,
        before[-_LONGEST_SET_UP:],
        lambda row: row in prepares or _is_own_constant(flow, row, site),
    )
    return ArithmeticSequence(
        operation=routine.operation,
        anchor=flow.first_row + site,
        inlined=lift_rows(flow, inlined - taken),
        call_block=lift_rows(flow, call_block - taken),
        site=flow.first_row + site,
        callee=callee,
        divisor=_find_divisor(flow, routine, seed, test, guard),
    )


def _is_own_constant(flow: FunctionFlow, row: int, site: int) -> bool:
    """Whether a row sets up a constant of the operation; one from another line is an operand that was computed there."""
    elsewhere = flow.has_place(row) and flow.has_place(site) and not flow.is_same_place(row, site)
    return not elsewhere and is_constant_set_up(flow, row)


def _find_guard(flow: FunctionFlow, block: int) -> int | None:
    """The branch round the block that calls; None when the block is no small one of its own."""
    before = flow.graph.predecessors(block).tolist()
    if len(before) != 1 or len(flow.rows_of_block(block)) > _LONGEST_CALL_BLOCK:
        return None
    branch = int(flow.graph.last_instruction[before[0]])
    is_branch = int(flow.graph.terminator[before[0]]) == Flow.BRANCH
    return branch if is_branch and len(flow.graph.successors(before[0])) == 2 else None


def _find_arguments(flow: FunctionFlow, site: int) -> frozenset[int]:
    """The call and the copies right before it."""
    found = {site}
    row = site - 1
    while row >= flow.rows_of_block(flow.block_of[site]).start and accept(flow, Chain.MOVES)(row):
        found.add(row)
        row -= 1
    return frozenset(found)


def _find_paths(flow: FunctionFlow, block: int, guard: int) -> tuple[set[int], int | None, set[int]]:
    """Rows of the call's blocks; the block where both ways meet; rows of the way that does not call, when it is a block of its own."""
    graph = flow.graph
    others = [other for other in graph.successors(flow.block_of[guard]).tolist() if other != block]
    call_rows = set(flow.rows_of_block(block))
    after = graph.successors(block).tolist()
    other = others[0] if others else None
    if len(after) != 1 or other is None:
        return call_rows, other, set()
    back = after[0]
    if back != other and graph.predecessors(back).tolist() == [block]:
        if len(flow.rows_of_block(back)) <= _LONGEST_CALL_BLOCK:
            call_rows.update(flow.rows_of_block(back))
        following = graph.successors(back).tolist()
        back = following[0] if len(following) == 1 else back
    if back == other:
        return call_rows, other, set()
    is_path = graph.successors(other).tolist() == [back] and graph.predecessors(other).tolist() == [
        flow.block_of[guard]
    ]
    rows = flow.rows_of_block(other)
    return call_rows, back, set(rows) if is_path and len(rows) <= _LONGEST_FAST_PATH else set()


def _find_synchronisation(flow: FunctionFlow, guard: int, join: int | None) -> set[int]:
    """BSYNC at the meeting point, its BSSY, and the BMOV that empties the barrier before it."""
    rows = range(0) if join is None else flow.rows_of_block(join)
    wait = next((row for row in rows[:_MOST_FILLERS] if flow.opcode(row).name != "NOP"), None)
    if wait is None or flow.opcode(wait).flow is not Flow.BARRIER_WAIT:
        return set()
    fillers = set(range(rows.start, wait))
    window = flow.rows_before(guard)
    barriers = [resource for resource in flow.reads_of[wait] if resource >> 8 == ResourceKind.CONVERGENCE_BARRIER]
    start = flow.find_def(guard, barriers[0], window) if barriers else None
    if start is None or flow.opcode(start).flow is not Flow.BARRIER_SET:
        return {wait, *fillers}
    before = flow.find_def(start, barriers[0], list(flow.rows_of_block(flow.block_of[start])))
    clears = before is not None and flow.opcode(before).flow is Flow.NONE
    return {wait, start, *fillers} | ({before} if before is not None and clears else set())


def _find_test(flow: FunctionFlow, guard: int) -> set[int]:
    """The comparisons that decide the branch, and the integer instructions that only prepare them."""
    window = flow.rows_before(guard)
    found = {row for resource in flow.reads_of[guard] if (row := flow.find_def(guard, resource, window)) is not None}
    is_test = accept(flow, Chain.TEST)
    found = {row for row in found if is_test(row)}
    if not found:
        return set()
    near = window[-_LONGEST_CALL_BLOCK:]
    return found | flow.find_feeders({guard, *found}, near, lambda row: is_test(row) and bool(flow.reads_of[row]))


def _find_ancestors(flow: FunctionFlow, test: set[int], window: Sequence[int]) -> set[int]:
    """The test, and the integer instructions its operands come from, even if others read these too."""
    found, newest = set(test), set(test)
    for _ in range(_TEST_STEPS):
        definitions = {flow.find_def(row, resource, window) for row in newest for resource in flow.reads_of[row]}
        newest = {row for row in definitions if row is not None and row not in found and accept(flow, Chain.TEST)(row)}
        found |= newest
    return found


@lru_cache(maxsize=4096)
def _is_seed(mnemonic: str, seeds: tuple[str, ...]) -> bool:
    return find_longest_entry(dict.fromkeys(seeds, True), mnemonic) is not None


def _find_seed(flow: FunctionFlow, guard: int, test: set[int], routine: Routine, window: Sequence[int]) -> int | None:
    """The approximation: the nearest one whose value the test depends on or whose operand it looks at; behind the branch, the first one."""
    seeds = [row for row in window if _is_seed(flow.mnemonic(row), routine.seeds)]
    if not seeds or window[0] > guard:
        return seeds[0] if seeds else None
    before = flow.rows_before(guard)
    tested = {resource for row in _find_ancestors(flow, test, before) for resource in flow.reads_of[row]}
    for row in reversed(seeds):
        reached = flow.follow({row}, before[bisect_left(before, row) :], accept(flow, Chain.APPROXIMATION))
        if not test.isdisjoint(reached) or tested & set(flow.reads_of[row]):
            return row
    return None


def _find_chain(flow: FunctionFlow, guard: int, seed: int) -> set[int]:
    """The steps between the approximation and the branch."""
    before = flow.rows_before(guard)
    return set(flow.follow({seed}, before[bisect_left(before, seed) :], accept(flow, Chain.APPROXIMATION)))


def _find_steps_without_seed(flow: FunctionFlow, guard: int, test: set[int], call_block: set[int]) -> set[int]:
    """The chain of a division by a constant, whose reciprocal is known: from the step that computes the remainder.

    That step reads both operands of the division check; what leads to it does not lie behind these operands.
    """
    check = next((row for row in sorted(test) if flow.opcode(row).name == "FCHK"), None)
    if check is None:
        return set()
    numerator, divisor = (operand.strip("-|") for operand in flow.operands(check)[1:3])
    window = flow.rows_before(guard)
    is_step = accept(flow, Chain.APPROXIMATION)
    names = {row: {operand.strip("-|") for operand in flow.operands(row)[1:]} for row in window[-_LONGEST_CALL_BLOCK:]}
    remainders = [
        row for row, operands in names.items() if {numerator, divisor} <= operands and is_step(row) and row != check
    ]
    if not remainders:
        return set()
    ends = flow.follow({remainders[-1]}, [row for row in window if row >= remainders[-1]], is_step)
    outside = set(parse_operand(numerator).expand(1)) | set(parse_operand(divisor).expand(1))
    near = window[-_LONGEST_CALL_BLOCK:]
    members = {*ends, guard, *call_block}
    found = {
        *ends,
        *flow.find_feeders(members, near, lambda row: is_step(row) and not outside & set(flow.writes_of[row])),
    }
    return found if len(found) > _NEWTON_STEPS else set()


def _find_divisor(
    flow: FunctionFlow, routine: Routine, seed: int | None, test: Sequence[int] | set[int], guard: int
) -> Divisor | None:
    """The divisor: the operand of the check, of the approximation, or of the conversion for it."""
    row: int | None = None
    if routine.operation.family is Family.INTEGER_DIVISION and seed is not None:
        row = find_conversion(flow, seed)
    elif routine.operation.family is Family.DIVISION:
        row = next((row for row in sorted(test) if flow.opcode(row).name == "FCHK"), seed)
    return None if row is None else find_divisor(flow, flow.operands(row)[-1], row, guard)


def recognise_by_structure(flow: FunctionFlow, rows: Sequence[int]) -> Routine | None:
    """Recognise a routine without lines by its approximations; None for code that accesses memory or calls.

    Approximation: tells divisions, roots and 64-bit integer divisions apart, not the variants of each.
    """
    opcodes = [flow.opcode(row) for row in rows]
    if any(opcode.memory not in (None, MemorySpace.WARP) or opcode.flow in _CALLS for opcode in opcodes):
        return None
    mnemonics = {flow.mnemonic(row) for row in rows}
    operations = load_patterns().operations
    for key, seeds in _STRUCTURES:
        if any(_is_seed(mnemonic, seeds) for mnemonic in mnemonics):
            return Routine(operation=operations[key], seeds=seeds)
    return None


# The first whose seed occurs counts; slow paths of FP32 divisions hold both a reciprocal and a root (of a NaN)
_STRUCTURES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("fp64_division", ("MUFU.RCP64H",)),
    ("fp64_square_root", ("MUFU.RSQ64H",)),
    ("integer_division_64", ("I2F.U64",)),
    ("fp32_division", ("MUFU.RCP",)),
    ("fp32_square_root", ("MUFU.RSQ",)),
)


_PIPES = (Pipe.ALU, Pipe.FMA, Pipe.FP16, Pipe.FP64, Pipe.XU, Pipe.UNIFORM)
_CONTROL = (Flow.BRANCH, Flow.BARRIER_SET, Flow.BARRIER_WAIT)
_SET_UP_ROWS = 24  # Instructions before the constant that may belong to the function


def find_inlined_functions(flow: FunctionFlow, taken: set[int]) -> list[ArithmeticSequence]:
    """The functions inlined in a section, in address order.

    With lines known, a function is what its line does from the constant on, arithmetic and branches, up to the last instruction that depends
    on the constant's; so the use of its result on the same line counts too. Without lines, it is what depends on the constant's instruction.
    """
    by_opcode: dict[str, list[Signature]] = {}
    for signature in load_patterns().signatures:
        for opcode in signature.opcodes:
            by_opcode.setdefault(opcode, []).append(signature)
    found = []
    for row in range(len(flow)):
        signatures = by_opcode.get(flow.opcode(row).name)
        if signatures is None or row in taken:
            continue
        operands = flow.operands(row)
        named = [one for one in signatures if one.constant in operands]
        if not named:
            continue
        rows = _find_rows(flow, row, named[0]) - taken
        taken |= rows
        found.append(
            ArithmeticSequence(operation=named[0].operation, anchor=flow.first_row + row, inlined=lift_rows(flow, rows))
        )
    return found


def _find_rows(flow: FunctionFlow, seed: int, signature: Signature) -> set[int]:
    window = [seed, *flow.rows_after(seed, signature.longest_rows)]
    dependent = flow.follow({seed}, window, lambda row: _is_arithmetic(flow, row) and _may_belong(flow, row, seed))
    rows = set(dependent)
    if flow.has_place(seed):
        between = range(seed, max(dependent) + 1)
        rows |= {
            row
            for row in between
            if flow.is_same_place(row, seed) and (_is_arithmetic(flow, row) or flow.opcode(row).flow in _CONTROL)
        }
    arguments = set(parse_operand(flow.operands(seed)[1]).expand(2))
    before = [row for row in flow.rows_before(seed, _SET_UP_ROWS) if _may_belong(flow, row, seed)]
    return rows | flow.find_feeders(
        rows, before, lambda row: _is_arithmetic(flow, row) and not arguments & set(flow.writes_of[row])
    )


def _may_belong(flow: FunctionFlow, row: int, seed: int) -> bool:
    return not flow.has_place(seed) or flow.is_same_place(row, seed)


def _is_arithmetic(flow: FunctionFlow, row: int) -> bool:
    opcode = flow.opcode(row)
    return opcode.memory is None and opcode.pipe in _PIPES


__all__ = ["ArithmeticSequence", "ArithmeticSequences", "Constancy", "Divisor", "find_arithmetic_sequences"]

_LONGEST_ROUTINE = 300  # Instructions of a routine that may be recognised by its structure


class ArithmeticSequences(ColumnRecord, frozen=True, kw_only=True):
    """All expansions of a kernel. No row of the callers is in two sequences or chains."""

    sequences: tuple[ArithmeticSequence, ...]  # by anchor
    widened: tuple[tuple[int, ...], ...]  # rows of each chain of single precision values worked on in double precision
    routine_rows: npt.NDArray[np.bool_]  # bool[n], rows of the compiler's own routines that sequences call

    def select(self, *families: Family) -> tuple[ArithmeticSequence, ...]:
        """The sequences of some families."""
        return tuple(one for one in self.sequences if one.operation.family in families)

    def mark(self) -> npt.NDArray[np.bool_]:
        """Rows of expansions, of chains in double precision and of the compiler's routines: bool[n]."""
        marked = self.routine_rows.copy()
        for sequence in self.sequences:
            marked[[*sequence.inlined, *sequence.call_block]] = True
        for chain in self.widened:
            marked[list(chain)] = True
        return marked


@remembered
def find_arithmetic_sequences(kernel: KernelRows) -> ArithmeticSequences:
    """The expansions in all functions of a kernel; the compiler's own routines are not looked into."""
    routine_rows = np.zeros(len(kernel), dtype=np.bool_)
    flows = [flow for index in range(len(kernel.functions)) if (flow := build_flow(kernel, index)) is not None]
    calls = [(flow, *call) for flow in flows for call in _find_calls(flow, kernel)]
    for _, _, _, callee in calls:
        routine_rows[callee.start : callee.stop] = True
    sequences: list[ArithmeticSequence] = []
    widened: list[tuple[int, ...]] = []
    for flow in flows:
        taken = set(np.flatnonzero(routine_rows[flow.first_row : flow.first_row + len(flow)]).tolist())
        for caller, site, routine, callee in calls:
            if caller is flow and site not in taken:
                found = find_guarded_operation(flow, site, routine, callee, taken)
                taken.update(row - flow.first_row for row in (*found.inlined, *found.call_block))
                sequences.append(found)
        rows = range(len(flow))
        sequences += find_integer_divisions(flow, rows, taken)
        chains = find_widened_arithmetic(flow, rows, taken)
        sequences += find_inlined_functions(flow, taken)
        widened.extend(tuple(sorted(flow.first_row + row for row in chain)) for chain in chains)
    return ArithmeticSequences(
        sequences=tuple(sorted(sequences, key=lambda one: one.anchor)),
        widened=tuple(widened),
        routine_rows=routine_rows,
    )


def _find_calls(flow: FunctionFlow, kernel: KernelRows) -> Iterator[tuple[int, Routine, range]]:
    """Calls of the compiler's own routines: the calling row, the routine, its rows in the kernel."""
    known: dict[range, Routine | None] = {}
    for call in flow.graph.calls:
        if call.is_indirect or call.is_tail:
            continue
        symbol, callee = find_callee(kernel, flow.index, call)
        routine = recognise_routine(symbol) if symbol else None
        if routine is None and callee:
            if callee not in known:
                known[callee] = _recognise_rows(kernel, callee)
            routine = known[callee]
        if routine is not None:
            yield call.instruction, routine, callee


def _recognise_rows(kernel: KernelRows, rows: range) -> Routine | None:
    """A routine by its structure: short, without lines although the kernel has some, and what it computes recognised."""
    entry = kernel.functions[0]
    if len(rows) > _LONGEST_ROUTINE or entry.lines is None or _has_lines(kernel, rows):
        return None
    flow = build_flow(kernel, int(kernel.function_index[rows.start]))
    return None if flow is None else recognise_by_structure(flow, [row - flow.first_row for row in rows])


def _has_lines(kernel: KernelRows, rows: range) -> bool:
    function: FunctionSamples = kernel.function_of(rows.start)
    first = kernel.index_of(rows.start)
    return bool((function.chain_index[first : first + len(rows)] >= 0).any())
