"""A grid that fills only a small part of the GPU: more parallel work, not another shape of it."""

from math import inf, log2

import numpy as np
import numpy.typing as npt

from gpa_lsp.diagnosis.advice.estimators import estimate_parallel
from gpa_lsp.diagnosis.advice.launch_time import measure_launch_time
from gpa_lsp.diagnosis.advice.loop_work import count_results
from gpa_lsp.diagnosis.advice.matches import IdleMatch
from gpa_lsp.diagnosis.advice.model import Category, SilenceStage
from gpa_lsp.diagnosis.advice.optimizers import NO_ARCHITECTURE, NO_GRID, NO_STATES, Found, NotApplicable, Optimizer
from gpa_lsp.diagnosis.advice.residency import describe_block, measure_issue_ratio, name_whole
from gpa_lsp.diagnosis.advice.work_left import count_work_left
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import Sentence, count, number, percent, say
from gpa_lsp.gpu.arch.occupancy import find_occupancy
from gpa_lsp.kernel.dataflow.accesses import WARP_THREADS
from gpa_lsp.profile.launch_configuration import LaunchConfiguration

_Turns = npt.NDArray[np.float64]  # float64[n], executions of a warp, at least 1

SMALL_WAVE = 0.5  # A grid of less than this part of the blocks that fit at once leaves room for twice as many

_LEAST_TURNS = 2.0  # Of what a thread repeats: with fewer there is nothing that more threads could share


