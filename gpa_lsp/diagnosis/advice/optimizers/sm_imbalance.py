"""SMs that finish early while others still work."""

from gpa_lsp.diagnosis.advice.launch_time import measure_launch_time
from gpa_lsp.diagnosis.advice.matches import IdleMatch
from gpa_lsp.diagnosis.advice.model import Category, SilenceStage
from gpa_lsp.diagnosis.advice.optimizers import Found, NotApplicable, Optimizer
from gpa_lsp.diagnosis.advice.residency import measure_longest_part, measure_sm_idleness
from gpa_lsp.diagnosis.analyses.limiter import find_limiter
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import Sentence, count, percent, say
from gpa_lsp.profile.launch_configuration import LaunchConfiguration

# The uneven number of blocks counts as the cause when it alone would give at least this part of the measured idle time
EXPLAINED_PART = 0.5


def match(subject: Subject) -> Found:
    """The kernel ends with the SM that works longest.

    (1 − mean / longest active time of an SM) of the time in which any SM is active would go if all ended together and shared nothing; what DRAM
    and L2 have to do stays, and SMs that still work have what the others leave of them.

    Source: Nsight Compute's workload imbalance rule.
    """
    launch, idle = subject.launch, measure_sm_idleness(subject)
    if launch is None or subject.sm_count is None or launch.blocks < 1 or idle is None:
        return NotApplicable(SilenceStage.NO_METRICS, say("the profile does not record how long the SMs were active"))
    if launch.blocks < subject.sm_count:
        idle_sms = count(subject.sm_count - launch.blocks, "SM")
        return say("{blocks} leave {idle} without any", blocks=count(launch.blocks, "block"), idle=idle_sms)
    if find_limiter(subject).unit == "tail":
        return NotApplicable(
            SilenceStage.GATED,
            say("{why}", why=find_limiter(subject).sentence),
            contradicted_by="limiter",
        )
    busy = measure_longest_part(subject)
    saved = idle * (1.0 if busy is None else busy)
    if saved == 0:
        return say("all SMs were active equally long")
    return IdleMatch(
        saved_ratio=1 - measure_launch_time(subject).leave(spread=1 / (1 - idle)),
        bound=1 / (1 - saved),
        bound_reason=say("all SMs busy until the end"),
        hint=_suggest(launch, subject.sm_count, idle),
        caveats=(say("Smaller blocks load more of what neighbours share; a counter costs an atomic for each block."),),
        reasons=(say("SMs were active on average for {part} of the longest one's time", part=percent(1 - idle)),),
    )


def _suggest(launch: LaunchConfiguration, sm_count: int, idle: float) -> Sentence:
    most = -(-launch.blocks // sm_count)
    blocks = count(launch.blocks, "block")
    by_count = 1 - launch.blocks / sm_count / most
    if by_count >= EXPLAINED_PART * idle:
        full = launch.blocks - (most - 1) * sm_count
        return say(
            "{blocks} do not divide evenly among {sms}: {full} get {most}, the others {fewer}. Launch a multiple of {multiple}, or smaller "
            "blocks, of which one more matters less.",
            blocks=blocks,
            sms=count(sm_count, "SM"),
            full=count(full),
            most=count(most),
            fewer=count(most - 1),
            multiple=count(sm_count, "block"),
        )
    return say(
        "SMs are idle for {idle} of the time because some of the {blocks} run longer than others. Give long blocks less work, start them "
        "first, or let blocks fetch work from a counter until none is left.",
        idle=percent(idle),
        blocks=blocks,
    )


OPTIMIZER = Optimizer(
    name="sm_imbalance",
    title="Balance work across SMs",
    category=Category.PARALLEL,
    is_outside=True,
    yields_to="tail_effect",
    group="idle",
    needs_samples=False,
    needs_grid=True,
    needs_metrics=("sm__cycles_active.avg", "sm__cycles_active.max"),
    needs_code=False,
    find=match,
)
