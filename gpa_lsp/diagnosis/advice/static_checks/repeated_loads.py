"""Loads in a loop from an address that the loop does not change, which the compiler could not keep in a register."""

from collections.abc import Iterator

from gpa_lsp.diagnosis.advice.naming import describe_place
from gpa_lsp.diagnosis.advice.static_checks import StaticCheck
from gpa_lsp.diagnosis.advice.static_model import StaticFacts, StaticFinding
from gpa_lsp.foundation.prose import Code, capitalize, say
from gpa_lsp.kernel.dataflow.accesses import find_invariant_loads

NAME = "repeated-loads"


def find_repeated_loads(facts: StaticFacts) -> Iterator[StaticFinding]:
    """One finding per line."""
    loads = find_invariant_loads(facts.subject.rows)
    for rows in facts.group_by_line(loads):
        is_kept = any(loads[row].is_kept_by_stores for row in rows)
        yield facts.make_finding(
            NAME,
            rows,
            message=say(
                "{load} reads the same address in every iteration of its loop{why}.",
                load=capitalize(describe_place(facts.subject, rows[0])),
                why=", since something in the loop may change memory" if is_kept else "",
            ),
            remedy=(
                say(
                    "If nothing in the loop changes the value, load it before the loop or declare the pointer {qualifiers}.",
                    qualifiers=Code(text="const … __restrict__"),
                )
                if is_kept
                else say("Load it before the loop.")
            ),
        )


STATIC_CHECK = StaticCheck(name=NAME, title="Load repeated in a loop", find=find_repeated_loads)
