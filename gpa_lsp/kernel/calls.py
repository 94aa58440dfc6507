"""What the functions called from an instruction cost: an estimate, because samples carry no call stack.

A division or ``pow`` that was not inlined is sampled in its own function, often without lines; the reader wants to see it on the line that
calls it. As gprof does, a callee's samples are shared among its call sites by how often each executed.

Source: S. Graham, P. Kessler, M. McKusick, "gprof: a call graph execution profiler", SIGPLAN 1982, section 4; execution counts are exact
here (``inst_executed`` of the call instruction), but the cost of a call is still assumed to be the same from every site.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpa_lsp.binary.model import Flow
from gpa_lsp.kernel.model import FunctionSamples, Kernel

_Node = tuple[int, int]
"""(index into kernel.functions, start offset of the function or sub-function in its section)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _CallSite:
    caller: _Node
    callee: _Node
    row: int
    """Row in the caller's section."""
    executions: int


def estimate_called_samples(kernel: Kernel) -> npt.NDArray[np.float64]:
    """Samples in functions called from each instruction, callees of callees included.

    Recursive calls (back into a function that is being called) are left out, so nothing is counted twice. Where no call site of a function has
    execution counts, its sites share evenly. A function nobody in the kernel calls by a direct call keeps its samples to itself.

    Returns:
        float64[n] over all rows of ``kernel.functions``, in order; zero but at call instructions.
    """
    starts = np.cumsum([0] + [len(function.pc_offsets) for function in kernel.functions])
    called = np.zeros(int(starts[-1]))
    sites = _find_call_sites(kernel)
    if not sites:
        return called
    by_callee: dict[_Node, list[_CallSite]] = {}
    by_caller: dict[_Node, list[_CallSite]] = {}
    for site in sites:
        by_callee.setdefault(site.callee, []).append(site)
        by_caller.setdefault(site.caller, []).append(site)
    order, recursive = _order_callees_first(by_caller)
    inclusive: dict[_Node, float] = {}
    for node in order:
        own = float(_samples_of(kernel, node))
        for site in by_caller.get(node, ()):
            if id(site) not in recursive:
                credit = inclusive[site.callee] * _weigh(site, by_callee[site.callee], recursive)
                called[starts[site.caller[0]] + site.row] += credit
                own += credit
        inclusive[node] = own
    return called


def _weigh(site: _CallSite, siblings: list[_CallSite], recursive: set[int]) -> float:
    counted = [sibling for sibling in siblings if id(sibling) not in recursive]
    total = sum(sibling.executions for sibling in counted)
    return site.executions / total if total else 1 / len(counted)


def _find_call_sites(kernel: Kernel) -> list[_CallSite]:
    sections = {function.name: index for index, function in enumerate(kernel.functions)}
    sites = []
    for index, function in enumerate(kernel.functions):
        if function.instructions is None or function.function is None:
            continue
        for row in np.flatnonzero(function.instructions.flow == Flow.CALL).tolist():
            callee = _find_callee(function, index, row, sections)
            if callee is not None:
                caller = (index, _owner(function, int(function.pc_offsets[row])))
                executions = max(int(function.executions[row]), 0)
                sites.append(_CallSite(caller=caller, callee=callee, row=row, executions=executions))
    return sites


def _find_callee(function: FunctionSamples, index: int, row: int, sections: dict[str, int]) -> _Node | None:
    assert function.instructions is not None and function.function is not None
    symbol = function.function.call_symbols.get(int(function.pc_offsets[row]))
    if symbol is not None and symbol in sections:
        return (sections[symbol], 0)
    if symbol is not None:
        for sub in function.function.sub_functions:
            if sub.name == symbol:
                return (index, sub.start_offset)
        return None
    target = int(function.instructions.target[row])
    return (index, _owner(function, target)) if target >= 0 else None


def _owner(function: FunctionSamples, pc_offset: int) -> int:
    """Start offset of the sub-function an offset lies in; 0 for the section's own function."""
    assert function.function is not None
    for sub in function.function.sub_functions:
        if sub.start_offset <= pc_offset < sub.start_offset + sub.size_bytes:
            return sub.start_offset
    return 0


def _samples_of(kernel: Kernel, node: _Node) -> int:
    function = kernel.functions[node[0]]
    rows = np.ones(len(function.pc_offsets), dtype=np.bool_)
    if function.function is not None:
        for sub in function.function.sub_functions:
            inside = (function.pc_offsets >= sub.start_offset) & (
                function.pc_offsets < sub.start_offset + sub.size_bytes
            )
            rows = inside if sub.start_offset == node[1] else rows & ~inside if node[1] == 0 else rows
            if sub.start_offset == node[1]:
                break
    return int(function.all_samples[rows].sum())


def _order_callees_first(by_caller: dict[_Node, list[_CallSite]]) -> tuple[list[_Node], set[int]]:
    """Depth-first finishing order without recursion, and the identities of the call sites that close a cycle."""
    order: list[_Node] = []
    recursive: set[int] = set()
    state: dict[_Node, bool] = {}
    roots = [*by_caller, *(site.callee for sites in by_caller.values() for site in sites)]
    for root in roots:
        if root in state:
            continue
        state[root] = False
        stack = [(root, iter(by_caller.get(root, ())))]
        while stack:
            node, remaining = stack[-1]
            site = next(remaining, None)
            if site is None:
                state[node] = True
                order.append(node)
                stack.pop()
            elif site.callee not in state:
                state[site.callee] = False
                stack.append((site.callee, iter(by_caller.get(site.callee, ()))))
            elif not state[site.callee]:
                recursive.add(id(site))
    return order, recursive
