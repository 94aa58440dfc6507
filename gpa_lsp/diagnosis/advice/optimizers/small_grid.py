"""A grid that fills only a small part of the GPU: more parallel work, not another shape of it."""

from gpa_lsp.diagnosis.advice.estimators import estimate_idle, estimate_parallel
from gpa_lsp.diagnosis.advice.launch_time import measure_launch_time
from gpa_lsp.diagnosis.advice.matches import IdleMatch
from gpa_lsp.diagnosis.advice.model import Category, SilenceStage
from gpa_lsp.diagnosis.advice.optimizers import NO_ARCHITECTURE, NO_GRID, NO_STATES, Found, NotApplicable, Optimizer
from gpa_lsp.diagnosis.advice.residency import (
    describe_block,
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


def match(subject: Subject) -> Found:
    """Schedulers without warps, or with few, because the whole grid has few.

    The estimate is of the whole GPU: SMs without a block join in, and with as many warps as an SM holds schedulers issue more often by Equations 7
    to 9. Where it is not known how many fit, or a block is less than a warp, the work is spread evenly over all SMs in blocks of the same size.
    Whether the work divides no profile says.

    Source: Nsight Compute's launch configuration rule for the first; GPA Equations 7 to 9 for the second.
    """
    launch, architecture = subject.launch, subject.kernel.architecture
    if launch is None or subject.sm_count is None or launch.blocks < 1:
        return NotApplicable(SilenceStage.NO_METRICS, NO_GRID)
    if architecture is None:
        return NotApplicable(SilenceStage.NO_CODE, NO_ARCHITECTURE)
    is_few, is_known = launch.blocks < subject.sm_count, describe_block(subject) is not None
    if is_few and not is_known and launch.warps_per_block > architecture.sm.sub_partitions_per_sm.value:
        warps = count(launch.warps_per_block, "warp")
        return say("blocks of {warps} can be split, which needs no other work", warps=warps)
    if is_few and (launch.threads_per_block < _LANES or not is_known):
        return _spread_over_sms(subject, launch, subject.sm_count)
    return _match_part_of_a_wave(subject, architecture, launch, subject.sm_count)


def _match_part_of_a_wave(
    subject: Subject, architecture: Architecture, launch: LaunchConfiguration, sm_count: int
) -> Found:
    block = describe_block(subject)
    if block is None:
        return NotApplicable(SilenceStage.NO_METRICS, say("the profile lacks the launch's registers or shared memory"))
    fitting = find_occupancy(architecture, block).warps_per_sm
    there = launch.blocks * launch.warps_per_block
    part = there / (fitting * sm_count) if fitting else 1.0
    if part >= SMALL_WAVE:
        sms = count(sm_count, "SM")
        if part >= 1:
            return say("the grid fills {sms}", sms=sms)
        return say("the grid is {part} of what fits on {sms}", part=percent(part), sms=sms)
    used = min(launch.blocks, sm_count)
    schedulers = architecture.sm.sub_partitions_per_sm.value
    warps = there / used / schedulers  # of an SM that has any
    ratio = measure_issue_ratio(subject)
    if not ratio and not subject.total_samples:
        return NotApplicable(SilenceStage.NOT_KNOWN, NO_STATES)
    # As many warps on every SM as fit: SMs without a block join in, and schedulers issue more often.
    often = estimate_parallel(issue_ratio=ratio, warps=warps, new_warps=fitting / schedulers, scales_warps=False)
    time = measure_launch_time(subject)
    full = 1 - time.leave(warp_time=1 / often, spread=sm_count / used)
    return IdleMatch(
        saved_ratio=full,
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
        caveats=(say("Assumes that the work of a thread can be divided; partial results may have to be combined."),),
        reasons=(
            say(
                "{warps} per scheduler on average, {most} fit; {issued} of the {whole} issue",
                warps=number(warps, "warp"),
                most=number(fitting / schedulers),
                issued=percent(ratio),
                whole=name_whole(subject),
            ),
            say("SMs are active for {busy} of the run", busy=percent(1 - time.ends_ratio)),
        ),
    )


def _spread_over_sms(subject: Subject, launch: LaunchConfiguration, sm_count: int) -> IdleMatch:
    busy = measure_longest_part(subject)
    part = 1.0 if busy is None else busy
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
        saved_ratio=most,
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


OPTIMIZER = Optimizer(
    name="small_grid",
    title="Fill the whole GPU",
    category=Category.PARALLEL,
    group="parallelism",
    needs_samples=False,
    needs_grid=True,
    needs_code=False,
    find=match,
)
