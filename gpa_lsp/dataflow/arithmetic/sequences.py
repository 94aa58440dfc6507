"""The compiler's expansions of slow arithmetic in a kernel: divisions, roots, mathematical functions, widened single precision.

Hardware divides nothing and has few functions; the compiler writes tens of instructions for each and calls a routine of its own where they do
not do. This is the one place that knows which instructions those are.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.dataflow.arithmetic.expansions import Constancy, Divisor, Expansion
from gpa_lsp.dataflow.arithmetic.guarded_operations import find_guarded_operation, recognise_by_structure
from gpa_lsp.dataflow.arithmetic.inlined_functions import find_inlined_functions
from gpa_lsp.dataflow.arithmetic.integer_divisions import find_integer_divisions
from gpa_lsp.dataflow.arithmetic.patterns import Family, Operation, Routine, recognise_routine
from gpa_lsp.dataflow.arithmetic.widened_arithmetic import find_widened_arithmetic
from gpa_lsp.dataflow.value_flow import FunctionFlow, build_flow
from gpa_lsp.rows.calls import find_callee
from gpa_lsp.rows.model import FunctionSamples, KernelRows

__all__ = ["ArithmeticSequence", "ArithmeticSequences", "Constancy", "Divisor", "find_arithmetic_sequences"]

_LONGEST_ROUTINE = 300
"""Instructions of a routine that may be recognised by its structure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArithmeticSequence:
    """The code of one operation. Rows are the kernel's.

    Attributes:
        operation: what it computes.
        anchor: the instruction whose line is the operation's line.
        inlined: rows of the chain, its constants, and the test that decides about the slow path; ascending.
        call_block: rows that prepare the call, call, and take the result; ascending.
        site: row of the call; None where nothing is called.
        callee: rows of the called routine; empty where nothing is called, or the routine is not in the profile. Several sequences can share
            one.
        divisor: None where nothing is divided.
    """

    operation: Operation
    anchor: int
    inlined: tuple[int, ...]
    call_block: tuple[int, ...] = ()
    site: int | None = None
    callee: range = range(0)
    divisor: Divisor | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArithmeticSequences:
    """Everything found in a kernel. No row of the callers is in two sequences or chains.

    Attributes:
        sequences: by anchor.
        widened: rows of each chain of single precision values worked on in double precision.
        routine_rows: bool[n], rows of the compiler's own routines that sequences call.
    """

    sequences: tuple[ArithmeticSequence, ...]
    widened: tuple[tuple[int, ...], ...]
    routine_rows: npt.NDArray[np.bool_]

    def select(self, *families: Family) -> tuple[ArithmeticSequence, ...]:
        """The sequences of some families."""
        return tuple(one for one in self.sequences if one.operation.family in families)


def find_arithmetic_sequences(kernel: KernelRows) -> ArithmeticSequences:
    """The expansions in all functions of a kernel; the compiler's own routines are not looked into."""
    return kernel.once(_find_all)


def _find_all(kernel: KernelRows) -> ArithmeticSequences:
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
                expansion = find_guarded_operation(flow, site, routine, taken)
                taken |= expansion.rows
                sequences.append(_lift(flow, expansion, callee))
        rows = range(len(flow))
        inlined = [*find_integer_divisions(flow, rows, taken), *find_inlined_functions(flow, taken)]
        sequences.extend(_lift(flow, expansion) for expansion in inlined)
        chains = find_widened_arithmetic(flow, rows, taken)
        widened.extend(tuple(sorted(flow.first_row + row for row in chain)) for chain in chains)
    return ArithmeticSequences(
        sequences=tuple(sorted(sequences, key=lambda one: one.anchor)),
        widened=tuple(widened),
        routine_rows=routine_rows,
    )


def _lift(flow: FunctionFlow, expansion: Expansion, callee: range = range(0)) -> ArithmeticSequence:
    def lift(rows: frozenset[int]) -> tuple[int, ...]:
        return tuple(sorted(flow.first_row + row for row in rows))

    return ArithmeticSequence(
        operation=expansion.operation,
        anchor=flow.first_row + expansion.anchor,
        inlined=lift(expansion.inlined),
        call_block=lift(expansion.call_block),
        site=None if expansion.site is None else flow.first_row + expansion.site,
        callee=callee,
        divisor=expansion.divisor,
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
