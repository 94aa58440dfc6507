"""A grid that fills only a small part of the GPU: more parallel work, not another shape of it."""

import math

from gpa_lsp.diagnosis.advice.estimators import estimate_idle, estimate_parallel
from gpa_lsp.diagnosis.advice.matches import IdleMatch
from gpa_lsp.diagnosis.advice.model import Category, Silence, SilenceStage
from gpa_lsp.diagnosis.advice.optimizers import NO_ARCHITECTURE, NO_GRID, NO_STATES, IdleOptimizer
from gpa_lsp.diagnosis.advice.reliefs import OccupancyUse, Relief, Reliefs
from gpa_lsp.diagnosis.advice.residency import (
    describe_block,
    measure_active_part,
    measure_issue_ratio,
    measure_longest_part,
    name_whole,
)
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import NOTHING, count, factor, number, percent, say
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.occupancy import find_occupancy
from gpa_lsp.profile.launch_configuration import LaunchConfiguration

_LANES = 32

SMALL_WAVE = 0.5  # A grid of less than this part of the blocks that fit at once leaves room for twice as many


class SmallGrid(IdleOptimizer):
    """Schedulers without warps, or with few, because the whole grid has few.

    The estimate is of the next step, twice as many blocks with half the work each; the bound is the whole GPU. With fewer blocks than SMs, whose
    blocks are too small to be split, the step halves the time in which an SM is busy (less where the SMs do not suffice for twice as many), and
    the bound is the work spread evenly over all SMs: (SMs − blocks) / SMs of that time. With a block for every SM, but room for more than twice
    as many, schedulers issue more often by Equations 7 to 9. Whether the work divides no profile says, so the interval starts at nothing.

    Source: Nsight Compute's launch configuration rule for the first; GPA Equations 7 to 9 for the second.
    """

    name = "small_grid"
    title = "Fill the whole GPU"
    category = Category.PARALLEL
    group = "parallelism"
    reliefs = Reliefs(relieves=frozenset({Relief.PARALLELISM}), occupancy=OccupancyUse.FULL_GRID)
    needs_samples = False
    needs_grid = True

    def match(self, subject: Subject) -> IdleMatch | Silence:
        """Compare the grid with what the GPU holds."""
        launch, architecture = subject.launch, subject.kernel.architecture
        if launch is None or subject.sm_count is None or launch.blocks < 1:
            return self.silent(SilenceStage.NO_METRICS, NO_GRID)
        if architecture is None:
            return self.silent(SilenceStage.NO_CODE, NO_ARCHITECTURE)
        if launch.blocks >= subject.sm_count:
            return self._match_part_of_a_wave(subject, architecture, launch, subject.sm_count)
        if launch.warps_per_block > architecture.sm.sub_partitions_per_sm.value:
            warps = count(launch.warps_per_block, "warp")
            return self.unmatched(say("blocks of {warps} can be split, which needs no other work", warps=warps))
        return _spread_over_sms(subject, launch, subject.sm_count)

    def _match_part_of_a_wave(
        self, subject: Subject, architecture: Architecture, launch: LaunchConfiguration, sm_count: int
    ) -> IdleMatch | Silence:
        block = describe_block(subject)
        if block is None:
            return self.silent(
                SilenceStage.NO_METRICS, say("the profile lacks the launch's registers or shared memory")
            )
        fitting = find_occupancy(architecture, block).warps_per_sm
        there = launch.blocks * launch.warps_per_block
        part = there / (fitting * sm_count) if fitting else 1.0
        if part >= SMALL_WAVE:
            sms = count(sm_count, "SM")
            if part >= 1:
                return self.unmatched(say("the grid fills {sms}", sms=sms))
            return self.unmatched(say("the grid is {part} of what fits on {sms}", part=percent(part), sms=sms))
        warps = there / sm_count / architecture.sm.sub_partitions_per_sm.value
        busy = measure_active_part(subject)
        ratio = measure_issue_ratio(subject)
        if not ratio and not subject.total_samples:
            return self.silent(SilenceStage.NOT_KNOWN, NO_STATES)
        twice = _save(busy, ratio, warps, 2 * warps)
        full = _save(busy, ratio, warps, warps / part)
        return IdleMatch(
            scope=subject.scopes.scopes[0],
            saved_ratio=_choose_middle(twice, full),
            saved_ratio_low=0.0,
            saved_ratio_high=full,
            bound=estimate_idle(full),
            bound_reason=say(
                "each of {sms} holds {warps} of this kernel", sms=count(sm_count, "SM"), warps=count(fitting, "warp")
            ),
            hint=say(
                "Let each thread do less or split the problem along another dimension: {blocks} of {threads} are {part} of the warps that fit on "
                "{sms} at once. With twice as many threads that do half as much, schedulers find a ready warp more often.",
                blocks=count(launch.blocks, "block"),
                threads=count(launch.threads_per_block, "thread"),
                part=percent(part),
                sms=count(sm_count, "SM"),
            ),
            caveats=(
                say("Assumes that the work of a thread can be divided; partial results may have to be combined."),
            ),
            reasons=(
                say(
                    "{warps} per scheduler on average, {most} fit; {issued} of the {whole} issue",
                    warps=number(warps, "warp"),
                    most=number(warps / part),
                    issued=percent(ratio),
                    whole=name_whole(subject),
                ),
                say("SMs are active for {busy} of the run", busy=percent(busy)),
            ),
        )


