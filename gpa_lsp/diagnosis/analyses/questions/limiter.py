"""Question: what limits the kernel? The verdict that everything else quotes, and the utilization of each part of the GPU."""

from gpa_lsp.diagnosis.analyses.answers import Answer, Bar, Missing
from gpa_lsp.diagnosis.analyses.limiter import find_limiter
from gpa_lsp.diagnosis.analyses.questions import Analysis
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import NOTHING, say

_MOST_BARS = 6


def _answer(subject: Subject) -> Answer:
    limiter = find_limiter(subject)
    missing = Missing(what="how busy the units are", metrics=limiter.missing, section="SpeedOfLight")
    return Answer(
        summary=limiter.sentence,
        bars=tuple(
            Bar(
                label=limit.label,
                ratio=min(1.0, limit.busy_ratio),
                ceiling_ratio=limit.sustained_ratio,
                words=say("{by}", by=limit.by) if limit.by else NOTHING,
            )
            for limit in limiter.limits[:_MOST_BARS]
        ),
        missing=(missing,) if limiter.missing else (),
        is_known=not limiter.missing,
    )


ANALYSIS = Analysis(name="limiter", title="What limits it", order=5, answer=_answer)
