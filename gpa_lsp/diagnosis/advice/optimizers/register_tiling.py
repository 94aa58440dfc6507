"""Products whose multiply-adds each load their operands, from shared memory or from global memory."""

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.binary.opcodes import Access, MemorySpace
from gpa_lsp.code.binary.uses import parse_operand
from gpa_lsp.diagnosis.advice.blamed_stalls import build_counted_regions, build_regions, find_edges, mark_reasons
from gpa_lsp.diagnosis.advice.launch_time import BARRIER, leave_elimination
from gpa_lsp.diagnosis.advice.loop_work import (
    LEAST_REUSE,
    LoopWork,
    count_results,
    list_loop_work,
    mark_block_barriers,
    mark_multiply_adds,
    mark_products,
    measure_filling,
    measure_reuse,
)
from gpa_lsp.diagnosis.advice.matches import EliminationMatch, EliminationRegion
from gpa_lsp.diagnosis.advice.model import SilenceStage
from gpa_lsp.diagnosis.advice.naming import describe_scope
from gpa_lsp.diagnosis.advice.optimizers import Found, NotApplicable, Optimizer, refuse_unlimiting
from gpa_lsp.diagnosis.advice.pricing import WAITING
from gpa_lsp.diagnosis.advice.residency import AS_NOW, GOOD_BLOCK_THREADS, Filling, compare_filling, measure_states
from gpa_lsp.diagnosis.advice.work_left import count_work_left
from gpa_lsp.diagnosis.analyses.limiter import find_limiter
from gpa_lsp.diagnosis.analyses.model import LimiterKind
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import NOTHING, Code, Sentence, count, number, say, size
from gpa_lsp.gpu.arch.occupancy import BlockShape, find_occupancy
from gpa_lsp.kernel.dataflow.accesses import GLOBAL_SPACES, mark_accesses
from gpa_lsp.kernel.dataflow.gathered_accesses import depends_on_thread
from gpa_lsp.kernel.dataflow.value_flow import build_flow

# Shared-memory wavefronts per multiply-add from which on operands are not reused enough: a tile of 8 × 8 results takes 1/8 + 1/8
MOST_WAVEFRONTS = 0.25

_SHARED_UNITS = frozenset({"l1", "shared", "mio"})

_LATENCY = "short_scoreboard"
# One multiply-add waits for the last where a thread has no other sum; each warp starts and ends once
_PER_STEP = ("wait", "drain", "imc_miss")
_QUEUE_REASONS = ("mio_throttle", _LATENCY)
_QUEUE_SHARE = 0.2  # Of all samples, in front of shared memory: where no counter says which unit is busy

_EDGES = (8, 4)  # Of tiles, the largest first

_ADDRESS_REGISTERS = 24
_MOST_LOOKED_AT = 64  # Multiply-adds of a loop whose factors are looked for
_DEPTH = 8  # Steps of the product whose operands a block keeps in shared memory at a time

# Words of a load of 16 bytes, and its wavefronts where all lanes read the same
# (sgemm_shared_memory_blocking takes 1.50 per multiply-add, for a load of a word and a quarter of such a load)
_WORDS_AT_ONCE, _PASSES_AT_ONCE = 4, 2

_LEAST_GROWTH = 1.5  # Times the edge of the tile that there is; a smaller step saves little

_FEWER_THREADS = say("Fewer threads share the work: where the grid then leaves SMs idle, smaller tiles are faster.")


class _Tile(Struct, frozen=True, kw_only=True):
    """A tile of results per thread, and what it takes."""

    edge: int  # results along each side
    is_column: bool  # along one side alone: the first step, from threads of one result
    threads: int  # of a block
    rows: int  # results along one side of the block's tile
    columns: int  # along the other
    registers: int  # of a thread, about: its results, a row and a column of operands, and addresses
    shared_bytes: int  # of a block
    warps_per_sm: int | None  # that then fit; None without a table of the architecture
    filling: Filling  # of the GPU, by the blocks that are left

    @property
    def results(self) -> int:
        """Results of a thread."""
        return self.edge * (1 if self.is_column else self.edge)

    @property
    def loads_per_result(self) -> float:
        """Loads of shared memory per multiply-add: of operands that lie side by side four at a time, but of a column's single one."""
        return 1 / self.edge + 1 / _WORDS_AT_ONCE if self.is_column else 2 / self.edge / _WORDS_AT_ONCE

    @property
    def passes_per_result(self) -> float:
        """Wavefronts per multiply-add: one for a load of a word, :data:`_PASSES_AT_ONCE` for one of 16 bytes that a row of lanes reads alike.

        Of the other operand lanes read words that begin as many words apart as the tile has: that many banks in conflict, for any tile.
        """
        alike = _PASSES_AT_ONCE / _WORDS_AT_ONCE
        return 1 / self.edge + alike if self.is_column else alike / self.edge + alike / _WORDS_AT_ONCE


