"""What the compiler and the simulator say against advice, or for it: :func:`hold_to_witnesses`.

An edit that the compiler makes the same code of gains nothing, whatever an estimate says; and one that the simulator finds no faster has no number.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.model import LEAST_SPEEDUP, Advice, KernelAdvice, Silence, SilenceStage
from gpa_lsp.diagnosis.analyses.limiter.model import Limiter
from gpa_lsp.foundation.prose import factor, say
from gpa_lsp.report.fixes.results import FixState, FixVerdict
from gpa_lsp.report.model import KernelReport
from gpa_lsp.report.rewrite_contexts import Question

_SAME_CODE = say("compiled: the code does not change")
_NO_FASTER = say("simulated: the edit is no faster")


class TriedFix(Struct, frozen=True, kw_only=True):
    """One edit that does what a piece of advice asks for at one place (:attr:`~gpa_lsp.diagnosis.rewrites.model.Rewrite.is_remedy`)."""

    question: Question  # the place
    verdict: FixVerdict  # what became of it


def hold_to_witnesses(kernel: KernelReport, tried: Sequence[TriedFix]) -> KernelReport:
    """A kernel whose advice promises only what its edits bear out.

    Advice is withdrawn when every place of it has an edit, and all of them compile to the code that is there; it is then among what would not help.
    Other advice quotes its first edit that changes the code, and has no number where the simulator finds none of them faster.

    Args:
        kernel: as it was advised.
        tried: edits for its advice, in the order they would be offered. Advice without any stays as it is.
    """
    contexts = tuple(replace(one, advice=_hold(one.advice, one.limiter, tried)) for one in kernel.contexts)
    return replace(kernel, advice=_hold(kernel.advice, kernel.limiter, tried), contexts=contexts)


def _hold(advice: KernelAdvice | None, limiter: Limiter | None, tried: Sequence[TriedFix]) -> KernelAdvice | None:
    if advice is None:
        return None
    kept: list[Advice] = []
    silences = list(advice.silences)
    for one in advice.advice:
        mine = [fix for fix in tried if fix.question.advice.optimizer == one.optimizer]
        if _is_without_effect(one, mine):
            silences.append(Silence(optimizer=one.optimizer, stage=SilenceStage.GATED, message=_SAME_CODE))
        else:
            kept.append(_quote(one, [fix.verdict for fix in mine if fix.verdict.state is FixState.CHANGED]))
    if tuple(kept) == advice.advice:
        return advice
    from gpa_lsp.diagnosis.advice.advise import decide  # it imports every optimizer

    kept.sort(key=lambda one: one.speedup.doubt == _NO_FASTER)
    silences.sort(key=lambda one: one.optimizer)
    return decide(replace(advice, advice=tuple(kept), silences=tuple(silences)), limiter)


def _is_without_effect(advice: Advice, tried: Sequence[TriedFix]) -> bool:
    scopes = [fix.question.region.scope for fix in tried if fix.question.region is not None]
    is_whole = bool(tried) and all(region.scope in scopes for region in advice.regions)
    return is_whole and all(fix.verdict.state is FixState.SAME for fix in tried)


def _quote(advice: Advice, changed: Sequence[FixVerdict]) -> Advice:
    if not changed:
        return advice
    words, gain = changed[0].words, changed[0].simulated_speedup
    witness = say("compiled: {words}", words=words)
    if gain is not None:  # first: a narrow terminal cuts the rest
        witness = say("simulated {gain}, compiled: {words}", gain=factor(gain), words=words)
    found = replace(advice, witness=witness)
    simulated = [one.simulated_speedup for one in changed if one.simulated_speedup is not None]
    if len(simulated) < len(changed) or max(simulated) >= LEAST_SPEEDUP:
        return found
    return replace(found, speedup=replace(advice.speedup, estimate=max(simulated), doubt=_NO_FASTER))
