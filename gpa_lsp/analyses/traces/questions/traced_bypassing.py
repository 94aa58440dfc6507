"""How many warps of a block should use L1?"""

from gpa_lsp.analyses.answers import Answer, Finding, Weight
from gpa_lsp.analyses.traces.questions import TraceQuestion
from gpa_lsp.analyses.traces.results import TraceAnalyses

_NAME = "traced_bypassing"
_TITLE = "Bypassing L1 (predicted)"
_REMEDY = (
    "Try it: let the loads of the other warps pass by L1 (__ldcg, or asm ld.global.cg), chosen by the warp's number in the block. Data that is used "
    "once can pass by in all warps (__ldcs)."
)


def _answer(analyses: TraceAnalyses) -> Answer:
    advice = analyses.bypassing
    if advice is None:
        return Answer(
            analysis=_NAME,
            title=_TITLE,
            summary="The model has nothing to say: no line is used again within a warp, or L1's size is not known.",
            is_known=False,
        )
    warps, of_all = advice.warps, advice.warps_per_block
    needs = (
        f"{advice.mean_distance:.1f} lines between two uses by a warp, {analyses.context.blocks_per_sm} blocks per SM"
    )
    if warps >= of_all:
        text, weight, remedy = f"All {of_all} warps of a block can use L1 ({needs}).", Weight.GOOD, ""
    else:
        text = f"L1 holds what {warps} of the {of_all} warps of a block use again ({needs})."
        weight, remedy = Weight.PLAIN, _REMEDY
    return Answer(
        analysis=_NAME,
        title=_TITLE,
        summary=text,
        findings=(Finding(text=text, weight=weight, remedy=remedy),),
    )


QUESTION = TraceQuestion(name=_NAME, order=80, answer=_answer)
