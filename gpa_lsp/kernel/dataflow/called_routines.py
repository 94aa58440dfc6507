"""Functions that a kernel calls and that were not inlined: call sites, sizes, and whether they could be inlined."""

import numpy as np
from msgspec import Struct

from gpa_lsp.code.binary.linkage_names import read_function_name
from gpa_lsp.code.control_flow.graph import RootedGraph
from gpa_lsp.kernel.calls import find_callee
from gpa_lsp.kernel.dataflow.expansions import recognise_routine
from gpa_lsp.kernel.model import KernelRows
from gpa_lsp.kernel.scopes import find_scopes

# How the names of routines begin that the compiler adds by itself, or takes from its libraries; ``__global__`` code cannot be named so
_COMPILER_PREFIXES = ("__cuda", "__internal_", "__nv")


class CalledRoutine(Struct, frozen=True, kw_only=True):
    """A routine with at least one direct call."""

    symbol: str  # its linkage name, as the image has it
    rows: range  # of its code, what fills the section's end included
    scope: int  # number of its scope
    instructions: int  # how many of its instructions control can reach
    sites: tuple[int, ...]  # rows of the instructions that call it, ascending
    is_recursive: bool  # a chain of calls leads back to it
    is_internal: bool  # the compiler's own, for an operation without an instruction (a division, a root, a shuffle of unknown threads)
    # it has a section of its own: it was compiled apart from its callers, or may be called from elsewhere
    is_separate: bool

    @property
    def name(self) -> str:
        """Plain name, namespaces included."""
        return read_function_name(self.symbol)


def find_called_routines(kernel: KernelRows) -> tuple[CalledRoutine, ...]:
    """The routines of a kernel that are called directly and whose code is at hand, by address."""
    sites: dict[range, list[int]] = {}
    symbols: dict[range, str] = {}
    for number, function in enumerate(kernel.functions):
        for call in function.graph.calls if function.graph is not None else ():
            symbol, rows = find_callee(kernel, number, call)
            if len(rows):
                symbols[rows] = symbol
                sites.setdefault(rows, []).append(int(kernel.first_rows[number]) + call.instruction)
    ordered = sorted(symbols, key=lambda rows: rows.start)
    cyclic = _find_recursive(kernel, ordered, sites)
    return tuple(
        CalledRoutine(
            symbol=symbols[rows],
            rows=rows,
            scope=find_scopes(kernel).routine_of(rows.start),
            instructions=_count_reachable(kernel, rows),
            sites=tuple(sorted(sites[rows])),
            is_recursive=is_cyclic,
            is_internal=is_compiler_routine(symbols[rows]),
            is_separate=rows.start in kernel.first_rows,
        )
        for rows, is_cyclic in zip(ordered, cyclic, strict=True)
    )


def _find_recursive(kernel: KernelRows, ordered: list[range], sites: dict[range, list[int]]) -> list[bool]:
    """Whether each routine can call itself, directly or not."""
    routine_of = find_scopes(kernel).routine_of
    of_scope = {routine_of(rows.start): number for number, rows in enumerate(ordered)}
    successors: list[list[int]] = [[] for _ in ordered]
    for callee, rows in enumerate(ordered):
        for site in sites[rows]:
            caller = of_scope.get(routine_of(site))
            if caller is not None:
                successors[caller].append(callee)
    loops = RootedGraph(successors, range(len(successors))).find_loops()
    return [loop >= 0 for loop in loops.innermost]


def _count_reachable(kernel: KernelRows, rows: range) -> int:
    function = kernel.function_of(rows.start)
    first = kernel.index_of(rows.start)
    if function.graph is None:
        return len(rows)
    blocks = function.graph.block_of_instruction[first : first + len(rows)]
    return int(np.count_nonzero(function.graph.is_reachable[blocks]))


def is_compiler_routine(symbol: str) -> bool:
    """Whether a routine is not the kernel author's.

    >>> is_compiler_routine("$__internal_0_$__cuda_sm70_shflsync_bfly_p"), is_compiler_routine("$kernel$_Z5blendf")
    (True, False)
    """
    name = symbol.rpartition("$")[2]
    return name.startswith(_COMPILER_PREFIXES) or recognise_routine(symbol) is not None