def match(subject: Subject) -> Found:
    """A thread that computes a tile of T × T results loads each operand once for T of them.

    Matched: the loop with most multiply-adds, where shared memory takes more than a quarter of a wavefront for each, and L1, shared memory or
    the queue before them limits the kernel; unless its threads have such tiles already, so that wavefronts are many for another reason. The
    multiply-adds stay; loads, and the loop's own instructions, go. The tile is the largest whose registers and shared memory leave two warps to
    each scheduler, and that leaves a block to each SM. A product from global memory takes tiles of shared memory first; both are priced together.
    """
    works = list_loop_work(subject)
    if not works:
        return say("no loop does floating-point multiply-adds")
    work = works[0]
    if not _is_product(subject, work, (MemorySpace.SHARED,)):
        return _match_global(subject, work)
    per_result = work.shared_wavefronts / work.multiply_adds
    if per_result <= MOST_WAVEFRONTS:
        return say("shared memory takes {each} wavefronts per multiply-add", each=number(per_result))
    queued = sum(subject.rows.count_reason(reason) for reason in _QUEUE_REASONS) / max(subject.total_samples, 1)
    if find_limiter(subject).unit not in _SHARED_UNITS and queued < _QUEUE_SHARE:
        return refuse_unlimiting(subject, "shared memory does")
    words = work.shared_words / work.multiply_adds
    if 0 < words * _EDGES[0] < 2 * _LEAST_GROWTH:
        return say("each value from shared memory is used in {uses} multiply-adds already", uses=number(2 / words))
    tiles = _list_tiles(subject, 2 / words if words else 1.0)
    if not tiles:
        return NotApplicable(
            SilenceStage.GATED, say("larger tiles leave fewer blocks than SMs, or too few warps to an SM")
        )
    found = [_describe(subject, work, per_result, words, tile) for tile in tiles]
    return min(found, key=lambda one: leave_elimination(subject, one))


def _match_global(subject: Subject, work: LoopWork) -> Found:
    """A product whose operands come from global memory each time: threads read both elsewhere, and yet L1 answers each byte several times."""
    loads = subject.rows.mark(work.rows) & mark_accesses(subject.rows, GLOBAL_SPACES, (Access.LOAD,))
    is_outer = loads.any() and all(depends_on_thread(subject.rows, row) for row in np.flatnonzero(loads).tolist())
    if not is_outer or not _is_product(subject, work, GLOBAL_SPACES) or (measure_reuse(subject) or 0.0) < LEAST_REUSE:
        return say("no loop multiplies reused values of two arrays with each other and adds them up")
    if find_limiter(subject).kind is LimiterKind.BUILD:
        return NotApplicable(SilenceStage.GATED, say("{debug} keeps results in memory", debug=Code(text="-G")))
    edges = find_edges(subject, loads, (*_QUEUE_REASONS, "lg_throttle", WAITING))
    stalled = float(subject.edges.all_samples[edges].sum()) / max(subject.total_samples, 1)
    if find_limiter(subject).unit not in _SHARED_UNITS and stalled < _QUEUE_SHARE:
        return refuse_unlimiting(subject, "global loads do")
    words = work.global_words / work.multiply_adds
    tiles = _list_tiles(subject, max(1.0, 2 / words) if words else 1.0)
    if not tiles:
        return NotApplicable(
            SilenceStage.GATED, say("larger tiles leave fewer blocks than SMs, or too few warps to an SM")
        )
    regions = build_regions(subject, edges) or build_counted_regions(subject, np.where(loads, subject.executed, 0))
    found = [_describe_global(subject, work, loads, regions, tile) for tile in tiles]
    return min(found, key=lambda one: leave_elimination(subject, one))


