"""Loops as the compiler left them: copies of the body in one iteration, and the number of iterations.

Copies are found in three ways, because a compiler interleaves them: the work of every line occurs a multiple of their number; the counter advances
by their number; accesses through one address have evenly spaced offsets, or the opcodes themselves repeat.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import gcd

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.binary.model import PREDICATE_KINDS, Instructions
from gpa_lsp.code.binary.opcodes import MemorySpace, Opcode, Pipe, Synchronisation
from gpa_lsp.code.binary.sass import take_apart
from gpa_lsp.code.control_flow.model import FlowGraph, Loop
from gpa_lsp.foundation.records import remembered
from gpa_lsp.kernel.dataflow.accesses import find_address
from gpa_lsp.kernel.dataflow.value_flow import build_flow
from gpa_lsp.kernel.model import FunctionSamples, KernelRows
from gpa_lsp.kernel.scopes import find_scopes

_COUNTING = frozenset({"IADD3", "IADD", "IADD2", "IADD32I", "VIADD", "UIADD3", "UIADD", "UVIADD"})
_IMMEDIATE = re.compile(r"-?0x[0-9a-f]+")

_FEWEST_SAMPLES = 8  # Issue samples of the code before a loop below which only a bound of its turns is given


class LoopCode(Struct, frozen=True, kw_only=True):
    """A loop with the function it is in."""

    function: FunctionSamples  # the function
    instructions: Instructions  # of the function
    graph: FlowGraph  # of the function
    number: int  # of the loop in the graph
    first_row: int  # row of the function's first instruction

    @property
    def loop(self) -> Loop:
        """The loop itself."""
        return self.graph.loops[self.number]


class TurnCount(Struct, frozen=True, kw_only=True):
    """Iterations of a loop."""

    mean: float  # iterations each time a warp enters it, on average; at least 1
    is_exact: bool  # counted by the hardware; False where estimated from samples
    is_least: bool  # only a lower bound, because the entries into the loop are known only as an upper bound


def find_loop(kernel: KernelRows, scope: int) -> LoopCode | None:
    """The loop that a scope stands for; None for other scopes.

    Loops of one function have consecutive scope numbers, in the order of its graph.
    """
    scopes = find_scopes(kernel)
    if not scopes.is_loop[scope]:
        return None
    first_row = scopes.scopes[scope].row
    section = int(kernel.function_index[first_row])
    function = kernel.functions[section]
    if function.graph is None or function.instructions is None:
        return None
    number = 0
    while scopes.is_loop[scope - number - 1] and _section_of(kernel, scope - number - 1) == section:
        number += 1
    return LoopCode(
        function=function,
        instructions=function.instructions,
        graph=function.graph,
        number=number,
        first_row=int(kernel.first_rows[section]),
    )


def _section_of(kernel: KernelRows, scope: int) -> int:
    return int(kernel.function_index[find_scopes(kernel).scopes[scope].row])


def find_counter_step(kernel: KernelRows, scope: int) -> int | None:
    """Step of a loop's counter per iteration; None when it is not a constant, or no counter decides.

    The counter is a register that the comparison before the jump back reads, and that the loop changes in one place only, by adding a
    constant to it. Negative steps come as positive ones.
    """
    code = find_loop(kernel, scope)
    flow = None if code is None else build_flow(kernel, _section_of(kernel, scope))
    if code is None or flow is None:
        return None
    rows = np.flatnonzero(find_scopes(kernel).innermost == scope) - code.first_row
    writers: dict[int, list[int]] = {}
    for row in rows.tolist():
        for resource in flow.writes_of[row]:
            writers.setdefault(resource, []).append(row)
    for block in (code.loop.back_edge_sources[-1], code.loop.header):
        branch = int(code.graph.last_instruction[block])
        for predicate in code.instructions.reads.of(branch):
            if predicate >> 8 in PREDICATE_KINDS:
                step = _find_step(code.instructions, writers, predicate, branch)
                if step is not None:
                    return step
    return None


def _find_step(instructions: Instructions, writers: dict[int, list[int]], predicate: int, branch: int) -> int | None:
    comparisons = [row for row in writers.get(predicate, ()) if row < branch]
    if not comparisons:
        return None
    for resource in instructions.reads.of(comparisons[-1]):
        places = writers.get(resource, [])
        if resource >> 8 in PREDICATE_KINDS or len(places) != 1:
            continue
        change = take_apart(instructions.texts[places[0]])
        if change.opcode not in _COUNTING or resource not in instructions.reads.of(places[0]) or change.guard:
            continue
        constants = [int(operand, 16) for operand in change.operands if _IMMEDIATE.fullmatch(operand)]
        if len(constants) == 1 and constants[0]:
            return _as_signed(constants[0])
    return None


def _as_signed(constant: int) -> int:
    """The size of a step whose sign may be in its highest bit.

    >>> _as_signed(0xfffffffc), _as_signed(-4), _as_signed(4)
    (4, 4, 4)
    """
    return abs(constant - (1 << 32) if constant >= 1 << 31 else constant)


def count_turns(kernel: KernelRows, scope: int, issue_counts: npt.NDArray[np.float64]) -> TurnCount | None:
    """Iterations of a loop each time it is entered; None where neither executions nor samples are known.

    They are executions of the loop's first instruction over executions of the blocks that lead into it; a warp whose threads leave at
    different times counts until the last one does.

    Args:
        kernel: its rows.
        scope: number of the loop in :func:`~gpa_lsp.kernel.scopes.find_scopes`.
        issue_counts: float64[n], issues of each row, in samples; for loops whose executions were not counted.
    """
    code = find_loop(kernel, scope)
    if code is None:
        return None
    inside = set(code.graph.blocks_of_loop(code.number).tolist())
    header = code.loop.header
    entries = [block for block in code.graph.predecessors(header).tolist() if block not in inside]
    if not entries:
        return None
    is_certain = all(len(code.graph.successors(block)) == 1 for block in entries)
    counted = [int(code.function.executions[code.graph.last_instruction[block]]) for block in entries]
    turns = int(code.function.executions[code.graph.first_instruction[header]])
    if turns > 0 and min(counted) >= 0 and sum(counted) > 0:
        mean = max(1.0, turns / sum(counted))
        return TurnCount(mean=mean, is_exact=True, is_least=not is_certain)
    return _estimate_turns(issue_counts, code, entries, is_certain=is_certain)


def _estimate_turns(
    counts: npt.NDArray[np.float64], code: LoopCode, entries: list[int], *, is_certain: bool
) -> TurnCount | None:
    """Iterations by the issue samples of the blocks; each instruction of a block issues equally often, so a block's mean counts."""

    def sum_up(block: int) -> tuple[float, int]:
        first, last = int(code.graph.first_instruction[block]), int(code.graph.last_instruction[block]) + 1
        return float(counts[code.first_row + first : code.first_row + last].sum()), last - first

    samples, length = sum_up(code.loop.header)
    if samples < _FEWEST_SAMPLES:
        return None
    before = [sum_up(block) for block in entries]
    seen = sum(count for count, _ in before)
    is_least = not is_certain or seen < _FEWEST_SAMPLES
    # Too few samples: as many as there might have been, at the upper end of a Poisson interval.
    extra = (3.0 + 2.0 * seen**0.5) / max(sum(size for _, size in before), 1) if seen < _FEWEST_SAMPLES else 0.0
    entered = sum(count / size for count, size in before) + extra
    return TurnCount(mean=max(1.0, samples / length / entered), is_exact=False, is_least=is_least)


