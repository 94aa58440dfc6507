"""Where does the kernel stand under its machine's ceilings, and what moves it?"""

from gpa_lsp.analyses.answers import Answer, Missing
from gpa_lsp.analyses.facts import KernelFacts
from gpa_lsp.analyses.questions import Analysis
from gpa_lsp.analyses.roofline.findings import describe_place, list_findings
from gpa_lsp.analyses.roofline.fusion import find_unfused
from gpa_lsp.analyses.roofline.tables import list_bars, list_tables
from gpa_lsp.analyses.roofline.unknown import TIME
from gpa_lsp.basis.prose import Sentence, say

_NAME = "roofline"
_TITLE = "Distance to the ceilings"


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
        summary=describe_place(whole),
        findings=(
            *list_findings(whole, kernel_roofline.machine),
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


ANALYSIS = Analysis(name=_NAME, order=10, answer=_answer)
