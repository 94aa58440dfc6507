"""Which code a call leads to, as rows of a subject."""

from gpa_lsp.advice.subject import Subject
from gpa_lsp.binary.model import INSTRUCTION_BYTES
from gpa_lsp.program.model import CallSite


def find_callee(subject: Subject, index: int, call: CallSite) -> tuple[str, range]:
    """Name and rows of a called routine.

    Args:
        subject: the kernel.
        index: of the calling function, into ``subject.kernel.functions``.
        call: one of its graph's calls.

    Returns:
        An empty name where nobody knows it, an empty range where the code is not in the profile.
    """
    function, first = subject.kernel.functions[index], int(subject.first_rows[index])
    if call.callee_procedure is not None and function.graph is not None:
        procedure = function.graph.procedures[call.callee_procedure]
        end = min(procedure.end_offset // INSTRUCTION_BYTES, len(function.pc_offsets))
        return procedure.name, range(first + procedure.start_offset // INSTRUCTION_BYTES, first + end)
    symbol = call.symbol or ""
    names = [other.name for other in subject.kernel.functions]
    if symbol not in names:
        return symbol, range(0)
    callee = names.index(symbol)
    return symbol, range(int(subject.first_rows[callee]), int(subject.first_rows[callee + 1]))
