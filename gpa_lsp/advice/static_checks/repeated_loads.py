"""Loads in a loop from an address that the loop does not change, which the compiler could not keep in a register."""

from collections.abc import Iterator

from gpa_lsp.advice.hint_words import begin_sentence
from gpa_lsp.advice.source_words import describe_place
from gpa_lsp.advice.static_checks import StaticCheck
from gpa_lsp.advice.static_model import StaticFacts, StaticFinding
from gpa_lsp.dataflow.repeated_loads import find_invariant_loads

NAME = "repeated-loads"


def find_repeated_loads(facts: StaticFacts) -> Iterator[StaticFinding]:
    """One finding per line."""
    loads = find_invariant_loads(facts.subject.rows)
    for rows in facts.group_by_line(loads):
        is_kept = any(loads[row].is_kept_by_stores for row in rows)
        why = ": something in it may change memory, so the compiler has to look again" if is_kept else ""
        yield facts.make_finding(
            NAME,
            rows,
            message=f"{begin_sentence(describe_place(facts.subject, rows[0]))} reads the same address in every turn of its loop{why}.",
            remedy=(
                "If nothing in the loop changes the value, load it into a variable before the loop, or say so with `const … __restrict__`."
                if is_kept
                else "Load it into a variable before the loop."
            ),
        )


STATIC_CHECK = StaticCheck(name=NAME, title="Load repeated in a loop", find=find_repeated_loads)
