"""A grid that fills only a small part of the GPU: more parallel work, not another shape of it."""

import math
from typing import ClassVar

from gpa_lsp.advice.estimators import estimate_idle, estimate_parallel
from gpa_lsp.advice.launch_facts import LaunchFacts
from gpa_lsp.advice.matches import IdleMatch
from gpa_lsp.advice.model import Category, Silence, SilenceStage
from gpa_lsp.advice.optimizers import IdleOptimizer
from gpa_lsp.advice.residency import (
    describe_block,
    measure_active_part,
    measure_issue_ratio,
    measure_longest_part,
    say_count,
)
from gpa_lsp.advice.subject import Subject
from gpa_lsp.arch.model import Architecture
from gpa_lsp.arch.occupancy import find_occupancy

_LANES = 32

SMALL_WAVE = 0.5
"""A grid of less than this part of the blocks that fit at once leaves room for twice as many."""


class SmallGrid(IdleOptimizer):
    """Schedulers without warps, or with few, because the whole grid has few.

    The estimate is of the next step, twice as many blocks with half the work each; the bound is the whole GPU. With fewer blocks than SMs, whose
    blocks are too small to be split, the step halves the time in which an SM is busy (less where the SMs do not suffice for twice as many), and
    the bound is the work spread evenly over all SMs: (SMs − blocks) / SMs of that time. With a block for every SM, but room for more than twice
    as many, schedulers issue more often by Equations 7 to 9. Whether the work divides no profile says, so the interval starts at nothing.

    Source: Nsight Compute's launch configuration rule for the first; GPA Equations 7 to 9 for the second.
    """

    name: ClassVar[str] = "small_grid"
    title: ClassVar[str] = "Work for the whole GPU"
    category: ClassVar[Category] = Category.PARALLEL
    group: ClassVar[str] = "parallelism"
    needs_grid: ClassVar[bool] = True

    def match(self, subject: Subject) -> IdleMatch | Silence:
        """Compare the grid with what the GPU holds."""
        launch, architecture = subject.launch, subject.kernel.architecture
        if launch is None or launch.sm_count is None or launch.blocks < 1:
            return self.silent(SilenceStage.NO_METRICS, "the profile does not say how many blocks and SMs there are")
        if architecture is None:
            return self.silent(SilenceStage.NO_CODE, "there is no table of this architecture")
        if launch.blocks >= launch.sm_count:
            return self._match_part_of_a_wave(subject, architecture, launch, launch.sm_count)
        if launch.warps_per_block > architecture.sm.sub_partitions_per_sm.value:
            message = f"blocks of {launch.warps_per_block} warps can be split, which needs no other work"
            return self.silent(SilenceStage.NOT_MATCHED, message)
        return _spread_over_sms(subject, launch, launch.sm_count)

    def _match_part_of_a_wave(
        self, subject: Subject, architecture: Architecture, launch: LaunchFacts, sm_count: int
    ) -> IdleMatch | Silence:
        block = describe_block(subject)
        if block is None:
            message = "the profile lacks the launch's registers or shared memory"
            return self.silent(SilenceStage.NO_METRICS, message)
        fitting = find_occupancy(architecture, block).warps_per_sm
        there = launch.blocks * launch.warps_per_block
        part = there / (fitting * sm_count) if fitting else 1.0
        if part >= SMALL_WAVE:
            filled = "fills" if part >= 1 else f"is {100 * part:.0f} % of what fits into"
            return self.silent(SilenceStage.NOT_MATCHED, f"the grid {filled} {sm_count} SMs")
        warps = there / sm_count / architecture.sm.sub_partitions_per_sm.value
        busy = measure_active_part(subject)
        ratio = measure_issue_ratio(subject)
        twice = _save(busy, ratio, warps, 2 * warps)
        full = _save(busy, ratio, warps, warps / part)
        return IdleMatch(
            scope=subject.scopes.scopes[0],
            saved_ratio=_choose_middle(twice, full),
            saved_ratio_low=0.0,
            saved_ratio_high=full,
            bound=estimate_idle(full),
            bound_reason=f"{sm_count} SMs hold {fitting} warps of this kernel each",
            hint=(
                f"{say_count(launch.blocks, 'block')} of {say_count(launch.threads_per_block, 'thread')} are {100 * part:.2g} % of the warps "
                f"that fit into {sm_count} SMs at once. Let each thread do less, or cut the problem along another dimension: with twice as many "
                "threads that each do half as much, schedulers find a ready warp more often."
            ),
            caveats=("assumes that the work of a thread can be divided; partial results may have to be put together",),
            reasons=(
                f"{warps:.2g} warps per scheduler on average, {warps / part:.2g} fit; {100 * ratio:.1f} % of the samples issued",
                f"SMs are active for {100 * busy:.0f} % of the run",
            ),
        )


def _spread_over_sms(subject: Subject, launch: LaunchFacts, sm_count: int) -> IdleMatch:
    busy = measure_longest_part(subject)
    part = 1.0 if busy is None else busy
    new_blocks = min(2 * launch.blocks, sm_count)
    saved = (1 - launch.blocks / new_blocks) * part
    most = (1 - launch.blocks / sm_count) * part
    blocks = say_count(launch.blocks, "block")
    threads = launch.threads_per_block
    is_part_of_a_warp = threads < _LANES
    bound_reason = f"{sm_count} SMs do at most {sm_count / launch.blocks:.3g}× the work of {launch.blocks}"
    remedy = "Let each thread do less, or cut the problem along another dimension (a split sum, several rows at once)"
    if is_part_of_a_warp:
        bound_reason += " with blocks as they are; whole warps would gain more"
        remedy = f"Divide the work among the threads of whole warps ({threads} of {_LANES} lanes are used), and those among blocks"
    return IdleMatch(
        scope=subject.scopes.scopes[0],
        saved_ratio=_choose_middle(saved, most),
        saved_ratio_low=0.0,
        saved_ratio_high=most,
        bound=estimate_idle(most),
        bound_reason=bound_reason,
        hint=(
            f"With {blocks} of {say_count(threads, 'thread')}, {sm_count - launch.blocks} of {sm_count} SMs have nothing to do. "
            f"{remedy}, until there are at least {sm_count} blocks; the estimate is for {new_blocks}."
        ),
        caveats=("assumes that the work of a block can be divided; partial results may have to be put together",),
        reasons=(
            f"{sm_count - launch.blocks} of {sm_count} SMs have no block"
            + ("" if busy is None else f", for the {100 * busy:.0f} % of the run in which the busiest SM works"),
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