_ACCESSED = frozenset(
    {MemorySpace.GLOBAL, MemorySpace.GENERIC, MemorySpace.SHARED, MemorySpace.TEXTURE, MemorySpace.SURFACE}
)
_WORK_PIPES = frozenset({Pipe.FP16, Pipe.FP64, Pipe.TENSOR, Pipe.XU})
_ARITHMETIC_PIPES = _WORK_PIPES | {Pipe.ALU, Pipe.FMA}
_FLOAT_OPCODES = frozenset({"FADD", "FMUL", "FFMA", "FADD2", "FMUL2", "FFMA2", "FADD32I", "FMUL32I", "FFMA32I"})

# Share of a body's work that must occur in multiples of the number of copies; the rest may have been hoisted, or be of one copy only
LEAST_REPEATED = 0.85

# The same for all arithmetic, which includes the counter itself and addresses that copies share
LEAST_ARITHMETIC = 0.75

_BARRIERS = (Synchronisation.BLOCK, Synchronisation.FENCE)

_TELLING_COPIES = 8  # So many copies of every line's work are no coincidence

_MOST_COUNTS = 64  # Distinct counts whose divisors are tried

_GRAM = 4  # Opcodes in a row whose recurrence proposes a period

_PERIODS_TRIED = 4


class Unrolling(Struct, frozen=True, kw_only=True):
    """Copies of a loop's body."""

    copies: int  # iterations of the source's loop in one iteration of the code; 1 when it was not unrolled, or where unknown
    repeats: int  # occurrences of every line's work in one iteration: ``copies``, times the iterations of inner loops that were unrolled whole
    # step of the counter per iteration; None when it is not a constant, or there is no counter
    counter_step: int | None
    instructions: int  # of the loop's own code, inner loops left out


