"""Blocks so narrow that a warp covers several short rows, or so small that an SM is never full of them."""

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.opcodes import Access
from gpa_lsp.diagnosis.advice.blamed_stalls import build_counted_regions, build_regions, find_edges
from gpa_lsp.diagnosis.advice.estimators import estimate_parallel
from gpa_lsp.diagnosis.advice.matches import EliminationMatch, ParallelMatch
from gpa_lsp.diagnosis.advice.model import Category, SilenceStage
from gpa_lsp.diagnosis.advice.optimizers import Found, NotApplicable, Optimizer, find_lack, refuse_unlimiting
from gpa_lsp.diagnosis.advice.pricing import relieves
from gpa_lsp.diagnosis.advice.residency import GOOD_BLOCK_THREADS, measure_issue_ratio
from gpa_lsp.diagnosis.advice.traffic_floor import measure_floor
from gpa_lsp.diagnosis.analyses.limiter import find_limiter
from gpa_lsp.diagnosis.analyses.model import LimiterKind
from gpa_lsp.diagnosis.analyses.occupancy import measure_resident_warps
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import Code, count, number, say
from gpa_lsp.kernel.dataflow.accesses import GLOBAL_SPACES, WARP_THREADS, mark_accesses

_REASONS = ("long_scoreboard", "lg_throttle", "drain")
_WHOLE_SECTORS = 0.8  # The least sectors over those touched: below it threads are apart in any shape
_WORTH = 1.1  # Lines per request over the fewest; below it the shape costs nothing

# Without which nothing is known of the lines that a warp touches
_COUNTERS = ("global_tag_requests", "global_sectors_ideal")


def match(subject: Subject) -> Found:
    """A warp of a two-dimensional block that is less than 32 threads wide reads the ends of several rows, which are cut at sectors and lines.

    Matched: blocks with x < 32 and more than one row, whose global accesses touch more lines than as many bytes in a row would. What stays is the
    floor of the traffic.

    Small blocks end before an SM is full of them, or an SM has no more places for blocks: where latency limits a kernel and fewer than half of an
    SM's warps are resident, blocks of 256 threads bring in proportion more, as far as an SM holds them.
    """
    small = _match_small(subject)
    if small is not None:
        return small
    launch = subject.launch
    if launch is None or launch.threads[0] >= WARP_THREADS or launch.threads_per_block <= launch.threads[0]:
        return say("the rows of a block are whole warps")
    lacking = find_lack(subject, _COUNTERS)
    if lacking is not None:
        return lacking
    floor = measure_floor(subject)
    if floor is None or "global_tag_requests" not in subject.rows.counters:
        return NotApplicable(SilenceStage.NO_METRICS, say("the lines that global accesses touch were not counted"))
    if floor.sectors < _WHOLE_SECTORS:
        return say("neighbouring threads do not take neighbouring elements")
    if floor.lines * _WORTH >= 1:
        return say("global accesses touch few more lines than they must")
    leaves = floor.leaves_by_lines
    if find_limiter(subject).kind is LimiterKind.UNIT and not relieves(find_limiter(subject), leaves):
        return refuse_unlimiting(subject, "lines do")
    x, y = launch.threads[0], launch.threads_per_block // launch.threads[0]
    accesses = mark_accesses(subject.rows, GLOBAL_SPACES, (Access.LOAD, Access.STORE))
    edges = find_edges(subject, accesses, _REASONS)
    return EliminationMatch(
        work=leaves,
        regions=build_regions(subject, edges, 1 - floor.lines)
        if subject.total_samples
        else build_counted_regions(subject, _count_lines(subject, accesses)),
        hint=say(
            "Launch blocks of {wide} threads in x, as {shape} in place of {now}, so that each warp stays in one row.",
            wide=number(WARP_THREADS),
            shape=Code(text=f"dim3({WARP_THREADS}, {max(1, x * y // WARP_THREADS)})"),
            now=Code(text=f"dim3({x}, {y})"),
        ),
        caveats=(say("Rows that do not begin at a multiple of 128 bytes still cost a line more."),),
        reasons=(say("global accesses touch {times} times the fewest lines", times=number(1 / floor.lines)),),
    )


def _count_lines(subject: Subject, accesses: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """int64[n]: lines that some accesses touch."""
    tags = subject.read_counter("global_tag_requests")
    assert tags is not None  # there is no floor of lines without
    return np.where(accesses, tags, 0)


def _match_small(subject: Subject) -> ParallelMatch | None:
    """Larger blocks, where SMs are half empty because theirs are small; None where that is not so."""
    launch, architecture = subject.launch, subject.kernel.architecture
    if (
        launch is None
        or architecture is None
        or subject.sm_count is None
        or find_limiter(subject).kind is not LimiterKind.LATENCY
    ):
        return None
    resident = measure_resident_warps(subject, architecture)
    threads, most = launch.threads_per_block, architecture.occupancy.max_warps_per_sm.value
    wide = GOOD_BLOCK_THREADS // threads
    has_enough = launch.blocks >= 2 * wide * subject.sm_count
    if resident is None or wide < 2 or not has_enough:
        return None
    held = resident * architecture.sm.sub_partitions_per_sm.value
    factor = min(float(most), held * wide) / held
    if held >= most / 2 or factor < _WORTH:
        return None
    ratio = measure_issue_ratio(subject)
    full = estimate_parallel(issue_ratio=ratio, warps=resident, new_warps=resident * factor, scales_warps=False)
    return ParallelMatch(
        title="Launch larger blocks",
        warps_per_scheduler=resident,
        new_warps_per_scheduler=resident * factor,
        issue_ratio=ratio,
        bound=full,
        bound_reason=say("an SM holds at most {most}", most=count(most, "warp")),
        hint=say(
            "Launch blocks of {good} threads in place of {now}: only {held} of {most} warps are resident on an SM.",
            good=number(GOOD_BLOCK_THREADS),
            now=number(threads),
            held=number(held),
            most=number(most),
        ),
        caveats=(say("Larger blocks need their registers and shared memory at once; see that as many warps fit."),),
        reasons=(
            say(
                "{blocks} of {threads} come and go",
                blocks=count(launch.blocks, "block"),
                threads=count(threads, "thread"),
            ),
        ),
    )


OPTIMIZER = Optimizer(
    name="block_shape",
    title="Blocks a warp wide",
    category=Category.PARALLEL,
    group="memory traffic",
    needs_samples=False,
    needs_grid=True,
    needs_code=False,
    find=match,
)
