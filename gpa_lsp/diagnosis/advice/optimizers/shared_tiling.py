"""Global loads of data that other threads of the block load, too."""

from math import prod

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.opcodes import Access
from gpa_lsp.code.sources.line_parts import find_thread_axes
from gpa_lsp.diagnosis.advice.blamed_stalls import build_counted_regions, build_regions, find_edges, mark_reasons
from gpa_lsp.diagnosis.advice.launch_time import measure_launch_time
from gpa_lsp.diagnosis.advice.loop_work import (
    LEAST_REUSE,
    LoopWork,
    list_loop_work,
    mark_multiply_adds,
    measure_filling,
    measure_reuse,
)
from gpa_lsp.diagnosis.advice.matches import EliminationMatch
from gpa_lsp.diagnosis.advice.model import SilenceStage
from gpa_lsp.diagnosis.advice.naming import describe_place, describe_scope, find_own_frame, read_parts
from gpa_lsp.diagnosis.advice.optimizers import Found, NotApplicable, Optimizer, refuse_unlimiting
from gpa_lsp.diagnosis.advice.pricing import WAITING
from gpa_lsp.diagnosis.advice.work_left import count_work_left, remove_feeders
from gpa_lsp.diagnosis.analyses.decomposition.memory_view import view_memory
from gpa_lsp.diagnosis.analyses.limiter import find_limiter
from gpa_lsp.diagnosis.analyses.model import LimiterKind
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import NOTHING, Code, Sentence, count, join, number, say, size
from gpa_lsp.kernel.dataflow.accesses import (
    GLOBAL_SPACES,
    WARP_THREADS,
    WIDEST_ACCESS_BYTES,
    count_access_bytes,
    find_access_runs,
    find_uniform_loads,
    mark_accesses,
)
from gpa_lsp.kernel.dataflow.gathered_accesses import find_block_wide_loads

_REASONS = ("lg_throttle", "long_scoreboard")
_STALLED_SHARE = 0.2
_WORDS_AT_ONCE = 4  # Of a wide read of what lies side by side

_MOST_NAMED = 2  # Expressions of a line that are spoken of

# Sectors over the least: of rows of eight elements that begin anywhere, two in place of one; above, lanes are apart
_SLIDING = (1.05, 2.0)

# Instructions for each element of a tile with a halo that a thread stages: rows and columns by divisions of an index, a test, an address. Counted in
# machine code of four stencils (sm_75): 15 to 25; a fifth, whose tile one thread fills for an element, has 1
_FILLING = 20.0

# Gain of a tile without the weights beside it: the median error of estimates on measured pairs and families that were held back is 7 to 10 %
_LEAST_ALONE = 1.1

_TILE_EDGES = (16, 32)  # Elements along a tile that blocks of usual shapes load in one or a few steps