@remembered
def find_unrolling(kernel: KernelRows, scope: int) -> Unrolling:
    """Find the copies of a loop's body; inner loops are not looked into.

    Args:
        kernel: its rows.
        scope: number of a loop in :func:`~gpa_lsp.kernel.scopes.find_scopes`.
    """
    rows = np.flatnonzero(find_scopes(kernel).innermost == scope).tolist()
    step = find_counter_step(kernel, scope)
    repeats = find_common_factor(_count_by_line(kernel, rows, is_work))
    if step:
        # A loop over integers alone has no work that stands out; with a counter its arithmetic tells enough.
        repeats = max(repeats, find_common_factor(_count_by_line(kernel, rows, _is_arithmetic), LEAST_ARITHMETIC))
        copies = gcd(repeats, step)
    else:
        copies = _confirm(kernel, rows, repeats)
    return Unrolling(
        copies=copies,
        repeats=repeats,
        counter_step=step,
        instructions=len(rows),
    )


def find_wall(kernel: KernelRows, scope: int, rows: Iterable[int]) -> str | None:
    """Obstacle that keeps a compiler from issuing instructions of several copies of a loop together; a person can still do so by hand.

    As in nvcc 13's code for ``#pragma unroll``: loads pass no barrier, and a branch only where their memory is read-only (``const __restrict__``).

    Args:
        scope: number of the loop.
        rows: of the instructions.
    """
    if kernel.mark_by_opcode(lambda one: one.synchronises in _BARRIERS)[find_scopes(kernel).rows_of(scope)].any():
        return "a barrier"
    code = find_loop(kernel, scope)
    own = () if code is None else np.flatnonzero(code.graph.innermost_loop == code.number).tolist()
    has_sides = code is not None and any(
        len(set(own).intersection(code.graph.successors(block).tolist())) > 1 for block in own
    )
    return "a branch" if has_sides and not all("CONSTANT" in kernel.mnemonic(row) for row in rows) else None


def _confirm(kernel: KernelRows, rows: Sequence[int], copies: int) -> int:
    """The number of copies without a counter, as far as offsets or the sequence of opcodes confirm it."""
    if copies == 1:
        return 1
    spaced = gcd(copies, _count_even_offsets(kernel, rows))
    if spaced > 1:
        return spaced
    repeated = gcd(copies, find_repetition([kernel.mnemonic(row) for row in rows])[2])
    if repeated > 1:
        return repeated
    return copies if copies >= _TELLING_COPIES else 1


def _count_by_line(kernel: KernelRows, rows: Sequence[int], is_counted: Callable[[Opcode], bool]) -> list[int]:
    """Occurrences of each counted opcode on each line, of rows of one function; all on one line where lines are unknown."""
    if not rows:
        return []
    first = rows[0] - kernel.index_of(rows[0])
    lines = kernel.function_of(rows[0]).chain_index[np.array(rows) - first].tolist()
    opcodes = map(kernel.opcode, rows)
    counter = Counter((line, one.name) for line, one in zip(lines, opcodes, strict=True) if is_counted(one))
    return list(counter.values())


def _is_arithmetic(opcode: Opcode) -> bool:
    return opcode.access is None and opcode.pipe in _ARITHMETIC_PIPES


def is_work(opcode: Opcode) -> bool:
    """Whether an opcode does the work of a loop: accesses and floating point, not addresses, counters and branches.

    >>> from gpa_lsp.code.binary.opcodes import describe_mnemonic
    >>> is_work(describe_mnemonic("FFMA")), is_work(describe_mnemonic("IADD3")), is_work(describe_mnemonic("LDC"))
    (True, False, False)
    """
    if opcode.access is not None:
        return opcode.memory in _ACCESSED
    return opcode.pipe in _WORK_PIPES or opcode.name in _FLOAT_OPCODES


