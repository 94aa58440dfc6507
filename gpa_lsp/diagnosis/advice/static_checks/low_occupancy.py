"""Few resident warps, by what a block of the known size asks for."""

from collections.abc import Iterator

from gpa_lsp.diagnosis.advice.static_checks import StaticCheck
from gpa_lsp.diagnosis.advice.static_model import StaticFacts, StaticFinding
from gpa_lsp.diagnosis.analyses.static.model import describe_block, describe_occupancy
from gpa_lsp.foundation.locations import Frame
from gpa_lsp.foundation.prose import join, say

NAME = "low-occupancy"

# From here on more warps seldom help: NVIDIA's own guide says so of half the most (CUDA C++ Best Practices Guide, section on occupancy)
_ENOUGH_RATIO = 0.5


def find_low_occupancy(facts: StaticFacts) -> Iterator[StaticFinding]:
    """One finding where the occupancy for a known block is below one half and a change of the code would raise it."""
    statics = facts.statics
    if statics.occupancy is None or statics.block is None or not statics.next_step:
        return
    if statics.occupancy.ratio >= _ENOUGH_RATIO or not statics.occupancy.limiters:
        return
    scope = facts.subject.scopes.scopes[0]
    place = Frame(file=scope.file, line=scope.line) if scope.file is not None and scope.line else None
    yield facts.make_finding(
        NAME,
        (),
        message=say(
            "{occupancy} for {block}.", occupancy=describe_occupancy(statics), block=describe_block(statics.block)
        ),
        remedy=join([statics.next_step, statics.next_step_remedy]),
        place=place,
    )


STATIC_CHECK = StaticCheck(name=NAME, title="Low occupancy", find=find_low_occupancy)
