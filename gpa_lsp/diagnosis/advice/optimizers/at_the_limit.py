"""Kernels that are about as fast as the GPU lets them be."""

from gpa_lsp.diagnosis.advice.loop_work import measure_reuse
from gpa_lsp.diagnosis.advice.matches import Remark
from gpa_lsp.diagnosis.advice.model import AT_THE_LIMIT, SMALL_SPEEDUP
from gpa_lsp.diagnosis.advice.optimizers import Found, Optimizer
from gpa_lsp.diagnosis.analyses.limiter import find_limiter
from gpa_lsp.diagnosis.analyses.model import Confidence, LimiterKind
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import begin_lower, percent, say

# Bytes from L1 to registers over those from L2: from here on threads read the same data, not only the ends of each other's sectors (5/4)
_READ_AGAIN = 1.5

_MEMORY = frozenset({"dram", "l2"})  # units whose work is traffic


def match(subject: Subject) -> Found:
    """The unit that limits the kernel runs at what it sustains, with next to nothing to gain: only less work for it makes the kernel faster."""
    limiter = find_limiter(subject)
    first = limiter.find(limiter.unit)
    if limiter.kind is not LimiterKind.UNIT or limiter.confidence is not Confidence.SURE or first is None:
        return say("no unit runs at what it sustains")
    if first.headroom >= SMALL_SPEEDUP:
        return say("{label} is {busy} busy", label=first.label, busy=percent(first.busy_ratio))
    if first.unit == "dram" and (measure_reuse(subject) or 1.0) >= _READ_AGAIN:
        return say("threads read the same data, and what DRAM sends of it again could go")
    most = max(1.0, 1 / first.busy_ratio)
    return Remark(
        high=most,
        bound=most,
        bound_reason=say("{label} at its peak", label=first.label),
        hint=say(
            "{label}, at {busy} of peak, is near its practical maximum; only less {work} will help.",
            label=first.label,
            busy=percent(first.busy_ratio),
            work=f"{first.label} traffic" if first.unit in _MEMORY else f"work for {begin_lower(first.label)}",
        ),
    )


OPTIMIZER = Optimizer(
    name=AT_THE_LIMIT,
    title="At the limit",
    group="limit",
    needs_samples=False,
    needs_code=False,
    find=match,
)