def find_common_factor(counts: Sequence[int], least: float = LEAST_REPEATED) -> int:
    """The largest number that divides the counts that make up at least a share ``least`` of their sum; 1 when there is no other.

    >>> find_common_factor([8, 4, 4]), find_common_factor([8, 4, 1]), find_common_factor([64, 64, 32, 3])
    (4, 4, 32)
    >>> find_common_factor([8, 8, 1, 1, 1]), find_common_factor([])
    (1, 1)
    """
    weight = Counter[int]()
    for count in counts:
        weight[count] += count
    total = sum(weight.values())
    if not total:
        return 1
    divisors = {
        divisor for count, _ in weight.most_common(_MOST_COUNTS) for divisor in list_divisors(count) if divisor > 1
    }
    for divisor in sorted(divisors, reverse=True):
        if sum(part for count, part in weight.items() if _is_multiple(count, divisor)) >= least * total:
            return divisor
    return 1


def _is_multiple(count: int, divisor: int) -> bool:
    """Whether a count is a multiple of a divisor, but for a copy in fifty that was simplified away."""
    return min(count % divisor, -count % divisor) <= count // 50 and count * 2 > divisor


def list_divisors(number: int) -> list[int]:
    """The divisors of a positive number, in no order.

    >>> sorted(list_divisors(12))
    [1, 2, 3, 4, 6, 12]
    """
    small = [one for one in range(1, int(number**0.5) + 1) if number % one == 0]
    return [*small, *(number // one for one in small if one * one != number)]


def _count_even_offsets(kernel: KernelRows, rows: Iterable[int]) -> int:
    """Number of evenly spaced offsets that accesses of one opcode use through one address; the most of any address, 1 when there is none."""
    offsets: dict[tuple[str, str], set[int]] = {}
    for row in rows:
        opcode = kernel.opcode(row)
        if opcode.access is None or opcode.memory not in _ACCESSED:
            continue
        address = find_address(kernel.texts[row])
        if address is not None:
            offsets.setdefault((kernel.mnemonic(row), address[0]), set()).add(address[1])
    return max((len(found) for found in offsets.values() if _is_even(sorted(found))), default=1)


def _is_even(offsets: Sequence[int]) -> bool:
    """Whether all neighbours are equally far apart."""
    return len(set(np.diff(offsets).tolist())) <= 1


def find_repetition(sequence: Sequence[str]) -> tuple[int, int, int]:
    """The longest stretch of a sequence that consists of equal parts of at least four elements: its start, the length of a part, the whole copies.

    The length is 0, and there is one copy, when nothing repeats.

    Time is linear: periods are proposed by the distances between equal runs of four, and only the most frequent distances are tried.

    >>> find_repetition("LLFF LLFF LLFF B".replace(" ", ""))
    (0, 4, 3)
    >>> find_repetition("ABCDEFGHIJ")
    (0, 0, 1)
    """
    numbers = {element: number for number, element in enumerate(dict.fromkeys(sequence))}
    elements = np.array([numbers[element] for element in sequence], dtype=np.int64)
    best = (0, 0, 1)
    for period in _propose_periods(elements):
        start, equal = _find_longest_run(elements[period:] == elements[:-period])
        copies = equal // period + 1
        if copies > 1 and copies * period > best[1] * best[2]:
            best = (start, period, copies)
    return best


def _propose_periods(elements: npt.NDArray[np.int64]) -> list[int]:
    last: dict[tuple[int, ...], int] = {}
    distances = Counter[int]()
    listed = elements.tolist()
    for place in range(len(listed) - _GRAM + 1):
        gram = tuple(listed[place : place + _GRAM])
        if gram in last and place - last[gram] >= _GRAM:
            distances[place - last[gram]] += 1
        if gram not in last or place - last[gram] >= _GRAM:
            last[gram] = place
    return [distance for distance, _ in distances.most_common(_PERIODS_TRIED)]


def _find_longest_run(flags: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """Start and length of the longest run of true flags."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    if not len(edges):
        return 0, 0
    starts, ends = edges[::2], edges[1::2]
    longest = int(np.argmax(ends - starts))
    return int(starts[longest]), int(ends[longest] - starts[longest])
