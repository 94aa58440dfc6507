"""The nest of kernel, functions and loops, with the samples of each: the scopes of Equations 4 and 5.

Scope 0 is the kernel. Below it is one scope per routine (functions and local functions alike), and below those their loops. Every row has an
innermost scope.

Source: GPA section V-B, scope analysis (Equation 5): a scope can draw on the active samples of the scopes nested in it.
"""

from enum import StrEnum

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.binary.model import INSTRUCTION_BYTES
from gpa_lsp.foundation.locations import InlineChain
from gpa_lsp.foundation.records import ColumnRecord, remembered
from gpa_lsp.kernel.model import FunctionSamples, KernelRows


class ScopeKind(StrEnum):
    """Kind of a part of the kernel that advice is about."""

    KERNEL = "kernel"
    FUNCTION = "function"
    LOOP = "loop"
    CALL = "call"  # A call site
    INLINED = "inlined"  # The body of an inlined function
    LINE = "line"


class Scope(Struct, frozen=True, kw_only=True):
    """A part of the kernel."""

    kind: ScopeKind  # kind of part
    function: str  # mangled name of the routine it is in (for INLINED: the inlined function; for CALL: the callee, where known)
    row: int  # its first instruction (a loop's header, the call, the function's entry)
    file: str | None = None  # as compiled; None without line information
    line: int | None = None  # its line (a loop's own line); None without line information
    last_line: int | None = None  # last line of its body; None when unknown

    def holds_line(self, file: str, line: int) -> bool:
        """Whether a line is its own, or one of those down to its last."""
        first = self.line or 0
        return first > 0 and self.file == file and first <= line <= (self.last_line or first)


class ScopeTree(ColumnRecord, frozen=True, kw_only=True):
    """The scopes of a kernel."""

    scopes: tuple[Scope, ...]  # scope number → what it is; parents come before their children
    parent: npt.NDArray[np.int32]  # int32[s], number of the scope around; -1 for the kernel
    innermost: npt.NDArray[np.int32]  # int32[n], number of each row's innermost scope
    # float64[s], samples in issuing cycles (all − latency), nested scopes included; NaN where that is unknown
    active_samples: npt.NDArray[np.float64]
    # float64[s], samples without issue, nested scopes included; NaN where that is unknown
    latency_samples: npt.NDArray[np.float64]
    is_loop: npt.NDArray[np.bool_]  # bool[s]

    def loop_of(self, row: int) -> int:
        """Number of the innermost loop around a row; -1 outside loops."""
        scope = int(self.innermost[row])
        return scope if self.is_loop[scope] else -1

    def routine_of(self, row: int) -> int:
        """Number of the routine a row is in."""
        scope = int(self.innermost[row])
        while self.is_loop[scope]:
            scope = int(self.parent[scope])
        return scope

    def around(self, scope: int) -> tuple[int, ...]:
        """A scope and all scopes around it, innermost first."""
        found = []
        while scope >= 0:
            found.append(scope)
            scope = int(self.parent[scope])
        return tuple(found)

    def rows_of(self, scope: int) -> npt.NDArray[np.int64]:
        """Rows of a scope, nested scopes included, ascending."""
        inside = np.zeros(len(self.scopes), dtype=np.bool_)
        inside[scope] = True
        for number in range(scope + 1, len(self.scopes)):
            inside[number] = inside[self.parent[number]]
        return np.flatnonzero(inside[self.innermost])


@remembered
def find_scopes(kernel: KernelRows) -> ScopeTree:
    """The scopes of a kernel, with their samples."""
    sizes = [len(function.pc_offsets) for function in kernel.functions]
    scopes = [_kernel_scope(kernel)]
    parent = [-1]
    innermost = np.zeros(sum(sizes), dtype=np.int32)
    first_row = 0
    for function, size in zip(kernel.functions, sizes, strict=True):
        innermost[first_row : first_row + size] = _add_function(function, first_row, scopes, parent)
        first_row += size
    every = kernel.all_samples.sum(axis=1).astype(np.float64)
    split = kernel.latency_samples
    latency = np.full(len(every), np.nan) if split is None else split.sum(axis=1).astype(np.float64)
    parents = np.array(parent, dtype=np.int32)
    return ScopeTree(
        scopes=tuple(scopes),
        parent=parents,
        innermost=innermost,
        active_samples=_sum_nested(every - latency, innermost, parents),
        latency_samples=_sum_nested(latency, innermost, parents),
        is_loop=np.array([scope.kind is ScopeKind.LOOP for scope in scopes], dtype=np.bool_),
    )


def _sum_nested(
    values: npt.NDArray[np.float64], innermost: npt.NDArray[np.int32], parent: npt.NDArray[np.int32]
) -> npt.NDArray[np.float64]:
    sums = np.bincount(innermost, weights=values, minlength=len(parent)).astype(np.float64)
    for scope in range(len(parent) - 1, 0, -1):
        sums[parent[scope]] += sums[scope]
    return sums


def _kernel_scope(kernel: KernelRows) -> Scope:
    file, line = _first_line(kernel.functions[0], 0, len(kernel.functions[0].pc_offsets))
    return Scope(kind=ScopeKind.KERNEL, function=kernel.kernel_name, row=0, file=file, line=line)


def _add_function(
    function: FunctionSamples, first_row: int, scopes: list[Scope], parent: list[int]
) -> npt.NDArray[np.int32]:
    """Append a section's scopes; int32[n], the innermost scope of each of its rows."""
    size = len(function.pc_offsets)
    graph = function.graph
    if graph is None or not graph.procedures:
        scopes.append(Scope(kind=ScopeKind.FUNCTION, function=function.name, row=first_row))
        parent.append(0)
        return np.full(size, len(scopes) - 1, dtype=np.int32)
    first_routine = len(scopes)
    for procedure in graph.procedures:
        start = min(procedure.start_offset // INSTRUCTION_BYTES, size - 1)
        end = min(procedure.end_offset // INSTRUCTION_BYTES, size)
        file, line = _first_line(function, start, end)
        scopes.append(
            Scope(kind=ScopeKind.FUNCTION, function=procedure.name, row=first_row + start, file=file, line=line)
        )
        parent.append(0)
    first_loop = len(scopes)
    for loop in graph.loops:
        header = int(graph.first_instruction[loop.header])
        routine = first_routine + int(graph.procedure_of_block[loop.header])
        lines = loop.lines
        scopes.append(
            Scope(
                kind=ScopeKind.LOOP,
                function=scopes[routine].function,
                row=first_row + header,
                file=lines.frame.file if lines else None,
                line=lines.frame.line if lines else None,
                last_line=lines.last_line if lines else None,
            )
        )
        parent.append(routine if loop.parent is None else first_loop + loop.parent)
    of_block = np.where(
        graph.innermost_loop >= 0, first_loop + graph.innermost_loop, first_routine + graph.procedure_of_block
    )
    return of_block[graph.block_of_instruction].astype(np.int32)


def _first_line(function: FunctionSamples, start: int, end: int) -> tuple[str | None, int | None]:
    """File and smallest line of a routine's own instructions (outermost frames), in the file of its first one."""
    if function.lines is None:
        return None, None
    chains: list[InlineChain] = [
        function.lines.chains[index] for index in dict.fromkeys(function.chain_index[start:end].tolist()) if index >= 0
    ]
    if not chains:
        return None, None
    file = chains[0][-1].file
    return file, min((chain[-1].line for chain in chains if chain[-1].file == file and chain[-1].line), default=None)
