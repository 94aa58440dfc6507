"""How much code is in the way: stalls of instruction fetch, and the bytes that a loop goes through."""

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.model import INSTRUCTION_BYTES
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.model import BlameCategory
from gpa_lsp.kernel.calls import find_callee


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
