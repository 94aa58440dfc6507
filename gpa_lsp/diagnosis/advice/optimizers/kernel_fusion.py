"""Launches that are over before they have begun."""

from gpa_lsp.diagnosis.advice.matches import IdleMatch
from gpa_lsp.diagnosis.advice.model import Category
from gpa_lsp.diagnosis.advice.optimizers import Found, Optimizer
from gpa_lsp.diagnosis.analyses.limiter import SHORT_LAUNCH_NS
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import duration, percent, say

_LEAST_IDLE = 0.2


def match(subject: Subject) -> Found:
    """A launch of some microseconds spends much of them at its ends; work that runs in one launch with its neighbours' spends them once.

    Matched: launches shorter than 10 µs whose SMs have no work for at least a fifth of the time, before the first and after the last block. What
    would go are those ends.
    """
    time_ns = subject.metric("gpu__time_duration.sum") or 0.0
    if time_ns >= SHORT_LAUNCH_NS:
        return say("a launch takes {time}", time=duration(time_ns))
    busiest = subject.metric("sm__cycles_active.max")
    active = busiest or subject.metric("sm__cycles_active.avg") or 0.0
    elapsed = subject.elapsed_cycles
    ends = max(0.0, 1 - active / elapsed) if elapsed else 0.0
    which = "busiest" if busiest else "average"
    works = say("the {which} SM works for {part} of the launch", which=which, part=percent(1 - ends))
    if ends < _LEAST_IDLE:
        return works
    return IdleMatch(
        saved_ratio=ends / 2,
        bound=1 / (1 - ends),
        bound_reason=works,
        hint=say(
            "Do this in one launch with the kernel before or after it, or let one launch do several steps; where that cannot be, a CUDA graph "
            "shortens what lies between."
        ),
        caveats=(
            say("Kernels of which one needs all blocks of the other can only be fused with a grid-wide barrier."),
        ),
        reasons=(
            say(
                "a launch takes {time}; the {which} SM is idle for {ends} of it",
                time=duration(time_ns),
                which=which,
                ends=percent(ends),
            ),
        ),
    )


OPTIMIZER = Optimizer(
    name="kernel_fusion",
    title="Fuse short launches",
    category=Category.PARALLEL,
    group="launches",
    is_outside=True,
    needs_samples=False,
    needs_metrics=("gpu__time_duration.sum", "sm__cycles_active.avg"),
    needs_code=False,
    find=match,
)
