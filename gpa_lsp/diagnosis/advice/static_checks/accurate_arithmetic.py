"""Accurate floating-point divisions, roots and functions: tens of instructions, and a slow path that is called."""

from collections.abc import Iterator

from gpa_lsp.diagnosis.advice.arithmetic_hints import choose_operation_remedy, describe_operations
from gpa_lsp.diagnosis.advice.static_checks import StaticCheck
from gpa_lsp.diagnosis.advice.static_model import StaticFacts, StaticFinding
from gpa_lsp.kernel.dataflow.expansions import FLOATING

NAME = "accurate-arithmetic"


def find_accurate(facts: StaticFacts) -> Iterator[StaticFinding]:
    """One finding per line and operation."""
    for rows, members in facts.group_arithmetic(*FLOATING):
        yield facts.make_finding(
            NAME,
            rows,
            message=describe_operations(facts.subject, members),
            remedy=choose_operation_remedy(facts.subject, members),
            anchor=members[0].anchor,
        )


STATIC_CHECK = StaticCheck(name=NAME, title="Accurate division, root or function", find=find_accurate)