def match(subject: Subject) -> Found:
    """Data that many threads of a block read are loaded once, into shared memory, in place of once per thread.

    Matched: a loop with multiply-adds and global loads whose data L1 answers many times over, where L1 limits the kernel or warps are stalled on
    these loads. The multiply-adds stay.
    """
    work = max(list_loop_work(subject), key=lambda one: one.global_loads, default=None)
    if work is None or not work.global_loads:
        return say("no loop loads global memory for multiply-adds")
    reuse = measure_reuse(subject)
    if reuse is None:
        return NotApplicable(SilenceStage.NO_METRICS, say("the traffic between L2 and L1 was not collected"))
    if reuse < LEAST_REUSE:
        return say("L1 answers each byte from L2 {times} times", times=number(reuse))
    loads = _mark_loads(subject, work)
    stalled = find_edges(subject, loads, _REASONS)
    share = float(subject.edges.all_samples[stalled].sum()) / max(subject.total_samples, 1)
    if find_limiter(subject).unit != "l1" and share < _STALLED_SHARE:
        return refuse_unlimiting(subject, "global loads do")
    executed = np.where(loads, subject.executed, 0)
    regions = build_regions(subject, stalled, _weigh(subject, stalled)) or build_counted_regions(
        subject, executed, edges=stalled
    )
    # Threads along an axis of the block share an element; what L1 keeps adds to it.
    readers = _count_readers(subject, loads, max(reuse, _TILE_EDGES[0]))
    added = measure_filling(subject, _count_rounds(subject, loads, readers))
    weights = _mark_weights(subject, work) & ~loads
    alone = _count_work_left(subject, loads, readers)
    if weights.any() and measure_launch_time(subject).leave(warp_time=1 + added, work=alone) > 1 / _LEAST_ALONE:
        return say("of what L1 answers most is what all threads read alike, and a tile of the rest gains nothing")
    return EliminationMatch(
        work=_count_work_left(subject, loads, readers, weights=weights),
        least=_count_work_left(subject, loads, readers, weights=weights, reads=0.0),
        added=added,
        regions=regions,
        hint=_write_hint(subject, work, loads),
        caveats=(
            say(
                "Staging costs shared memory and two {barrier} per tile; the halo of a stencil is loaded along.",
                barrier=Code(text="__syncthreads()"),
            ),
        ),
        reasons=(say("registers take {reuse} times the bytes that L2 sends to L1", reuse=number(reuse)),),
    )


def _count_readers(subject: Subject, loads: npt.NDArray[np.bool_], reuse: float) -> npt.NDArray[np.float64]:
    """float64[n]: loads of an element that one load into the tile replaces: of what all threads of a block read alike, one of each thread.

    Of a stencil's neighbours threads share an element as often as each of them reads one, and load the halo of the tile along.
    """
    launch = subject.launch
    readers = np.full(len(subject.rows), reuse)
    if launch is None:
        return readers
    alike = find_block_wide_loads(subject.rows)
    if (_find_sliding(subject) & loads & ~alike).any():
        warps = launch.blocks * launch.warps_per_block * subject.run_count
        each = max(1.0, float(subject.executed[loads & ~alike].sum()) / warps)
        axes = [threads for threads in launch.threads if threads > 1] or [1]
        halo = [1 + (each ** (1 / min(2, len(axes))) - 1) / threads for threads in axes[:2]]
        readers[:] = min(reuse, max(1.0, each / prod(halo)))
    readers[loads & alike] = launch.threads_per_block
    return readers


def _count_rounds(subject: Subject, loads: npt.NDArray[np.bool_], readers: npt.NDArray[np.float64]) -> float:
    """Count the waits of warps for a tile: one for each round of loads, of both operands together."""
    uniform = find_uniform_loads(subject.rows)
    operands = max(1, sum(bool(one.any()) for one in (loads & uniform, loads & ~uniform)))
    launch = subject.launch
    warps = 0 if launch is None else launch.blocks * launch.warps_per_block * subject.run_count
    return max(float(warps), float((subject.executed / readers)[loads].sum()) / operands)


