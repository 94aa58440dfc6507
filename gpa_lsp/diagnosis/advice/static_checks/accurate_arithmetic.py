"""Accurate floating-point divisions, roots and functions: tens of instructions, and a slow path that is called."""

from collections.abc import Iterator

from gpa_lsp.diagnosis.advice.arithmetic_hints import choose_operation_remedy, describe_operations
from gpa_lsp.diagnosis.advice.static_checks import StaticCheck
from gpa_lsp.diagnosis.advice.static_model import StaticFacts, StaticFinding
from gpa_lsp.kernel.dataflow.arithmetic.expansions import Family
from gpa_lsp.kernel.dataflow.arithmetic.sequences import ArithmeticSequence, find_arithmetic_sequences

NAME = "accurate-arithmetic"


def find_accurate(facts: StaticFacts) -> Iterator[StaticFinding]:
    """One finding per line and operation."""
    subject = facts.subject
    groups: dict[object, list[ArithmeticSequence]] = {}
    for sequence in find_arithmetic_sequences(subject.rows).select(Family.DIVISION, Family.ROOT, Family.FUNCTION):
        groups.setdefault((facts.find_frame_and_header(sequence.anchor), sequence.operation), []).append(sequence)
    for members in groups.values():
        yield facts.make_finding(
            NAME,
            [row for one in members for row in (*one.inlined, *one.call_block)],
            message=describe_operations(subject, members),
            remedy=choose_operation_remedy(subject, members),
            anchor=members[0].anchor,
        )


STATIC_CHECK = StaticCheck(name=NAME, title="Accurate division, root or function", find=find_accurate)
