"""Atomic operations in a loop on an address that the loop does not change, and whose old value is not read: one after the loop would do."""

from collections.abc import Iterator

import numpy as np

from gpa_lsp.code.binary.opcodes import Access, MemorySpace
from gpa_lsp.diagnosis.advice.static_checks import StaticCheck
from gpa_lsp.diagnosis.advice.static_model import StaticFacts, StaticFinding
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import say
from gpa_lsp.kernel.dataflow.accesses import find_address, mark_accesses
from gpa_lsp.kernel.dataflow.value_flow import build_flow, is_invariant_address

NAME = "repeated-atomics"

_SPACES = (MemorySpace.GLOBAL, MemorySpace.GENERIC, MemorySpace.SHARED)


def find_repeated_atomics(facts: StaticFacts) -> Iterator[StaticFinding]:
    """One finding per line."""
    for rows in facts.group_by_line(_find_rows(facts.subject)):
        yield facts.make_finding(
            NAME,
            rows,
            message=say("An atomic whose result is unused updates the same address in every iteration of its loop."),
            remedy=say("Accumulate in a register and do one atomic after the loop."),
        )


def _find_rows(subject: Subject) -> list[int]:
    marks = mark_accesses(subject.rows, _SPACES, (Access.REDUCTION,))
    found: list[int] = []
    for number, function in enumerate(subject.rows.functions):
        graph, instructions = function.graph, function.instructions
        if graph is None or instructions is None or not graph.loops:
            continue
        first = int(subject.rows.first_rows[number])
        rows = np.flatnonzero(marks[first : first + len(instructions)])
        flow = build_flow(subject.rows, number) if len(rows) else None
        for row in rows.tolist() if flow is not None else ():
            loop = int(graph.innermost_loop[graph.block_of_instruction[row]])
            address = find_address(instructions.texts[row])
            if (
                flow is not None
                and loop >= 0
                and address is not None
                and is_invariant_address(flow, row, address[0], loop)
            ):
                found.append(first + row)
    return found


STATIC_CHECK = StaticCheck(name=NAME, title="Atomic operation repeated in a loop", find=find_repeated_atomics)
