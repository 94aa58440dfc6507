"""Integer quotients and remainders by a value known only at run time: the hardware has no divider."""

from collections.abc import Iterator, Sequence

from gpa_lsp.diagnosis.advice.arithmetic_hints import choose_division_remedy, describe_division, list_shared_lines
from gpa_lsp.diagnosis.advice.static_checks import StaticCheck
from gpa_lsp.diagnosis.advice.static_model import StaticFacts, StaticFinding
from gpa_lsp.foundation.locations import Frame
from gpa_lsp.kernel.dataflow.arithmetic.expansions import Family
from gpa_lsp.kernel.dataflow.arithmetic.sequences import ArithmeticSequence, find_arithmetic_sequences

NAME = "integer-divisions"


def find_divisions(facts: StaticFacts) -> Iterator[StaticFinding]:
    """One finding per line and width; where one expansion serves several lines, on the first of them."""
    subject = facts.subject
    groups: dict[object, list[ArithmeticSequence]] = {}
    for sequence in find_arithmetic_sequences(subject.rows).select(Family.INTEGER_DIVISION):
        groups.setdefault((facts.find_frame_and_header(sequence.anchor), sequence.operation), []).append(sequence)
    for members in groups.values():
        yield facts.make_finding(
            NAME,
            [row for one in members for row in (*one.inlined, *one.call_block)],
            message=describe_division(subject, members),
            remedy=choose_division_remedy(subject, members),
            anchor=members[0].anchor,
            place=_find_first_line(facts, members),
        )


def _find_first_line(facts: StaticFacts, members: Sequence[ArithmeticSequence]) -> Frame | None:
    """None where the line of the anchor is the only one."""
    shared = [line for one in members for line in list_shared_lines(facts.subject, one)]
    first = min(shared, default=None)
    return None if first is None else Frame(file=first.file, line=first.line)


STATIC_CHECK = StaticCheck(name=NAME, title="Integer division", find=find_divisions)
