"""Code size: stalls of instruction fetch, and the bytes that a loop executes."""

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.binary.model import INSTRUCTION_BYTES
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.model import BlameCategory
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.kernel.calls import find_callee

# How much code the instruction caches hold.


class InstructionCaches(Struct, frozen=True, kw_only=True):
    """Capacity of the first one; code beyond it is fetched again in every iteration of a loop."""

    first_bytes: int  # of a sub-partition's own cache (L0)
    # published measurements of this architecture exist; else the values are those of the nearest one
    is_measured: bool


_KIB = 1024

_MEASURED = {
    (7, 0): InstructionCaches(first_bytes=12 * _KIB, is_measured=True),
    (7, 5): InstructionCaches(first_bytes=16 * _KIB, is_measured=True),
    (8, 0): InstructionCaches(first_bytes=32 * _KIB, is_measured=True),
    (8, 6): InstructionCaches(first_bytes=16 * _KIB, is_measured=True),
}
"""Measured capacities by compute capability.

Source: Z. Jia et al., "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking" (arXiv:1804.06826) and "Dissecting the NVidia Turing
T4 GPU via Microbenchmarking" (arXiv:1903.07486) for 7.0 and 7.5; YKTian-x2b, AmpereArchViaMicroBenchMark, InstructionCache_Size, for 8.6 (RTX
3060, measured) and 8.0 (as cited there)."""

# For architectures without published measurements: as on 8.0, the largest known, so that no loop is called too large wrongly
_ASSUMED = InstructionCaches(first_bytes=32 * _KIB, is_measured=False)


def find_instruction_caches(architecture: Architecture | None) -> InstructionCaches:
    """The caches of an architecture.

    >>> from gpa_lsp.gpu.arch.lookup import find_architecture
    >>> find_instruction_caches(find_architecture((8, 8))).first_bytes
    16384
    >>> find_instruction_caches(None).is_measured
    False
    """
    return _ASSUMED if architecture is None else _MEASURED.get(architecture.table_of, _ASSUMED)


def find_fetch_edges(subject: Subject) -> npt.NDArray[np.int64]:
    """int64[m], indices of the blamed pairs that waited for an instruction to be fetched."""
    edges = subject.edges
    return np.flatnonzero((edges.category == BlameCategory.INSTRUCTION_FETCH) & (edges.all_samples > 0))


def count_executed_bytes(subject: Subject, rows: npt.NDArray[np.int64]) -> int:
    """Code of some rows that a warp went through; all of it where executions were not counted."""
    executions = subject.rows.executions[rows]
    return int(np.count_nonzero(executions != 0)) * INSTRUCTION_BYTES


def count_scope_bytes(subject: Subject) -> npt.NDArray[np.int64]:
    """int64[s], executed code of each of a kernel's scopes, nested ones included."""
    scopes = subject.scopes
    executed = (subject.rows.executions != 0).astype(np.float64)
    sizes = np.bincount(scopes.innermost, weights=executed, minlength=len(scopes.scopes)).astype(np.int64)
    for scope in range(len(scopes.scopes) - 1, 0, -1):
        sizes[scopes.parent[scope]] += sizes[scope]
    return sizes * INSTRUCTION_BYTES


def count_called_bytes(subject: Subject, rows: npt.NDArray[np.int64]) -> int:
    """Executed code of the routines that some rows call directly, each once."""
    inside = subject.rows.mark(rows)
    called: set[range] = set()
    for index, function in enumerate(subject.rows.functions):
        first = int(subject.rows.first_rows[index])
        for call in function.graph.calls if function.graph is not None else ():
            if inside[first + call.instruction]:
                called.add(find_callee(subject.rows, index, call)[1])
    return sum(count_executed_bytes(subject, np.arange(callee.start, callee.stop)) for callee in called)
