"""Branches on the thread's index whose two ways the threads of one warp take, in every warp."""

from collections.abc import Iterator

from gpa_lsp.code.symbolic_accesses.model import DividingBranch, Division
from gpa_lsp.code.symbolic_accesses.requests import WARP_LANES
from gpa_lsp.diagnosis.advice.static_checks import StaticCheck
from gpa_lsp.diagnosis.advice.static_model import Certainty, StaticFacts, StaticFinding
from gpa_lsp.foundation.prose import Code, Sentence, count, number, say

NAME = "divergent-branches"
_LEAST_SIDE = 6  # Instructions on a side below which the compiler needs no branch
_LEAST_IDLE = 4  # Of 32 lanes, that wait for a loop of the others: an eighth of what the warp could do there
_LOOPS = {
    (False, False): "",
    (True, False): ", the former with a loop",
    (False, True): ", the latter with a loop",
    (True, True): ", both with loops",
}


def find_divergent_branches(facts: StaticFacts) -> Iterator[StaticFinding]:
    """One finding per line.

    Not told: bounds, which divide one warp at most; what one thread of each warp does for the others; a condition with nothing but a few
    instructions behind it.
    """
    warps = facts.warps
    if warps is None:
        return
    seen = set()
    for branch in warps.found.branches:
        frame = facts.find_frame_at_hand(branch.instruction.chain)
        if frame is None or frame.source_line in seen or not _is_costly(branch):
            continue
        seen.add(frame.source_line)
        yield facts.make_finding(
            NAME,
            (),
            place=frame,
            message=_describe(branch),
            remedy=say(
                "Let whole warps take one side: base the condition on {warp}, or give threads that take the same side consecutive indices.",
                warp=Code(text="threadIdx.x / 32"),
            ),
            certainty=Certainty.CERTAIN if branch.division is Division.EVERY_WARP else Certainty.LIKELY,
        )


def _is_costly(branch: DividingBranch) -> bool:
    least, most = sorted(branch.sides)
    if branch.division is Division.REMAINDER:
        return most >= _LEAST_SIDE and branch.is_in_loop
    return least >= _LEAST_SIDE or _idles_in_loop(branch)


def _idles_in_loop(branch: DividingBranch) -> bool:
    """Some lanes wait for a loop of others: more than one lane works there, and enough are idle."""
    if branch.lanes is None:
        return False
    working = branch.lanes, WARP_LANES - branch.lanes
    return any(
        has_loop and 2 <= lanes <= WARP_LANES - _LEAST_IDLE
        for has_loop, lanes in zip(branch.has_loops, working, strict=True)
    )


def _describe(branch: DividingBranch) -> Sentence:
    if branch.division is Division.REMAINDER or branch.lanes is None:
        return say(
            "Every warp diverges here, by a remainder of the thread index: it executes both sides, each with some lanes idle."
        )
    return say(
        "Every warp diverges here, with {lanes} of 32 threads on one side: it executes both sides, about {first} and {second} long{loop}.",
        lanes=number(branch.lanes),
        first=number(float(branch.sides[0])),
        second=count(branch.sides[1], "instruction"),
        loop=_LOOPS[branch.has_loops],
    )


STATIC_CHECK = StaticCheck(name=NAME, title="Divergent branches", find=find_divergent_branches)
