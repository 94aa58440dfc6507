"""How many warps of a block should use L1?"""

from gpa_lsp.analyses.answers import Answer, Finding, Weight
from gpa_lsp.traces.bypassing import BypassingAdvice
from gpa_lsp.traces.questions import TraceQuestion
from gpa_lsp.traces.results import TraceAnalyses

_NAME = "traced_bypassing"
_TITLE = "Bypassing L1 (predicted)"
_ONCE = "Data that is used once can pass by in all warps (__ldcs)."
_SOME_REMEDY = (
    "Try it: let the loads of the other warps pass by L1 (__ldcg, or asm ld.global.cg), chosen by the warp's number in the block. "
    + _ONCE
)
_NONE_REMEDY = "Try it: let the loads pass by L1 (__ldcg, or asm ld.global.cg). " + _ONCE


def _answer(analyses: TraceAnalyses) -> Answer:
    advice = analyses.bypassing
    if advice is None:
        return Answer(
            analysis=_NAME,
            title=_TITLE,
            summary="The model has nothing to say: no load that L1 keeps uses a line again within a warp, or L1's size is not known.",
            is_known=False,
        )
    findings: tuple[Finding, ...] = ()
    if advice.warps < advice.warps_per_block:
        lines, blocks = f"{advice.mean_distance:.1f}", analyses.context.blocks_per_sm
        needs = (
            f"To use a line again, a warp needs {lines} {'line' if lines == '1.0' else 'lines'} kept in L1, "
            f"and an SM holds {blocks} {'block' if blocks == 1 else 'blocks'}."
        )
        remedy = _SOME_REMEDY if advice.warps else _NONE_REMEDY
        findings = (Finding(text=needs, weight=Weight.PLAIN, remedy=remedy),)
    return Answer(analysis=_NAME, title=_TITLE, summary=summarise_bypassing(advice), findings=findings)


def summarise_bypassing(advice: BypassingAdvice) -> str:
    """How many warps L1 has room for, as a sentence."""
    warps, of_all = advice.warps, advice.warps_per_block
    whole = "the only warp" if of_all == 1 else f"the {of_all} warps"
    if warps >= of_all:
        return f"{'The only warp' if of_all == 1 else f'All {of_all} warps'} of a block can use L1."
    if warps == 0:
        which = whole if of_all == 1 else f"even one of {whole}"
        return f"L1 does not hold what {which} of a block uses again."
    return f"L1 holds what {warps} of {whole} of a block {'uses' if warps == 1 else 'use'} again."


QUESTION = TraceQuestion(name=_NAME, order=80, answer=_answer)
