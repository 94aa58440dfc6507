"""Integer quotients and remainders by a value known only at run time: the hardware has no divider."""

from collections.abc import Iterator

from gpa_lsp.diagnosis.advice.arithmetic_hints import choose_division_remedy, describe_division, list_shared_lines
from gpa_lsp.diagnosis.advice.static_checks import StaticCheck
from gpa_lsp.diagnosis.advice.static_model import StaticFacts, StaticFinding
from gpa_lsp.foundation.locations import Frame
from gpa_lsp.kernel.dataflow.expansions import Family

NAME = "integer-divisions"


def find_divisions(facts: StaticFacts) -> Iterator[StaticFinding]:
    """One finding per line and width; where one expansion serves several lines, on the first of them."""
    for rows, members in facts.group_arithmetic(Family.INTEGER_DIVISION):
        # None where the line of the anchor is the only one
        first = min((line for one in members for line in list_shared_lines(facts.subject, one)), default=None)
        yield facts.make_finding(
            NAME,
            rows,
            message=describe_division(facts.subject, members),
            remedy=choose_division_remedy(facts.subject, members),
            anchor=members[0].anchor,
            place=None if first is None else Frame(file=first.file, line=first.line),
        )


STATIC_CHECK = StaticCheck(name=NAME, title="Integer division", find=find_divisions)
