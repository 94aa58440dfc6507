"""Samples of the functions called from an instruction: an estimate, because samples carry no call stack.

A division or ``pow`` that was not inlined is sampled in its own function, often without lines; the reader wants to see it on the line that
calls it. As gprof does, a callee's samples are shared among its call sites by their executions.

Source: S. Graham, P. Kessler, M. McKusick, "gprof: a call graph execution profiler", SIGPLAN 1982, section 4; execution counts are exact
here (``inst_executed`` of the call instruction), but the cost of a call is still assumed to be the same from every site.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.binary.model import INSTRUCTION_BYTES
from gpa_lsp.code.control_flow.model import CallSite, FlowGraph
from gpa_lsp.kernel.model import FunctionSamples, Kernel, KernelRows

_Node = tuple[int, int]  # A procedure: (index into kernel.functions, index into its graph's procedures)


class _Call(Struct, frozen=True, kw_only=True):
    """A direct call whose callee is known."""

    caller: _Node
    callee: _Node
    row: int  # row of the calling instruction over all functions of the kernel
    executions: int  # of the calling instruction; 0 where not counted


def estimate_called_samples(kernel: Kernel, samples: npt.NDArray[np.float64] | None = None) -> npt.NDArray[np.float64]:
    """Samples in functions called from each instruction, callees of callees included.

    Recursive calls (back into a function that is being called) are left out, so nothing is counted twice. Where no call site of a function has
    execution counts, its sites share evenly. The samples of a function without a direct call are credited to no site.

    Args:
        kernel: joined.
        samples: float64[n], weight of each row, such as the samples attributed to it; None takes the samples taken there.

    Returns:
        float64[n] over all rows of ``kernel.functions``, in order; zero but at call instructions.
    """
    starts = kernel.rows.first_rows
    if samples is None:
        samples = kernel.rows.all_samples.sum(axis=1).astype(np.float64)
    called = np.zeros(int(starts[-1]))
    by_caller: dict[_Node, list[_Call]] = {}
    for call in _list_calls(kernel, starts.tolist()):
        by_caller.setdefault(call.caller, []).append(call)
    order, followed = _order_callees_first(by_caller)
    weights = _weigh(followed)
    inclusive: dict[_Node, float] = {}
    for node in order:
        own = _count_own_samples(kernel, node, samples[starts[node[0]] : starts[node[0] + 1]])
        for call in followed.get(node, ()):
            credit = inclusive[call.callee] * weights[call.row]
            called[call.row] += credit
            own += credit
        inclusive[node] = own
    return called


def _list_calls(kernel: Kernel, starts: list[int]) -> list[_Call]:
    sections = {one.name: (index, 0) for index, one in enumerate(kernel.functions) if one.graph is not None}
    calls = []
    for index, function in enumerate(kernel.functions):
        if function.graph is None:
            continue
        for site in function.graph.calls:
            procedure = site.callee_procedure
            callee = sections.get(site.symbol or "") if procedure is None else (index, procedure)
            if callee is None:
                continue
            block = int(function.graph.block_of_instruction[site.instruction])
            caller = (index, int(function.graph.procedure_of_block[block]))
            executions = max(int(function.executions[site.instruction]), 0)
            row = starts[index] + site.instruction
            calls.append(_Call(caller=caller, callee=callee, row=row, executions=executions))
    return calls


def _count_own_samples(kernel: Kernel, node: _Node, samples: npt.NDArray[np.float64]) -> float:
    """Samples of a procedure's own instructions, out of those of its section."""
    function = kernel.functions[node[0]]
    if function.graph is None:
        return float(samples.sum())
    return float(samples[_rows_of_procedure(function, function.graph, node[1])].sum())


def _rows_of_procedure(function: FunctionSamples, graph: FlowGraph, procedure: int) -> slice:
    found = graph.procedures[procedure]
    return slice(
        found.start_offset // INSTRUCTION_BYTES, min(found.end_offset // INSTRUCTION_BYTES, len(function.pc_offsets))
    )


def _weigh(followed: Mapping[_Node, list[_Call]]) -> dict[int, float]:
    """Each call's part of its callee, by row of the call; the parts of one callee add up to 1."""
    by_callee: dict[_Node, list[_Call]] = {}
    for calls in followed.values():
        for call in calls:
            by_callee.setdefault(call.callee, []).append(call)
    weights: dict[int, float] = {}
    for calls in by_callee.values():
        total = sum(call.executions for call in calls)
        for call in calls:
            weights[call.row] = call.executions / total if total else 1 / len(calls)
    return weights


def _order_callees_first(by_caller: Mapping[_Node, list[_Call]]) -> tuple[list[_Node], dict[_Node, list[_Call]]]:
    """Procedures in depth-first finishing order, and the calls that close no cycle, by caller. No recursion on input depth."""
    order: list[_Node] = []
    followed: dict[_Node, list[_Call]] = {}
    finished: dict[_Node, bool] = {}
    roots = [*by_caller, *(call.callee for calls in by_caller.values() for call in calls)]
    for root in roots:
        if root in finished:
            continue
        finished[root] = False
        stack = [(root, iter(by_caller.get(root, ())))]
        while stack:
            node, remaining = stack[-1]
            call = next(remaining, None)
            if call is None:
                finished[node] = True
                order.append(node)
                stack.pop()
                continue
            if finished.get(call.callee) is False:
                continue
            followed.setdefault(node, []).append(call)
            if call.callee not in finished:
                finished[call.callee] = False
                stack.append((call.callee, iter(by_caller.get(call.callee, ()))))
    return order, followed


def find_callee(kernel: KernelRows, index: int, call: CallSite) -> tuple[str, range]:
    """Name and rows of a called routine.

    Args:
        kernel: its rows.
        index: of the calling function, into ``kernel.functions``.
        call: one of its graph's calls.

    Returns:
        An empty name where it is unknown, an empty range where the code is not in the profile.
    """
    function, first = kernel.functions[index], int(kernel.first_rows[index])
    if call.callee_procedure is not None and function.graph is not None:
        rows = _rows_of_procedure(function, function.graph, call.callee_procedure)
        name = function.graph.procedures[call.callee_procedure].name
        return name, range(first + rows.start, first + rows.stop)
    symbol = call.symbol or ""
    names = [other.name for other in kernel.functions]
    if symbol not in names:
        return symbol, range(0)
    callee = names.index(symbol)
    return symbol, range(int(kernel.first_rows[callee]), int(kernel.first_rows[callee + 1]))
