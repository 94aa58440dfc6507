"""Atomic operations in a loop on an address that the loop does not change, and whose old value nobody reads: one after the loop would do."""

from collections.abc import Iterator

import numpy as np

from gpa_lsp.advice.accesses import find_address, mark_accesses
from gpa_lsp.advice.hint_words import begin_sentence
from gpa_lsp.advice.register_writers import RegisterWriters
from gpa_lsp.advice.source_words import describe_place
from gpa_lsp.advice.static_checks import StaticCheck
from gpa_lsp.advice.static_model import StaticFacts, StaticFinding
from gpa_lsp.advice.subject import Subject
from gpa_lsp.binary.opcodes import Access, MemorySpace
from gpa_lsp.binary.operands import parse_operand

NAME = "repeated-atomics"

_SPACES = (MemorySpace.GLOBAL, MemorySpace.GENERIC, MemorySpace.SHARED)


def find_repeated_atomics(facts: StaticFacts) -> Iterator[StaticFinding]:
    """One finding per line."""
    for rows in facts.group_by_line(_find_rows(facts.subject)):
        yield facts.make_finding(
            NAME,
            rows,
            message=f"{begin_sentence(describe_place(facts.subject, rows[0]))} goes to the same address in every turn of its loop.",
            remedy="Gather in a register, and make one atomic operation after the loop.",
        )


def _find_rows(subject: Subject) -> list[int]:
    marks = mark_accesses(subject, _SPACES, (Access.REDUCTION,))
    found: list[int] = []
    for number, function in enumerate(subject.kernel.functions):
        graph, instructions = function.graph, function.instructions
        if graph is None or instructions is None or not graph.loops:
            continue
        first = int(subject.first_rows[number])
        rows = np.flatnonzero(marks[first : first + len(instructions)])
        loops = graph.innermost_loop[graph.block_of_instruction[rows]]
        writers = RegisterWriters(instructions)
        for loop in np.unique(loops[loops >= 0]).tolist():
            inside = np.isin(graph.block_of_instruction, graph.blocks_of_loop(loop))
            for row in rows[loops == loop].tolist():
                address = find_address(instructions.texts[row])
                if address is not None and not writers.is_written_in(parse_operand(address[0]).expand(2), inside):
                    found.append(first + row)
    return found


STATIC_CHECK = StaticCheck(name=NAME, title="Atomic operation repeated in a loop", find=find_repeated_atomics)
