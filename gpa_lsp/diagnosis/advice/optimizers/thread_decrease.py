"""Blocks of so many warps that each waits long for the slowest one at barriers."""

from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.blamed_stalls import build_regions, find_edges
from gpa_lsp.diagnosis.advice.loop_work import mark_block_barriers
from gpa_lsp.diagnosis.advice.matches import EliminationMatch
from gpa_lsp.diagnosis.advice.model import Category, SilenceStage
from gpa_lsp.diagnosis.advice.naming import locate
from gpa_lsp.diagnosis.advice.optimizers import NO_ARCHITECTURE, Found, NotApplicable, Optimizer
from gpa_lsp.diagnosis.advice.residency import describe_block
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import count, number, percent, say
from gpa_lsp.gpu.arch.occupancy import find_occupancy
from gpa_lsp.kernel.dataflow.accesses import WARP_THREADS
from gpa_lsp.kernel.dataflow.barrier_intervals import WAITING

_FEWEST_WARPS = 4  # Of the smaller blocks: one for each scheduler of an SM


def match(subject: Subject) -> Found:
    """Match block barriers with many warps: they wait for the slowest one, and the more there are, the later that is.

    Matched: stalls at block barriers in blocks of more than four warps. Of n warps that arrive at independent, evenly spread times, each waits
    (n − 1) / (2 (n + 1)) of the spread (the mean of the maximum of n such times, less the mean of one); with fewer warps in a block that much less of
    the waiting stays. Blocks as small as four warps, of which as many warps are resident with the same registers and as much shared memory each.

    Source: Starlight, Table 1 ("Reduce Number of Threads"), which gives no rule; order statistics of uniform times for the part that stays.
    """
    launch, architecture, block = subject.launch, subject.kernel.architecture, describe_block(subject)
    if architecture is None:
        return NotApplicable(SilenceStage.NO_CODE, NO_ARCHITECTURE)
    if launch is None or block is None:
        return NotApplicable(SilenceStage.NOT_KNOWN, say("the profile does not say what a block asks for"))
    warps = launch.warps_per_block
    if warps <= _FEWEST_WARPS:
        return say("a block has no more than {warps}", warps=count(warps, "warp"))
    barriers = mark_block_barriers(subject.rows)
    edges = find_edges(subject, barriers, (WAITING,))
    if not len(edges):
        return say("no warp is stalled at a barrier")
    held = find_occupancy(architecture, block).warps_per_sm
    sizes = [warps // part for part in (8, 4, 2) if warps % part == 0 and warps // part >= _FEWEST_WARPS]
    small = (replace(block, threads=size * WARP_THREADS) for size in sizes)
    fitting = (one.threads for one in small if find_occupancy(architecture, one).warps_per_sm >= held)
    threads = next(fitting, None)
    if threads is None:
        return NotApplicable(
            SilenceStage.GATED,
            say("of smaller blocks fewer than {held} would be resident", held=count(held, "warp")),
        )
    left = measure_wait(threads // WARP_THREADS) / measure_wait(warps)
    regions = build_regions(subject, edges, 1 - left)
    if not regions:
        return say("no warp is stalled at a barrier")
    return EliminationMatch(
        regions=regions,
        hint=say(
            "Launch blocks of {few} threads in place of {many}: at the barrier {where} fewer warps wait for one another, and other blocks run "
            "meanwhile.",
            few=number(threads),
            many=number(launch.threads_per_block),
            where=locate(subject, regions[0].hotspots[0].def_row),
        ),
        caveats=(
            say("A block's tile is shared by fewer threads then: what they load together may be loaded more often."),
            say("Code that reckons with the size of a block has to follow."),
        ),
        reasons=(
            say(
                "{few} that arrive at independent times wait {left} as long for the last one as {many}",
                few=count(threads // WARP_THREADS, "warp"),
                left=percent(left),
                many=number(warps),
            ),
        ),
    )


def measure_wait(warps: int) -> float:
    """Mean wait for the last of some warps, in spreads of their even arrival times.

    >>> measure_wait(1), measure_wait(3)
    (0.0, 0.25)
    """
    return (warps - 1) / (2 * (warps + 1))


OPTIMIZER = Optimizer(
    name="thread_decrease",
    title="Use fewer threads per block",
    category=Category.PARALLEL,
    group="synchronisation",
    needs_grid=True,
    find=match,
)