def _weigh(subject: Subject, edges: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """float64[m]: the part of each pair's samples that goes: of waits what shared memory is faster than; of queues none."""
    memory, architecture = view_memory(subject), subject.architecture
    faster = 0.0
    if memory.uses is not None and architecture is not None and memory.uses.mean_wait_cycles > 0:
        shared_cycles = architecture.hierarchy.shared_cycles.value or 0.0
        left = max(0.0, shared_cycles - memory.uses.mean_passed_cycles)
        faster = max(0.0, 1 - left / memory.uses.mean_wait_cycles)
    return np.where(mark_reasons(subject, (WAITING,))[edges], faster, 0.0)


def _count_work_left(
    subject: Subject,
    loads: npt.NDArray[np.bool_],
    readers: npt.NDArray[np.float64],
    *,
    weights: npt.NDArray[np.bool_] | None = None,
    reads: float = 1 / _WORDS_AT_ONCE,
) -> dict[str, float]:
    """Unit → the part of its work that stays: a load of each element once per block, and reads of shared memory in place of the others.

    Elements that all lanes of a warp read alike lie side by side in the tile, as do those that a thread reads one after the other, and one read of 16
    bytes fetches several. Reads that slide along a row of the array, as a stencil's do, need a halo: the rows of a tile are then wider than the
    block, where a warp covers several of them they share banks, and the threads find their elements by divisions of an index. ``weights``: what
    is kept in the tile, or with ``reads`` of 0 in constant memory, besides.
    """
    executed = subject.executed.astype(np.float64)
    uniform = loads & find_uniform_loads(subject.rows)
    widths = subject.rows.spread_by_mnemonic(count_access_bytes, unknown=0)
    wide = np.where(uniform, np.minimum(1.0, widths / WIDEST_ACCESS_BYTES), 1.0)
    for run in find_access_runs(subject.rows):
        beside = [row for row in run.rows if loads[row]]
        wide[beside] = np.minimum(wide[beside], 1 / len(run.rows))
    sliding = _find_sliding(subject) & loads & ~uniform
    passes = wide * np.where(sliding, _count_conflicts(subject), 1.0)
    staged = 1 / readers
    gone = np.where(loads, 1 - wide - 2 * staged, 0.0)
    held = np.zeros(len(executed)) if weights is None else weights.astype(np.float64)
    gone = np.where(held > 0, 1.0 - reads, gone)
    # What lies outside the array is zero in the tile, and neither loads nor multiply-adds ask any more.
    guarded = (mark_multiply_adds(subject.rows) | find_block_wide_loads(subject.rows)) & (subject.rows.guard >= 0)
    once = np.where(loads, 1 - staged.max(), 0.0)  # alike for all, as conditions are shared
    asking, plain = remove_feeders(subject, once, guarded=guarded), remove_feeders(subject, once)
    removed = remove_feeders(subject, gone)
    filling = _FILLING if sliding.any() else 0.0
    found = np.where(loads, staged, 0.0) * executed
    return count_work_left(
        subject,
        executions=np.where(asking > plain, np.maximum(asking, removed), removed),
        lines=np.where(loads, 1 - staged, held),
        added={
            "shared": float((executed * np.where(loads, passes, reads * held) + found).sum()),
            **{unit: filling / 2 * float(found.sum()) for unit in ("alu", "fma")},
        },
    )


def _find_sliding(subject: Subject) -> npt.NDArray[np.bool_]:
    """bool[n]: loads whose lanes read neighbours that begin in the middle of a sector, for the most part: now one element on, now the next."""
    sectors, ideal = subject.read_counter("global_sectors"), subject.read_counter("global_sectors_ideal")
    if sectors is None or ideal is None:
        return np.zeros(len(subject.rows), dtype=np.bool_)
    ratio = sectors / np.maximum(ideal, 1)
    return np.asarray((ratio > _SLIDING[0]) & (ratio < _SLIDING[1]))


def _count_conflicts(subject: Subject) -> float:
    """Wavefronts of a read of neighbours in a tile with a halo of one element, by the rows of a block that a warp covers."""
    width = WARP_THREADS if subject.launch is None else min(WARP_THREADS, subject.launch.threads[0])
    lanes = np.arange(WARP_THREADS)
    return float(np.bincount((lanes % width + lanes // width * (width + 1)) % WARP_THREADS).max())


def _mark_loads(subject: Subject, work: LoopWork) -> npt.NDArray[np.bool_]:
    """bool[n]: the loads of a loop; without weights where it has others."""
    loads = subject.rows.mark(work.rows) & mark_accesses(subject.rows, GLOBAL_SPACES, (Access.LOAD,))
    others = loads & ~_mark_weights(subject, work)
    return others if others.any() else loads


def _mark_weights(subject: Subject, work: LoopWork) -> npt.NDArray[np.bool_]:
    """bool[n]: the loads of a loop of what all threads of a block read alike; none of a debug build, which keeps indices in memory."""
    is_debug = find_limiter(subject).kind is LimiterKind.BUILD
    return subject.rows.mark(() if is_debug else work.rows) & find_block_wide_loads(subject.rows)


def _write_hint(subject: Subject, work: LoopWork, loads: npt.NDArray[np.bool_]) -> Sentence:
    """Say what to stage, why it pays, and how large a tile may be."""
    rows = np.flatnonzero(loads)
    hottest = subject.rows.find_heaviest(rows, subject.executed[rows])
    remedy = say(
        "Copy the data of {load} to shared memory tile by tile, each element once per block, before {where}, and read it from there.",
        load=describe_place(subject, hottest),
        where=describe_scope(subject, work.scope),
    )
    weights = np.flatnonzero(_mark_weights(subject, work) & ~loads)
    more = NOTHING
    if len(weights):
        place = describe_place(subject, subject.rows.find_heaviest(weights, subject.executed[weights]))
        more = say(
            "Put the data of {load}, which all threads read alike, there, too, or into constant memory.", load=place
        )
    return join((remedy, more, _describe_reuse(subject, hottest), _describe_tile(subject, rows)))


def _describe_reuse(subject: Subject, row: int) -> Sentence:
    """Name loads of a source line that are equal for all threads along an axis of the block; empty where the source does not tell."""
    frame, parts = find_own_frame(subject, row), read_parts(subject, row)
    text = None if frame is None else subject.read_text(frame.file)
    if frame is None or parts is None or text is None or subject.launch is None or _is_inlined(subject, row):
        return NOTHING
    threads = dict(zip("xyz", subject.launch.threads, strict=True))
    clauses = []
    for expression in parts.loads[:_MOST_NAMED]:
        own = find_thread_axes(text, frame.line, expression)
        free = [axis for axis in "xyz" if threads[axis] > 1 and axis not in own]
        if own and free:  # without any axis the index may have a source that was not looked at
            axis = Code(text=f"threadIdx.{free[0]}")
            clauses.append(
                say(
                    "{load} does not depend on {axis}, so {threads} load the same",
                    load=Code(text=expression),
                    axis=axis,
                    threads=count(threads[free[0]], "thread"),
                )
            )
    return say("{clauses}.", clauses=join(clauses, "; ")) if clauses else NOTHING


def _is_inlined(subject: Subject, row: int) -> bool:
    """Whether a row is of a function that was inlined: what it was called with may depend on any axis."""
    function = subject.rows.function_of(row)
    chain = function.chain_index[subject.rows.index_of(row)]
    return function.lines is None or chain < 0 or len(function.lines.chains[chain]) > 1


def _describe_tile(subject: Subject, rows: npt.NDArray[np.int64]) -> Sentence:
    """The bytes of square tiles as wide as the block, where they fit."""
    architecture = subject.kernel.architecture
    if architecture is None or subject.launch is None:
        return NOTHING
    edge = subject.launch.threads[0] if subject.launch.threads[0] in _TILE_EDGES else _TILE_EDGES[0]
    element_bytes = max(count_access_bytes(subject.rows.mnemonic(int(row))) for row in rows)
    tile_bytes = edge * edge * element_bytes
    if not 0 < tile_bytes <= architecture.occupancy.default_shared_per_block_bytes.value:
        return NOTHING
    return say(
        "A tile of {edge} × {edge} elements takes {size} of the {most} of shared memory that a block can have.",
        edge=number(edge),
        size=size(tile_bytes),
        most=size(architecture.occupancy.default_shared_per_block_bytes.value),
    )


OPTIMIZER = Optimizer(
    name="shared_tiling",
    title="Tile in shared memory",
    group="data reuse",
    needs_samples=False,
    needs_counters=("global_sectors",),
    find=match,
)
