"""Blocks whose number of threads is no multiple of a warp."""

from gpa_lsp.diagnosis.advice.matches import IdleMatch
from gpa_lsp.diagnosis.advice.model import Category, SilenceStage
from gpa_lsp.diagnosis.advice.optimizers import Found, NotApplicable, Optimizer
from gpa_lsp.diagnosis.advice.residency import bound_issue_rate, count_waves
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import Sentence, count, percent, say
from gpa_lsp.kernel.dataflow.accesses import WARP_THREADS


def match(subject: Subject) -> Found:
    """The last warp of each block issues for lanes that have no thread.

    The same threads in full warps need ⌈threads / 32⌉ warps of the whole grid instead of ⌈threads of a block / 32⌉ of each block; for many blocks
    that saves (1 / w) · (1 − l / 32) of w warps per block whose last has l threads. It saves as much time where warps queue for the SMs; where all
    of them are resident at once, only the cycles in which they issue.

    Source: Nsight Compute's launch configuration rule.
    """
    launch = subject.launch
    if launch is None or launch.blocks < 1 or launch.threads_per_block < 1:
        return NotApplicable(SilenceStage.NO_METRICS, say("the profile does not record the number of threads"))
    threads, warps = launch.threads_per_block, launch.warps_per_block
    last = threads - WARP_THREADS * (warps - 1)
    if last == WARP_THREADS:
        return say("blocks of {threads} are whole warps", threads=count(threads, "thread"))
    needed = -(-launch.blocks * threads // WARP_THREADS)
    if needed >= launch.blocks * warps:
        return say("the threads of the grid fill no fewer warps")
    saved = 1 - needed / (launch.blocks * warps)
    waves = count_waves(subject)
    rate, most_issued = bound_issue_rate(subject)
    is_queued = waves is None or waves >= 1
    if rate != most_issued and not is_queued:
        return NotApplicable(
            SilenceStage.NOT_KNOWN,
            say("all warps are resident at once, so only their issue cycles count, which the profile does not record"),
        )
    issuing = saved * min(1.0, rate)
    return IdleMatch(
        saved_ratio=saved if is_queued else issuing,
        bound=1 / (1 - saved),
        bound_reason=say(
            "{needed} do the work of {present}",
            needed=count(needed, "full warp"),
            present=count(launch.blocks * warps),
        ),
        hint=say(
            "Blocks of {threads} have {warps}, the last with {last} of {lanes} lanes in use. {better} use all lanes.",
            threads=count(threads, "thread"),
            warps=count(warps, "warp"),
            last=count(last),
            lanes=count(WARP_THREADS),
            better=_suggest(threads),
        ),
        caveats=(say("Index arithmetic must follow the block size, and threads past the end need a guard."),),
        reasons=(
            say(
                "{saved} of the warps could go{only}",
                saved=percent(saved),
                only="" if is_queued else "; all are resident at once, so only their issue cycles count",
            ),
        ),
    )


def _suggest(threads: int) -> Sentence:
    """The multiples of a warp around a block size.

    >>> _suggest(250), _suggest(20)
    ('Blocks of 256 or 224 threads', 'Blocks of 32 threads, each doing the work of several of these blocks,')
    """
    above = -(-threads // WARP_THREADS) * WARP_THREADS
    if above == WARP_THREADS:
        return say(
            "Blocks of {threads}, each doing the work of several of these blocks,",
            threads=count(WARP_THREADS, "thread"),
        )
    return say("Blocks of {above} or {below}", above=count(above), below=count(above - WARP_THREADS, "thread"))


OPTIMIZER = Optimizer(
    name="partial_last_warp",
    title="Use full warps",
    category=Category.PARALLEL,
    group="idle",
    needs_samples=False,
    needs_grid=True,
    needs_code=False,
    find=match,
)
