"""A last wave of blocks that fills only part of the GPU."""

import math

from gpa_lsp.diagnosis.advice.launch_time import measure_launch_time
from gpa_lsp.diagnosis.advice.matches import IdleMatch
from gpa_lsp.diagnosis.advice.model import Category, SilenceStage
from gpa_lsp.diagnosis.advice.optimizers import Found, NotApplicable, Optimizer
from gpa_lsp.diagnosis.advice.residency import WAVES, count_waves, measure_occupancy_gap, measure_sm_idleness
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import Code, Sentence, count, number, percent, say

LEAST_TAIL = 0.2  # Fewer whole waves than this leaves a last one that matters: 1 / (whole waves + 1)

# Where more than 1 − this of the possible warps were resident on average, the last wave was hidden by the others
LEAST_GAP = 0.2

# The last wave counts as the cause of the SMs' idle time when it alone would give at least this part of it
EXPLAINED_PART = 0.5


def match(subject: Subject) -> Found:
    """Blocks run in waves of as many as fit; a started wave takes about as long as a full one.

    With n whole waves and a part r of another, (1 − r) / (n + 1) of the time would go. Approximation: all blocks take equally long and start
    together. Real blocks drift apart, and then early ones of the last wave fill the gaps; so where the profile measures how long each SM was
    active, the idle time it shows is the estimate, and the waves are only the upper end.

    Source: Nsight Compute's launch configuration rule, whose 1 / (n + 1) is the same for r → 0.
    """
    waves = count_waves(subject)
    launch = subject.launch
    if launch is None or subject.sm_count is None or waves is None:
        return NotApplicable(SilenceStage.NO_METRICS, say("the profile lacks {metric}", metric=Code(text=WAVES)))
    whole = math.floor(waves)
    rest = waves - whole
    if whole < 1:
        return say("all blocks run at once: they are {part} of a wave", part=percent(waves))
    if rest == 0:
        return say("the blocks are {waves}", waves=count(whole, "whole wave"))
    if 1 / (whole + 1) < LEAST_TAIL:
        return say("one wave of {waves} is too small a part to matter", waves=count(whole + 1))
    gap = _measure_missing(subject)
    if gap is not None and gap < LEAST_GAP:
        return say(
            "{resident} of the warps that fit were resident on average: the last wave overlapped the others",
            resident=percent(1 - gap),
        )
    by_waves = (1 - rest) / (whole + 1)
    most = by_waves if gap is None else min(by_waves, gap)
    measured = measure_sm_idleness(subject)
    if measured is not None and by_waves < EXPLAINED_PART * measured:
        return say(
            "SMs were idle for {idle} of the longest one's time, of which a last wave explains {part}",
            idle=percent(measured),
            part=percent(by_waves / measured),
        )
    saved = most if measured is None else min(most, measured)
    wave_blocks = max(1, round(launch.blocks / waves))
    wave = count(wave_blocks, "block")
    return IdleMatch(
        saved_ratio=1 - measure_launch_time(subject).leave(spread=1 / (1 - saved)),  # what DRAM and L2 have to do stays
        bound=1 / (1 - most),
        bound_reason=say(
            "{waves} of work take the time of {whole}", waves=number(waves, "wave"), whole=count(whole + 1)
        ),
        hint=say(
            "{blocks} are {full} of {wave_blocks} and a last one of {rest}. Launch a multiple of {wave}, smaller blocks, or {wave} with a "
            "grid-stride loop.",
            blocks=count(launch.blocks, "block"),
            full=count(whole, "full wave"),
            wave_blocks=count(wave_blocks),
            rest=count(launch.blocks - whole * wave_blocks),
            wave=wave,
        ),
        caveats=(say("The size of a wave differs between GPUs."),),
        reasons=_explain(by_waves, gap, measured),
    )


def _measure_missing(subject: Subject) -> float | None:
    """The part of the warps that could have been resident over the time of the longest SM, and were not; None when not collected.

    The profiler counts resident warps only in cycles in which their SM has any, so what SMs are idle comes on top.
    """
    gap, idle = measure_occupancy_gap(subject), measure_sm_idleness(subject)
    return gap if gap is None or idle is None else 1 - (1 - gap) * (1 - idle)


def _explain(by_waves: float, gap: float | None, measured: float | None) -> tuple[Sentence, ...]:
    reasons = [say("by waves of equally long blocks, {saved} of the time", saved=percent(by_waves))]
    if gap is not None:
        reasons.append(say("{missing} of the warps that fit were missing on average", missing=percent(gap)))
    if measured is not None:
        reasons.append(
            say("SMs were idle for {idle} of the longest one's time, which is the estimate", idle=percent(measured))
        )
    return tuple(reasons)


OPTIMIZER = Optimizer(
    name="tail_effect",
    title="Avoid a partial last wave",
    category=Category.PARALLEL,
    group="idle",
    is_outside=True,
    needs_samples=False,
    needs_grid=True,
    needs_code=False,
    find=match,
)
