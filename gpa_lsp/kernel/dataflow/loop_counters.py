"""How loops count: the step of the counter that decides the jump back, and how many turns a loop makes each time it is entered."""

import re

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.binary.model import Instructions, ResourceKind
from gpa_lsp.code.binary.sass import instruction_at
from gpa_lsp.code.control_flow.model import FlowGraph, Loop
from gpa_lsp.kernel.dataflow.value_flow import build_flow
from gpa_lsp.kernel.model import FunctionSamples, KernelRows
from gpa_lsp.kernel.scopes import find_scopes

_COUNTING = frozenset({"IADD3", "IADD", "IADD2", "IADD32I", "VIADD", "UIADD3", "UIADD", "UVIADD"})
_IMMEDIATE = re.compile(r"-?0x[0-9a-f]+")
_PREDICATES = (ResourceKind.PREDICATE, ResourceKind.UNIFORM_PREDICATE)

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
    """How many turns a loop makes."""

    mean: float  # turns each time a warp enters it, on average; at least 1
    is_exact: bool  # counted by the hardware; False where estimated from samples
    is_least: bool  # only a lower bound, because how often the loop is entered is known only up to one


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
    """By how much the counter of a loop advances each turn; None when it is not a constant, or no counter decides.

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
        for resource in flow.writes(row):
            writers.setdefault(resource, []).append(row)
    for block in (code.loop.back_edge_sources[-1], code.loop.header):
        branch = int(code.graph.last_instruction[block])
        for predicate in code.instructions.reads.of(branch):
            if predicate >> 8 in _PREDICATES:
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
        if resource >> 8 in _PREDICATES or len(places) != 1:
            continue
        change = instruction_at(instructions, places[0])
        if change.opcode not in _COUNTING or resource not in change.reads or change.guard is not None:
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
    """How many turns a loop makes each time it is entered; None where neither executions nor samples tell.

    Turns are executions of the loop's first instruction by executions of the blocks that lead into it; a warp whose threads leave at
    different times counts until the last one does.

    Args:
        kernel: its rows.
        scope: number of the loop in :func:`~gpa_lsp.kernel.scopes.find_scopes`.
        issue_counts: float64[n], how often each row issued, in samples; for loops whose executions nobody counted.
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
    """Turns by the issue samples of the blocks; each instruction of a block issues equally often, so a block's mean counts."""

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