def _spread_over_sms(subject: Subject, launch: LaunchConfiguration, sm_count: int) -> IdleMatch:
    busy = measure_longest_part(subject)
    part = 1.0 if busy is None else busy
    new_blocks = min(2 * launch.blocks, sm_count)
    saved = (1 - launch.blocks / new_blocks) * part
    most = (1 - launch.blocks / sm_count) * part
    threads, sms, idle = launch.threads_per_block, count(sm_count, "SM"), count(sm_count - launch.blocks)
    bound_reason = say(
        "{sms} do at most {ratio} the work of {blocks}",
        sms=sms,
        ratio=factor(sm_count / launch.blocks),
        blocks=count(launch.blocks),
    )
    remedy = say(
        "Let each thread do less or split the problem along another dimension (a split sum, several rows at once)"
    )
    if threads < _LANES:
        bound_reason = say("{bound} with blocks of this size; whole warps would gain more", bound=bound_reason)
        remedy = say(
            "Divide the work among the threads of whole warps ({used} of {lanes} lanes in use), and those among blocks",
            used=count(threads),
            lanes=count(_LANES),
        )
    return IdleMatch(
        scope=subject.scopes.scopes[0],
        saved_ratio=_choose_middle(saved, most),
        saved_ratio_low=0.0,
        saved_ratio_high=most,
        bound=estimate_idle(most),
        bound_reason=bound_reason,
        hint=say(
            "{how}, until there are at least {enough}: with {blocks} of {threads}, {idle} of {sms} are idle.",
            blocks=count(launch.blocks, "block"),
            threads=count(threads, "thread"),
            idle=idle,
            sms=sms,
            how=remedy,
            enough=count(sm_count, "block"),
        ),
        caveats=(say("Assumes that the work of a block can be divided; partial results may have to be combined."),),
        reasons=(
            say(
                "{idle} of {sms} have no block{when}",
                idle=idle,
                sms=sms,
                when=NOTHING
                if busy is None
                else say(", for the {part} of the run in which the busiest SM works", part=percent(busy)),
            ),
        ),
    )


def _choose_middle(next_step: float, most: float) -> float:
    """What is expected: half of the way, on a logarithmic scale, to the whole GPU, and no less than the next step."""
    return max(next_step, 1 - math.sqrt(1 - min(most, 0.999)))


def _save(busy: float, issue_ratio: float, warps: float, new_warps: float) -> float:
    """The part of the run that goes when schedulers have other numbers of warps while their SM is active."""
    gained = estimate_parallel(issue_ratio=issue_ratio, warps=warps, new_warps=new_warps, scales_warps=False)
    return busy * (1 - 1 / gained)


OPTIMIZER = SmallGrid()
