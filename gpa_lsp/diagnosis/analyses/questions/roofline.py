"""Where does the kernel stand under its machine's ceilings, and what moves it?"""

from collections.abc import Iterator

from gpa_lsp.diagnosis.analyses.answers import Answer, Finding, Missing
from gpa_lsp.diagnosis.analyses.facts import KernelFacts
from gpa_lsp.diagnosis.analyses.limiter.find import find_limiter
from gpa_lsp.diagnosis.analyses.limiter.model import LimiterKind
from gpa_lsp.diagnosis.analyses.questions import Analysis
from gpa_lsp.diagnosis.analyses.roofline.findings import describe_place, list_findings
from gpa_lsp.diagnosis.analyses.roofline.operations import COUNTED
from gpa_lsp.diagnosis.analyses.roofline.tables import list_bars, list_tables
from gpa_lsp.diagnosis.analyses.roofline.totals import read_span, read_total
from gpa_lsp.diagnosis.analyses.roofline.unknown import TIME
from gpa_lsp.diagnosis.analyses.roofline_model import Roofline
from gpa_lsp.foundation.prose import NOTHING, Code, Sentence, join, percent, say
from gpa_lsp.profile.model import Launch

_NAME = "roofline"
_TITLE = "Distance to the ceilings"
USED_RATIO = 0.1  # Below this share of its peak a type's mix does not matter

LOW_FUSED_RATIO = 0.8  # From this part of the peak on, the mix is good enough


# Between the limiter of the heaviest launch context and where the kernel as a whole stands
_TOGETHER = say("All launches together:")


def _answer(facts: KernelFacts) -> Answer:
    kernel_roofline = facts.roofline
    if kernel_roofline is None or kernel_roofline.whole is None:
        return Answer(
            analysis=_NAME,
            title=_TITLE,
            summary=_explain_nothing(facts),
            missing=(_find_lacking(facts),),
            is_known=False,
        )
    whole = kernel_roofline.whole
    return Answer(
        analysis=_NAME,
        title=_TITLE,
        summary=join(
            [find_limiter(facts).verdict, _TOGETHER if facts.main is not None else NOTHING, describe_place(whole)]
        ),
        findings=(
            *list_findings(whole, kernel_roofline.machine, is_latency=find_limiter(facts).kind is LimiterKind.LATENCY),
            *(() if facts.longest is None else find_unfused(facts.longest, whole)),
        ),
        bars=list_bars(whole),
        tables=list_tables(kernel_roofline, whole),
        missing=whole.missing,
        is_known=bool(whole.roofs or whole.points),
    )


def _explain_nothing(facts: KernelFacts) -> Sentence:
    if not facts.kernel.launches:
        return say("The kernel was not measured.")
    if facts.longest is None:
        return say("The profiler failed on every launch.")
    return say("Unknown: {what}.", what=_find_lacking(facts).what)


def _find_lacking(facts: KernelFacts) -> Missing:
    longest = facts.longest
    if longest is None:
        return Missing(what="the distance to the ceilings", why=say("no launch has numbers"))
    if not longest.read_number("gpu__time_duration.sum"):
        return TIME
    return Missing(what="the ceilings of the GPU", why=say("neither counters nor tables give them"))


def find_unfused(launch: Launch, roofline: Roofline) -> Iterator[Finding]:
    """Types a kernel leans on whose instructions are seldom multiply-adds.

    An instruction that is no multiply-add does half of what its slot could: a share f of multiply-adds reaches (1 + f) / 2 of the peak.
    """
    span = read_span(launch)
    if span is None:
        return
    for roof in roofline.roofs:
        if roof.kind not in COUNTED or roof.share_ratio < USED_RATIO:
            continue
        counts = [read_total(launch, span, counters) for counters, _ in COUNTED[roof.kind]]
        add, multiply, fused = counts
        if add is None or multiply is None or fused is None:
            continue
        every = add.value + multiply.value + fused.value
        reachable = (every + fused.value) / (2 * every) if every else 1.0
        if reachable < LOW_FUSED_RATIO:
            yield Finding(
                text=say(
                    "{kind}: {fused} of the additions, multiplications and multiply-adds are multiply-adds, so at most {most} of the peak is "
                    "reachable.",
                    kind=roof.kind,
                    fused=percent(fused.value / every),
                    most=percent(reachable),
                ),
                remedy=say(
                    "Let the compiler fuse ({expression} in one expression, {option}), or regroup the arithmetic: fewer instructions do the same "
                    "work, and the point rises.",
                    expression=Code(text="a * b + c"),
                    option=Code(text="-fmad=true"),
                ),
            )


ANALYSIS = Analysis(name=_NAME, order=10, answer=_answer)