def match(subject: Subject) -> Found:
    """Schedulers without warps, or with few, because the whole grid has few.

    More threads share what each repeats: an instruction that a warp executes n times can go to n warps, and what it executes once every one of
    them executes. Of the numbers of threads that fit the best is priced: SMs without a block join in, schedulers with more warps issue more often by
    Equations 7 to 9, and units have the work that is done more often. Where it is not known how many warps fit, or a block is less than a warp, the
    work is spread evenly over all SMs in blocks of the same size. Whether turns depend on each other no profile says.

    Source: Nsight Compute's launch configuration rule for the first; GPA Equations 7 to 9 for the second.
    """
    launch, architecture = subject.launch, subject.kernel.architecture
    if launch is None or subject.sm_count is None or launch.blocks < 1:
        return NotApplicable(SilenceStage.NO_METRICS, NO_GRID)
    if architecture is None:
        return NotApplicable(SilenceStage.NO_CODE, NO_ARCHITECTURE)
    turns = _count_turns(subject, launch)
    if turns.max(initial=1.0) < _LEAST_TURNS:
        return say("a thread repeats nothing that more threads could share")
    sm_count, lanes = subject.sm_count, launch.threads_per_block
    fitting = _count_fitting(subject, launch, sm_count)
    if not isinstance(fitting, int):
        return fitting
    there, sms = launch.blocks * launch.warps_per_block, count(sm_count, "SM")
    part = there / (fitting * sm_count) if fitting else 1.0
    is_alone = describe_block(subject) is None or lanes < WARP_THREADS
    if part >= (1.0 if is_alone else SMALL_WAVE):
        fills = say("the grid fills {sms}", sms=sms)
        return fills if part >= 1 else say("the grid is {part} of what fits on {sms}", part=percent(part), sms=sms)
    ratio = measure_issue_ratio(subject)
    if not is_alone and not ratio and not subject.total_samples:
        return NotApplicable(SilenceStage.NOT_KNOWN, NO_STATES)
    schedulers = architecture.sm.sub_partitions_per_sm.value
    used = min(launch.blocks, sm_count)
    warps = there / used / schedulers  # of an SM that has any
    time = measure_launch_time(subject)

    def leave(times: float, turns: _Turns) -> float:
        """The part of the launch's time that some times as many threads leave."""
        joined = min(sm_count, launch.blocks * times) / used
        new_warps = max(warps, min(fitting / schedulers, warps * times / joined))
        often = estimate_parallel(issue_ratio=ratio, warps=warps, new_warps=new_warps, scales_warps=False)
        left, work = _share(subject, turns, times, often * joined)
        return min(1.0, time.leave(warp_time=left * joined, work=work, spread=joined))

    steps = (*(2.0**step for step in range(1, int(-log2(part)) + 1)), 1 / part)
    kept, times = min((leave(step, turns), step) for step in steps)
    bound_reason = say("each of {sms} holds {warps} of this kernel", sms=sms, warps=count(fitting, "warp"))
    suggestion = say(
        "Let {times} times as many threads do as much less each, or split the problem along another dimension",
        times=number(times),
    )
    if lanes < WARP_THREADS:
        bound_reason = say("{bound}; whole warps would gain more", bound=bound_reason)
        suggestion = say(
            "Divide the work among the threads of whole warps ({used} of {lanes} lanes in use), and those among blocks",
            used=count(lanes),
            lanes=count(WARP_THREADS),
        )
    blocks, threads = count(launch.blocks, "block"), count(lanes, "thread")
    present = say(
        "with {blocks} of {threads}, {idle} of {sms} are idle",
        blocks=blocks,
        threads=threads,
        idle=count(sm_count - used),
        sms=sms,
    )
    if used == sm_count:
        present = say(
            "{blocks} of {threads} are {part} of the warps that fit on {sms} at once",
            blocks=blocks,
            threads=threads,
            part=percent(part),
            sms=sms,
        )
    return IdleMatch(
        saved_ratio=1 - kept,
        bound=1 / leave(1 / part, np.full(1, inf)),
        bound_reason=bound_reason,
        hint=say("{suggestion}: {present}.", suggestion=suggestion, present=present),
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


def _count_fitting(subject: Subject, launch: LaunchConfiguration, sm_count: int) -> int | Sentence | NotApplicable:
    """Warps of the kernel that an SM holds; those of one block where that is not known, or where a block is less than a warp."""
    block, architecture = describe_block(subject), subject.kernel.architecture
    assert architecture is not None
    if block is not None:
        is_part = launch.threads_per_block < WARP_THREADS and launch.blocks < sm_count
        return launch.warps_per_block if is_part else find_occupancy(architecture, block).warps_per_sm
    if launch.blocks >= sm_count:
        return NotApplicable(SilenceStage.NO_METRICS, say("the profile lacks the launch's registers or shared memory"))
    if launch.warps_per_block > architecture.sm.sub_partitions_per_sm.value:
        warps = count(launch.warps_per_block, "warp")
        return say("blocks of {warps} can be split, which needs no other work", warps=warps)
    return launch.warps_per_block


def _count_turns(subject: Subject, launch: LaunchConfiguration) -> _Turns:
    """Executions of each instruction by a warp, or, where the code has no loop, results per thread; infinite where executions were not counted."""
    executed = subject.executed.astype(np.float64)
    if not executed.any() or not executed[0]:
        return np.full(max(1, len(executed)), inf)
    turns: _Turns = np.maximum(executed / executed[0], 1.0)
    results = count_results(subject)
    if turns.max() < _LEAST_TURNS and results is not None:
        turns[:] = max(1.0, results / (launch.blocks * launch.threads_per_block))
    return turns


def _share(subject: Subject, turns: _Turns, times: float, gain: float) -> tuple[float, dict[str, float]]:
    """The part of a warp's time, and of each unit's work, that stays where some times as many threads share the work.

    Args:
        gain: what they gain where everything can be shared.
    """
    rows = subject.rows
    weights = rows.all_samples.sum(axis=1) if subject.total_samples else subject.executed
    if not weights.any() or np.isinf(turns).any():
        return 1 / gain, {}
    part = float(np.average(np.maximum(1 / gain, 1 / turns), weights=weights))
    return part, count_work_left(subject, executions=1 - np.maximum(1.0, times / turns))


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
