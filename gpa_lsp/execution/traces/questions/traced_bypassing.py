"""How many warps of a block should use L1?"""

from gpa_lsp.diagnosis.analyses.answers import Answer, Finding, Weight
from gpa_lsp.execution.traces.cache_hits import BypassingAdvice
from gpa_lsp.execution.traces.questions import TraceQuestion
from gpa_lsp.execution.traces.results import TraceAnalyses
from gpa_lsp.foundation.prose import Code, Sentence, count, join, number, say

_NAME = "traced_bypassing"
_TITLE = "Bypassing L1 (predicted)"
_HOW = say("{ldcg}, or {ptx} in inline PTX", ldcg=Code(text="__ldcg"), ptx=Code(text="ld.global.cg"))
_ONCE = say("Data that is used once can bypass L1 in all warps ({ldcs}).", ldcs=Code(text="__ldcs"))
_SOME_REMEDY = join(
    [
        say(
            "Try bypassing L1 in the loads of the other warps ({how}), selected by the warp's index in the block.",
            how=_HOW,
        ),
        _ONCE,
    ]
)
_NONE_REMEDY = join([say("Try bypassing L1 in the loads ({how}).", how=_HOW), _ONCE])


def _answer(analyses: TraceAnalyses) -> Answer:
    advice = analyses.bypassing
    if advice is None:
        return Answer(
            analysis=_NAME,
            title=_TITLE,
            summary=say(
                "Nothing to predict: no load that L1 keeps reuses a line within a warp, or the size of L1 is unknown."
            ),
            is_known=False,
        )
    findings: tuple[Finding, ...] = ()
    if advice.warps < advice.warps_per_block:
        needs = say(
            "To reuse a line, a warp needs {lines} kept in L1, and an SM holds {blocks}.",
            lines=number(advice.mean_distance, "line"),
            blocks=count(analyses.context.blocks_per_sm, "block"),
        )
        remedy = _SOME_REMEDY if advice.warps else _NONE_REMEDY
        findings = (Finding(text=needs, weight=Weight.PLAIN, remedy=remedy),)
    return Answer(analysis=_NAME, title=_TITLE, summary=summarise_bypassing(advice), findings=findings)


def summarise_bypassing(advice: BypassingAdvice) -> Sentence:
    """How many warps L1 has room for, as a sentence."""
    warps, whole = advice.warps, count(advice.warps_per_block, "warp")
    if advice.warps_per_block == 1:
        if warps >= 1:
            return say("The only warp of a block can use L1.")
        return say("L1 cannot hold the lines that the only warp of a block reuses.")
    if warps >= advice.warps_per_block:
        return say("All {whole} of a block can use L1.", whole=whole)
    if warps == 0:
        return say("L1 cannot hold the lines that even one of the {whole} of a block reuses.", whole=whole)
    verb = "reuses" if warps == 1 else "reuse"
    return say(
        "L1 can hold the lines that {warps} of the {whole} of a block {verb}.",
        warps=count(warps),
        whole=whole,
        verb=verb,
    )


QUESTION = TraceQuestion(name=_NAME, order=80, answer=_answer)