def _describe_global(
    subject: Subject,
    work: LoopWork,
    loads: npt.NDArray[np.bool_],
    regions: tuple[EliminationRegion, ...],
    tile: _Tile,
) -> EliminationMatch:
    staged = (tile.rows + tile.columns) / (tile.threads * tile.results)  # loads of global memory per multiply-add
    left = min(1.0, staged * work.multiply_adds / max(1, work.global_loads))
    rounds = work.multiply_adds / (_DEPTH * tile.results)
    return EliminationMatch(
        work=count_work_left(
            subject,
            executions=np.where(loads, 1 - left, 0.0),
            added={
                "lsu": work.multiply_adds * (tile.loads_per_result + staged),
                "shared": work.multiply_adds * (tile.passes_per_result + staged),
            },
        ),
        added=measure_filling(subject, rounds),
        states=_list_states(subject, dict.fromkeys(_PER_STEP, 1 / tile.results)),
        filling=tile.filling,
        regions=regions,
        hint=say(
            "Let each thread compute {edge} results of a column in {where}, from tiles in shared memory, so that a loaded value serves all of them.",
            edge=number(tile.edge),
            where=describe_scope(subject, work.scope),
        ),
        caveats=(_describe_tile(tile), _FEWER_THREADS),
        reasons=(say("global loads per multiply-add: {each}", each=number(work.global_loads / work.multiply_adds)),),
    )


def _describe(subject: Subject, work: LoopWork, per_result: float, words: float, tile: _Tile) -> EliminationMatch:
    edge = tile.edge
    loads_left = min(1.0, tile.loads_per_result * work.multiply_adds / max(1, work.shared_loads))
    passes_left = min(1.0, tile.passes_per_result / per_result)
    loads = subject.rows.mark(work.rows)
    edges = find_edges(subject, loads, (*_QUEUE_REASONS, "lg_throttle", WAITING))
    gone = np.where(loads & ~mark_multiply_adds(subject.rows), 1 - loads_left, 0.0)
    waits_left = _count_waits_left(subject, work, tile)
    # Loads of a step are waited for together, those of a tile, too, and queues are as long as there are passes.
    steps_left = min(1.0, max(1.0, 2 / words if words else 1.0) ** 2 / tile.results)
    left = np.full(len(edges), max(loads_left, passes_left))
    for reason, part in ((WAITING, waits_left), (_LATENCY, steps_left)):
        left[mark_reasons(subject, (reason,))[edges]] = part
    return EliminationMatch(
        work=count_work_left(subject, executions=gone, wavefronts=np.where(loads, 1 - passes_left, 0.0)),
        filling=tile.filling,
        states=_list_states(subject, {BARRIER: waits_left, **dict.fromkeys(_PER_STEP, steps_left)}),
        regions=build_regions(subject, edges, 1 - left)
        if subject.total_samples
        else build_counted_regions(subject, np.where(loads, subject.executed, 0)),
        hint=say(
            "Let each thread compute {results} in {where}: load {what} into registers, then do their outer product.",
            results=say("{edge} results of a column", edge=number(edge))
            if tile.is_column
            else say("{edge} × {edge} results", edge=number(edge)),
            what=say("a column of one shared tile and a value of the other")
            if tile.is_column
            else say("a column and a row of the shared tiles"),
            where=describe_scope(subject, work.scope),
        ),
        caveats=(
            _describe_tile(tile),
            _FEWER_THREADS,
            say(
                "Load the shared tiles with {wide} where they are contiguous, or they become the next limit.",
                wide=Code(text="float4"),
            ),
        ),
        reasons=(
            say(
                "shared memory takes {now} wavefronts per multiply-add, {then} with the tile",
                now=number(per_result),
                then=number(tile.passes_per_result),
            ),
        ),
    )


def _list_states(subject: Subject, left: Mapping[str, float]) -> dict[str, float]:
    """Stall reason → the part of the warps' time in it that goes, where there is any."""
    found = {reason: measure_states(subject, (reason,)) * (1 - part) for reason, part in left.items()}
    return {reason: share for reason, share in found.items() if share > 0}


def _count_waits_left(subject: Subject, work: LoopWork, tile: _Tile) -> float:
    """The part of the waits for global memory that stays: one for each tile that a block loads."""
    barriers = subject.executed[mark_block_barriers(subject.rows)]
    # One before the tile is read, one before the next is loaded; a single tile needs none of these.
    tiles = max(int(barriers.sum()) / 2, int(barriers.max(initial=0)))
    if not tiles:
        return min(1.0, tile.loads_per_result * work.multiply_adds / max(1, work.shared_loads))
    return min(1.0, work.multiply_adds / tiles / (_DEPTH * tile.results))


def _is_product(subject: Subject, work: LoopWork, spaces: tuple[MemorySpace, ...]) -> bool:
    """Whether most multiply-adds of a loop have two factors from some memory, or square the sum or difference of two, and add to a sum."""
    is_product, loads = mark_products(subject.rows), mark_accesses(subject.rows, spaces, (Access.LOAD,))
    rows = work.rows[is_product[work.rows]][:_MOST_LOOKED_AT].tolist()
    stores = work.rows[mark_accesses(subject.rows, (MemorySpace.SHARED,), (Access.STORE,))[work.rows]].tolist()
    if any(_count_makers(subject, row, is_product) for row in stores):
        return False  # the next step reads what this one stores
    return 2 * sum(_count_factors(subject, row, loads) >= 2 for row in rows) > len(rows)


