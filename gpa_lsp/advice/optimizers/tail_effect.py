"""A last wave of blocks that fills only part of the GPU."""

import math
from typing import ClassVar

from gpa_lsp.advice.matches import IdleMatch
from gpa_lsp.advice.model import Category, Silence, SilenceStage
from gpa_lsp.advice.optimizers import IdleOptimizer
from gpa_lsp.advice.residency import count_waves, measure_occupancy_gap, measure_sm_idleness, say_count
from gpa_lsp.advice.subject import Subject

LEAST_TAIL = 0.2
"""Fewer whole waves than this leaves a last one that matters: 1 / (whole waves + 1)."""

LEAST_GAP = 0.2
"""Where more than 1 − this of the possible warps were resident on average, the last wave was hidden by the others."""


class TailEffect(IdleOptimizer):
    """Blocks run in waves of as many as fit; a started wave takes about as long as a full one.

    With n whole waves and a part r of another, (1 − r) / (n + 1) of the time would go. Approximation: all blocks take equally long and start
    together. Real blocks drift apart, and then early ones of the last wave fill the gaps; so where the profile measures how long each SM was
    active, the idle time it shows is the estimate, and the waves are only the upper end.

    Source: Nsight Compute's launch configuration rule, whose 1 / (n + 1) is the same for r → 0.
    """

    name: ClassVar[str] = "tail_effect"
    title: ClassVar[str] = "Whole waves of blocks"
    category: ClassVar[Category] = Category.PARALLEL
    group: ClassVar[str] = "idle"
    needs_grid: ClassVar[bool] = True

    def match(self, subject: Subject) -> IdleMatch | Silence:
        """Look at the part of a wave that is left over."""
        waves = count_waves(subject)
        launch = subject.launch
        if launch is None or launch.sm_count is None or waves is None:
            return self.silent(SilenceStage.NO_METRICS, "the profile lacks launch__waves_per_multiprocessor")
        whole = math.floor(waves)
        rest = waves - whole
        if whole < 1:
            return self.silent(SilenceStage.NOT_MATCHED, f"all blocks run at once: they are {waves:.2g} of a wave")
        if rest == 0:
            return self.silent(SilenceStage.NOT_MATCHED, f"the blocks are {say_count(whole, 'whole wave')}")
        if 1 / (whole + 1) < LEAST_TAIL:
            message = f"one wave of {whole + 1} is too small a part to matter"
            return self.silent(SilenceStage.NOT_MATCHED, message)
        gap = _measure_missing(subject)
        if gap is not None and gap < LEAST_GAP:
            message = f"{100 * (1 - gap):.0f} % of the warps that fit were resident on average: the last wave ran beside the others"
            return self.silent(SilenceStage.NOT_MATCHED, message)
        by_waves = (1 - rest) / (whole + 1)
        most = by_waves if gap is None else min(by_waves, gap)
        measured = measure_sm_idleness(subject)
        saved = most if measured is None else min(most, measured)
        wave_blocks = max(1, round(launch.blocks / waves))
        return IdleMatch(
            scope=subject.scopes.scopes[0],
            saved_ratio=saved,
            saved_ratio_low=0.0 if measured is None else saved,
            saved_ratio_high=most,
            bound=1 / (1 - most),
            bound_reason=f"{waves:.3g} waves of work take the time of {whole + 1}",
            hint=(
                f"{launch.blocks:,} blocks are {say_count(whole, 'full wave')} of {wave_blocks:,} and a last one of "
                f"{launch.blocks - whole * wave_blocks:,}. Choose a grid that is a multiple of {wave_blocks:,} blocks, smaller blocks, or a loop "
                f"over the work with {wave_blocks:,} blocks that stay."
            ),
            caveats=("the size of a wave differs between GPUs",),
            reasons=_explain(by_waves, gap, measured),
        )


def _measure_missing(subject: Subject) -> float | None:
    """The part of the warps that could have been resident over the time of the longest SM, and were not; None when not collected.

    The profiler counts resident warps only in cycles in which their SM has any, so what SMs are idle comes on top.
    """
    gap, idle = measure_occupancy_gap(subject), measure_sm_idleness(subject)
    return gap if gap is None or idle is None else 1 - (1 - gap) * (1 - idle)


def _explain(by_waves: float, gap: float | None, measured: float | None) -> tuple[str, ...]:
    reasons = [f"by waves of equally long blocks {100 * by_waves:.1f} % of the time"]
    if gap is not None:
        reasons.append(f"{100 * gap:.0f} % of the warps that fit were missing on average")
    if measured is not None:
        reasons.append(
            f"SMs were idle for {100 * measured:.1f} % of the time the longest one worked, which is the estimate"
        )
    return tuple(reasons)


OPTIMIZER = TailEffect()
