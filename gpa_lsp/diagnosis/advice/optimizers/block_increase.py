"""Fewer blocks than SMs: the same threads in more, smaller blocks."""

from collections.abc import Iterator

from msgspec import Struct

from gpa_lsp.diagnosis.advice.estimators import estimate_parallel, scale_contention
from gpa_lsp.diagnosis.advice.matches import ParallelMatch
from gpa_lsp.diagnosis.advice.model import Category, SilenceStage
from gpa_lsp.diagnosis.advice.optimizers import NO_ARCHITECTURE, NO_GRID, Found, NotApplicable, Optimizer
from gpa_lsp.diagnosis.advice.residency import measure_contention, measure_issue_ratio, name_whole
from gpa_lsp.diagnosis.analyses.occupancy import measure_resident_warps
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import count, number, percent, say
from gpa_lsp.profile.launch_configuration import LaunchConfiguration

_SAME = 1e-9  # Gains closer than this are equal, and the smaller change is preferred


class _Split(Struct, frozen=True, kw_only=True):
    """Each block cut into parts."""

    parts: int  # of one block
    new_warps: float  # W_new
    factor: float  # f
    bound: float  # largest speedup: the busiest SM has that much less to do
    speedup: float  # Equation 10, at most the bound


def match(subject: Subject) -> Found:
    """SMs without a block have nothing to do while warps of the others wait for each other.

    Splitting pays as far as warps contend: for issue slots, pipes and memory queues. Equation 10 with 1 / C_W; its factor f assumes that the
    contention vanishes, here in proportion to the warps that leave (:func:`~gpa_lsp.diagnosis.advice.estimators.scale_contention`). Never more than
    what the busiest SM has less to do, which is at most SMs / blocks.

    Source: GPA section V-A (Block Increase) and Equations 6 to 10.
    """
    launch, architecture = subject.launch, subject.kernel.architecture
    if launch is None or subject.sm_count is None or launch.blocks < 1:
        return NotApplicable(SilenceStage.NO_METRICS, NO_GRID)
    if architecture is None:
        return NotApplicable(SilenceStage.NO_CODE, NO_ARCHITECTURE)
    if launch.blocks >= subject.sm_count:
        blocks, sms = count(launch.blocks, "block"), count(subject.sm_count, "SM")
        return say("the grid of {blocks} reaches all {sms}", blocks=blocks, sms=sms)
    schedulers = architecture.sm.sub_partitions_per_sm.value
    warps = measure_resident_warps(subject, architecture) or launch.warps_per_block / schedulers
    if launch.warps_per_block <= schedulers or warps <= 1:
        return say(
            "a block of {warps} gives each scheduler at most one; smaller blocks would leave some idle",
            warps=count(launch.warps_per_block, "warp"),
        )
    splits = list(_list_splits(subject, launch, subject.sm_count, warps))
    best = max(splits, key=lambda split: split.speedup, default=None)
    if best is None or best.speedup <= 1:
        blocks, sms = count(launch.blocks, "block"), count(subject.sm_count, "SM")
        return say("no split of {blocks} gives the busiest of {sms} less work", blocks=blocks, sms=sms)
    smallest = next(split for split in splits if split.speedup >= best.speedup - _SAME)
    return _describe(subject, launch, subject.sm_count, warps, smallest)


def _list_splits(subject: Subject, launch: LaunchConfiguration, sm_count: int, warps: float) -> Iterator[_Split]:
    """Every way to cut a block into equal numbers of warps, fewest parts first."""
    ratio, contention = measure_issue_ratio(subject), measure_contention(subject)
    for parts in range(2, launch.warps_per_block + 1):
        if launch.warps_per_block % parts:
            continue
        # The parts of a block go to several SMs as long as there are SMs; the busiest one holds this many.
        held = -(-launch.blocks * parts // sm_count)
        if held >= parts:
            continue
        new_warps = max(1.0, warps * held / parts)
        factor = scale_contention(contention, warps, new_warps)
        gained = estimate_parallel(
            issue_ratio=ratio, warps=warps, new_warps=new_warps, scales_warps=True, factor=factor
        )
        bound = parts / held
        yield _Split(parts=parts, new_warps=new_warps, factor=factor, bound=bound, speedup=min(gained, bound))
        if warps * held <= parts:
            # Each scheduler is down to one warp; smaller parts would leave some without.
            return


def _describe(
    subject: Subject, launch: LaunchConfiguration, sm_count: int, warps: float, split: _Split
) -> ParallelMatch:
    blocks = launch.blocks * split.parts
    threads = -(-launch.threads_per_block // split.parts)
    caveats = [say("Threads that exchange data within a block must end up in the same smaller block.")]
    if (launch.shared_static_bytes or 0) + (launch.shared_dynamic_bytes or 0):
        caveats.append(say("Each smaller block needs its own shared memory."))
    sms = count(sm_count, "SM")
    return ParallelMatch(
        warps_per_scheduler=warps,
        new_warps_per_scheduler=split.new_warps,
        issue_ratio=measure_issue_ratio(subject),
        scales_warps=True,
        factor=split.factor,
        bound=split.bound,
        bound_reason=say(
            "the busiest of {sms} keeps at least {share} of its work", sms=sms, share=percent(1 / split.bound)
        ),
        hint=say(
            "With {old_blocks} of {old_threads}, {idle} of {sms} are idle. Launch {blocks} of {threads}: each scheduler then has {new_warps} "
            "instead of {old_warps}.",
            old_blocks=count(launch.blocks, "block"),
            old_threads=count(launch.threads_per_block, "thread"),
            idle=count(sm_count - launch.blocks),
            sms=sms,
            blocks=count(blocks, "block"),
            threads=count(threads, "thread"),
            new_warps=number(split.new_warps, "warp"),
            old_warps=number(warps),
        ),
        caveats=tuple(caveats),
        reasons=(
            say(
                "f = {f}: {contention} of the {whole} are stalled on other warps of the SM, of which those that leave count",
                f=number(split.factor),
                contention=percent(measure_contention(subject)),
                whole=name_whole(subject),
            ),
            say("warps are assumed to be independent"),
        ),
    )


OPTIMIZER = Optimizer(
    name="block_increase",
    title="Launch more, smaller blocks",
    category=Category.PARALLEL,
    group="parallelism",
    needs_samples=False,
    needs_grid=True,
    needs_states=True,
    needs_code=False,
    find=match,
)