def _count_makers(subject: Subject, row: int, marked: npt.NDArray[np.bool_]) -> int:
    """Marked instructions that made what an instruction reads."""
    flow = build_flow(subject.rows, int(subject.rows.function_index[row]))
    return (
        0 if flow is None else sum(bool(marked[flow.first_row + one]) for one in flow.find_defs(row - flow.first_row))
    )


def _count_factors(subject: Subject, row: int, loads: npt.NDArray[np.bool_]) -> int:
    """Registers that loads before an instruction wrote and that it reads, itself or through what it squares."""
    flow = build_flow(subject.rows, int(subject.rows.function_index[row]))
    if flow is None:
        return 0
    own = row - flow.first_row
    operands = flow.operands(own)
    makers = flow.find_defs(own)
    if operands[1:2] == operands[2:3]:
        made = [one for one in makers if parse_operand(operands[1]).expand(1)[0] in flow.writes_of[one]]
        makers = [*makers, *(other for one in made for other in flow.find_defs(one))]
    return sum(bool(loads[flow.first_row + one]) for one in makers)


def _list_tiles(subject: Subject, present_edge: float) -> list[_Tile]:
    """The tiles larger than what there is that a GPU holds and a grid fills, the largest first."""
    launch = subject.launch
    threads = GOOD_BLOCK_THREADS if launch is None else min(max(launch.threads_per_block, 64), GOOD_BLOCK_THREADS)
    results = count_results(subject)
    is_column = present_edge < _LEAST_GROWTH
    found = []
    for edge in _EDGES:
        blocks = None if results is None else results / (threads * edge * (1 if is_column else edge))
        has_blocks = blocks is None or launch is None or subject.sm_count is None or blocks >= subject.sm_count
        tile = _fit(subject, edge, threads, blocks, is_column=is_column)
        if edge >= _LEAST_GROWTH * present_edge and has_blocks and tile is not None:
            found.append(tile)
    return found


def _fit(subject: Subject, edge: int, threads: int, blocks: float | None, *, is_column: bool) -> _Tile | None:
    """A tile on an SM; None where fewer than two warps are left to a scheduler."""
    architecture = subject.kernel.architecture
    registers = edge * (1 if is_column else edge) + edge + (1 if is_column else edge) + _ADDRESS_REGISTERS
    across = 2 ** math.floor(math.log2(threads) / 2)
    rows, columns = across * edge, threads // across * (1 if is_column else edge)
    shared_bytes = (rows + columns) * _DEPTH * 4
    warps, filling = None, AS_NOW
    if architecture is not None:
        most = architecture.occupancy.max_registers_per_thread.value
        block = BlockShape(threads=threads, registers_per_thread=min(registers, most), shared_bytes=shared_bytes)
        warps = find_occupancy(architecture, block).warps_per_sm
        is_too_large = registers > most or shared_bytes > architecture.occupancy.default_shared_per_block_bytes.value
        if is_too_large or warps < 2 * architecture.sm.sub_partitions_per_sm.value:
            return None
        filling = AS_NOW if blocks is None else compare_filling(subject, blocks, block)
    return _Tile(
        edge=edge,
        is_column=is_column,
        threads=threads,
        rows=rows,
        columns=columns,
        registers=registers,
        shared_bytes=shared_bytes,
        warps_per_sm=warps,
        filling=filling,
    )


def _describe_tile(tile: _Tile) -> Sentence:
    fits = (
        NOTHING
        if tile.warps_per_sm is None
        else say(", so that {warps} fit on an SM", warps=count(tile.warps_per_sm, "warp"))
    )
    return say(
        "Blocks of {threads} then make tiles of {rows} × {columns} results, with about {registers} a thread and {shared} of shared memory for "
        "{depth} steps{fits}.",
        threads=count(tile.threads, "thread"),
        rows=number(tile.rows),
        columns=number(tile.columns),
        registers=count(tile.registers, "register"),
        shared=size(tile.shared_bytes),
        depth=number(_DEPTH),
        fits=fits,
    )


OPTIMIZER = Optimizer(
    name="register_tiling",
    title="Tile in registers",
    group="data reuse",
    needs_samples=False,
    find=match,
)
