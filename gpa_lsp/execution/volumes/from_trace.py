"""Expressions from a few traced blocks: :func:`recover_expressions`, :func:`list_probe_blocks`.

Every lane's address is known together with its thread, its block and how often its warp had executed the instruction. Integer coefficients are
solved from some of these rows and verified on all; only what gives every address exactly is extrapolated to other blocks. The rest (gathers,
lists, data-dependent strides) stands for itself by what was counted: :class:`~gpa_lsp.execution.volumes.expressions.SampledAccess`.

Source: Ernst et al. (2022), section 1.2, take expressions from a code generator; this finds them for compiled code.
"""

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.static_instructions import AccessKind, StaticInstruction, bypasses_l1
from gpa_lsp.code.symbolic_accesses.requests import SECTOR_BYTES, WARP_LANES
from gpa_lsp.execution.accesses.l2_traffic import place_block
from gpa_lsp.execution.accesses.lane_addresses import Marks
from gpa_lsp.execution.accesses.piece_rows import PieceRows
from gpa_lsp.execution.accesses.references import order_rows
from gpa_lsp.execution.accesses.request_kinds import RequestKinds
from gpa_lsp.execution.emulator.model import MOST_BLOCKS, Trace
from gpa_lsp.execution.volumes.devices import VolumeDevice
from gpa_lsp.execution.volumes.expressions import (
    AccessedArray,
    AccessExpression,
    BlockBox,
    IssuedWork,
    KernelAccesses,
    LaunchShape,
    LoopTerm,
    SampledAccess,
    ThreadRegion,
    Triple,
    make_triple,
)
from gpa_lsp.execution.volumes.groups import Integers, group_accesses
from gpa_lsp.execution.volumes.model import TOLERANCE_RATIO, Contradiction, Rule, VolumeMode, VolumePrediction
from gpa_lsp.execution.volumes.predict import predict_volumes
from gpa_lsp.execution.volumes.trace_sampling import (
    VARIABLE_NAMES,
    Continuation,
    LaneRows,
    RowLanes,
    continue_sampled,
    count_growth,
    count_shared_cycles,
    find_independent,
    find_touched,
    find_trips,
    pick_examples,
    sample_instruction,
    share_sectors,
    solve_affine,
)
from gpa_lsp.execution.volumes.traffic import count_requested_sectors
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.numbers import format_count
from gpa_lsp.foundation.prose import Sentence, list_of, say
from gpa_lsp.foundation.records import ColumnRecord

_WHO = 6
_BORDER_PROBES = 7  # between two blocks of which one accesses memory and the other does not


def list_probe_blocks(grid: Triple) -> tuple[int, ...]:
    """Blocks whose traces tell every coefficient: the first and its neighbours along each axis, one in the middle, and those at the ends.

    All of them have a number in a trace, also where the grid has more blocks than that.

    >>> list_probe_blocks((4, 1, 1)), len(list_probe_blocks((79, 63, 124)))
    ((0, 1, 2, 3), 9)
    """
    whole_x, whole_y = grid[0], grid[1]
    grid = _cut_grid(grid)
    middle = tuple(count // 2 for count in grid)
    last = tuple(count - 1 for count in grid)
    places = {(0, 0, 0), middle, last}
    for axis in range(3):
        if grid[axis] > 1:
            places.add(tuple(1 if other == axis else 0 for other in range(3)))
            places.add(tuple(last[other] if other == axis else middle[other] for other in range(3)))
    corner = {(last[0], 0, 0)} if grid[1] == grid[2] == 1 else set()
    return tuple(sorted((z * whole_y + y) * whole_x + x for x, y, z in places | corner))


def list_border_blocks(trace: Trace) -> tuple[int, ...]:
    """Blocks to trace next, of a grid that is larger than its work: some between the last that accesses memory and the first that does not.

    They lie on the axes, at even distances. None where no block is left out, where those that are left out lie behind no border, and where the
    borders are known.
    """
    works = np.isin(trace.traced_blocks, np.unique(trace.accesses.block))
    if works.all() or not works.any():
        return ()
    places = np.stack(place_block(trace.grid, trace.traced_blocks.astype(np.int64)), axis=1)
    last = places[works].max(axis=0)
    if (places[~works] <= last).all(axis=1).any():
        return ()
    found: set[int] = set()
    steps = (1, trace.grid[0], trace.grid[0] * trace.grid[1])
    for axis in range(3):
        on_axis = (np.delete(places, axis, axis=1) == 0).all(axis=1)
        idle = places[~works & on_axis, axis]
        first, end = int(last[axis]), int(idle.min()) if len(idle) else trace.grid[axis]
        between = np.linspace(first, end, _BORDER_PROBES + 2, dtype=np.int64)[1:-1]
        found.update(place * steps[axis] for place in {*between.tolist(), end - 1} if first < place < end)
    return tuple(sorted(one for one in found if one < MOST_BLOCKS))


def list_fewest_probe_blocks(grid: Triple) -> tuple[int, ...]:
    """The blocks of :func:`list_probe_blocks` that tell coefficients, but nothing of the ends of the grid: for blocks that take long.

    >>> list_fewest_probe_blocks((4, 1, 1)), list_fewest_probe_blocks((32, 32, 1))
    ((0, 1), (0, 1, 32))
    """
    steps = (1, grid[0], grid[0] * grid[1])
    cut = _cut_grid(grid)
    return (0, *(steps[axis] for axis in range(3) if cut[axis] > 1))


def _cut_grid(grid: Triple) -> Triple:
    """The part of a grid whose blocks all have a number in a trace: whole layers, or whole rows where not one layer is left.

    >>> _cut_grid((2147483647, 65535, 65535)), _cut_grid((65536, 32768, 5)), _cut_grid((79, 63, 124))
    ((2147483647, 2, 1), (65536, 32768, 2), (79, 63, 124))
    """
    x, y, z = grid
    return x, min(y, max(1, MOST_BLOCKS // x)), min(z, max(1, MOST_BLOCKS // (x * y)))


def recover_expressions(
    trace: Trace,
    *,
    flops_per_thread: float | None = None,
    flops_are_double: bool = True,
    issued: IssuedWork | None = None,
    ratios: npt.NDArray[np.float64] | None = None,
    is_executed_whole: bool = False,
    piece: PieceRows | None = None,
    continuation: Continuation | None = None,
) -> KernelAccesses:
    """Accesses of a kernel to global memory, recovered from a trace of some of its blocks.

    Args:
        trace: of whole blocks, with all their accesses or the first ones of each; :func:`list_probe_blocks` says of which.
        ratios: float64[instructions], executions of a block that were counted, of those in the trace; None for as many.
        is_executed_whole: what is a mean of threads is one of all that were launched.

    Raises:
        InputError: no block was traced.
    """
    if not len(trace.traced_blocks):
        raise InputError("the trace holds no block", remedy="trace a few blocks of the launch")
    space, instruction = trace.accesses.space, trace.accesses.instruction
    rows = np.flatnonzero((space == int(Space.GLOBAL)) | (space == int(Space.TEXTURE)))
    order = rows[order_rows(instruction[rows])]
    ordered = instruction[order].astype(np.int64)
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    kinds = (PieceRows(trace) if piece is None else piece).kinds
    arrays = tuple(
        AccessedArray(name=buffer.name, size_bytes=buffer.size_bytes, base_bytes=buffer.base)
        for buffer in trace.buffers
    )
    context = _Context(trace=trace, kinds=kinds, patterns={}, touched={}, continuation=continuation, growths={})
    parts = np.split(order, starts[1:])  # of no rows, one part without rows, and no instruction
    found = [
        _recover(context, trace.instructions[index], part)
        for index, part in zip(ordered[starts].tolist(), parts, strict=False)
    ]
    sampled = [one for one in found if isinstance(one, SampledAccess)]
    shared = share_sectors(sampled, context.touched, len(trace.traced_blocks))
    if continuation is not None:
        shared = continue_sampled(shared, continuation, context.growths, arrays)
    return KernelAccesses(
        name=trace.kernel,
        arrays=arrays,
        accesses=tuple(one for one in found if isinstance(one, AccessExpression)),
        sampled=shared,
        flops_per_thread=flops_per_thread,
        flops_are_double=flops_are_double,
        issued=issued,
        shared_cycles_per_warp=count_shared_cycles(trace, ratios),
        notes=tuple(_list_notes(trace, continuation)),
        is_executed_whole=is_executed_whole,
        is_whole=continuation is None and trace.is_complete and len(trace.traced_blocks) == prod(trace.grid),
    )


def _list_notes(trace: Trace, continuation: Continuation | None) -> Iterator[Sentence]:
    if np.any(trace.accesses.space == int(Space.LOCAL)):
        yield say("Accesses to local memory are not counted.")
    if continuation is not None:
        yield say(
            "Of each access, at most the first {count} of a warp were followed and the others counted; loops are taken to go on as they began.",
            count=format_count(continuation.most_executions),
        )
    elif not trace.is_complete:
        yield say("The trace is incomplete; what is missing is not counted.")


def find_launch_shape(kernel: KernelAccesses, block: Triple, grid: Triple, fold: Triple = (1, 1, 1)) -> LaunchShape:
    """The launch, with as many updates as there are threads that access anything: what lies behind a guard of all accesses has no work."""
    high = tuple(count * size for count, size in zip(grid, block, strict=True))
    regions = [access.region for access in kernel.accesses]
    if regions and all(region is not None for region in regions):
        high = tuple(max(region.high[axis] for region in regions if region is not None) for axis in range(3))
    x, y, z = (extent * count for extent, count in zip(high, fold, strict=True))
    return LaunchShape(block=block, grid=grid, updates=(x, y, z), fold=fold)


class _Pattern(ColumnRecord, frozen=True, kw_only=True):
    """Common ground of the instructions that the same lanes execute in the same order."""

    lanes: RowLanes  # of each
    examples: tuple[Integers, Integers]  # rows and lanes to solve from
    columns: Integers  # of the examples
    kept: list[int]  # columns that tell something
    # global indexes of the threads that execute them; None for all traced ones, or for no box
    region: ThreadRegion | None
    active_ratio: float  # of the threads in that box (of all traced ones without a box) that execute them
    trips: float  # executions per thread, mean
    has_equal_trips: bool  # every thread executes them equally often
    is_together: bool  # the lanes of a warp execute them together, but for as many requests as volumes may be off
    solved: "dict[bytes, _Solution]"  # what gives their addresses, by the distances of these from the first one


class _Context(ColumnRecord, frozen=True, kw_only=True):
    trace: Trace
    kinds: RequestKinds
    patterns: dict[bytes, _Pattern]
    touched: dict[int, Integers]
    continuation: Continuation | None
    growths: dict[int, float]


def _recover(
    context: _Context, instruction: StaticInstruction, rows: npt.NDArray[np.intp]
) -> AccessExpression | SampledAccess:
    pattern = _find_pattern(context, rows)
    lanes = LaneRows(trace=context.trace, rows=rows, lanes=pattern.lanes)
    array = _find_array(context.trace, *lanes.find_ends(context.kinds))
    if array is None or instruction.kind is None:
        return _sample(context, instruction, lanes, None, say("its addresses lie in several arrays"))
    found = _express(context, instruction, lanes, pattern, array)
    return found if isinstance(found, AccessExpression) else _sample(context, instruction, lanes, array, found)


def _express(
    context: _Context, instruction: StaticInstruction, lanes: LaneRows, pattern: _Pattern, array: int
) -> AccessExpression | Sentence:
    """An instruction as an expression, or the reason why it is none, as a clause."""
    trace = context.trace
    solved = _solve(context, lanes, trace.buffers[array].base, pattern)
    if solved is None:
        return say("its address is not an affine function of thread, block and loop")
    if pattern.active_ratio < 1.0:
        return say("only some threads make it, and these do not lie side by side")
    if unseen := _list_unseen(trace, pattern.kept):
        return say("the traced blocks do not show its stride along {axes}", axes=list_of(unseen))
    constant, steps, trips = solved
    if not pattern.has_equal_trips:
        return say("trip counts of its loops differ between threads")
    if not pattern.is_together:
        return say("threads of a warp make it at different times")
    if context.continuation is not None:
        longer = context.continuation.lengthen(instruction.index, trips, pattern.trips)
        further = steps[_WHO + len(trips) - 1] * (longer[-1] - trips[-1])
        low, high = lanes.find_ends(context.kinds)
        if _find_array(trace, low + min(0, further), high + max(0, further)) != array:
            return say("its loops do not go on as they began")
        trips = longer
    loops = tuple(
        LoopTerm(step_bytes=step, trips=count) for step, count in zip(steps[_WHO:], trips, strict=True) if count > 1
    )
    of_all, own, of_block = _name_steps(steps, trace.block_threads)
    return AccessExpression(
        array=array,
        kind=instruction.kind or AccessKind.LOAD,
        element_bytes=max(1, int(trace.accesses.bytes[lanes.rows[0]])),  # of a texel, not of the registers it fills
        constant_bytes=constant,
        loops=loops,
        region=pattern.region,
        instruction=instruction.index,
        bypasses_l1=bypasses_l1(instruction),
        global_bytes=of_all,
        thread_bytes=own,
        block_bytes=of_block,
    )


def _name_steps(steps: Sequence[int], block: Triple) -> tuple[Triple, Triple, Triple]:
    """Coefficients of the global index where a block's step is its size times a thread's, and of each alone elsewhere."""
    of_all, own, of_block = [0, 0, 0], [0, 0, 0], [0, 0, 0]
    for axis in range(3):
        thread, whole = steps[axis], steps[axis + 3]
        if block[axis] == 1:
            of_all[axis] = whole
        elif whole == thread * block[axis]:
            of_all[axis] = thread
        else:
            own[axis], of_block[axis] = thread, whole
    return make_triple(of_all), make_triple(own), make_triple(of_block)


_Solution = tuple[int, list[int], tuple[int, ...]] | None  # Constant, steps and trips


def _solve(context: _Context, lanes: LaneRows, base: int, pattern: _Pattern) -> _Solution:
    """Solution for the addresses of an instruction within an array.

    An instruction whose addresses differ by a constant from those of a solved one has the same steps: loops that a compiler unrolled.
    """
    kinds = context.kinds
    bases = kinds.base[lanes.rows]
    first = int(bases[0])
    key = kinds.shape[lanes.rows].tobytes() + (bases - first).tobytes()
    if key not in pattern.solved:
        pattern.solved[key] = _solve_lanes(context, lanes, first, pattern)
    solved = pattern.solved[key]
    return None if solved is None else (solved[0] + first - base, *solved[1:])


def _solve_lanes(context: _Context, lanes: LaneRows, base: int, pattern: _Pattern) -> _Solution:
    """Solution without a look at other instructions; nested loops are tried where one counter does not explain the addresses."""
    whole = round(pattern.trips) or 1
    relative = lanes.read(*pattern.examples) - base
    solved = solve_affine(pattern.columns, relative, pattern.kept)
    if solved is not None and lanes.are_given(context.kinds, base, *solved):
        return solved[0], solved[1].tolist(), (max(1, whole),)
    if whole == 1 and int(lanes.lanes.execution.max()) == 0:
        return None
    trips = find_trips(
        lanes.read(*lanes.lanes.list_thread(int(lanes.lanes.executions.argmax()))) - base,
        is_cut=context.continuation is not None,
    )
    if trips is None or len(trips) < 2:
        return None
    columns = lanes.lanes.list_columns(*pattern.examples, trips)
    solved = solve_affine(columns, relative, find_independent(columns))
    if solved is None or not lanes.are_given(context.kinds, base, *solved, trips=trips):
        return None
    return solved[0], solved[1].tolist(), trips


def _find_pattern(context: _Context, rows: npt.NDArray[np.intp]) -> _Pattern:
    found = context.trace.accesses
    parts = (found.block[rows], found.warp[rows], found.execution[rows], found.lane_mask[rows])
    key = b"".join(part.tobytes() for part in parts)
    if key not in context.patterns:
        context.patterns[key] = _build_pattern(context, rows)
    return context.patterns[key]


def _build_pattern(context: _Context, rows: npt.NDArray[np.intp]) -> _Pattern:
    lanes = RowLanes(context.trace, rows)
    examples = lanes.pick(pick_examples(lanes.count))
    columns = lanes.list_columns(*examples)
    counts = lanes.executions[lanes.executions > 0]
    region, active_ratio = _find_region(lanes, context.trace)
    return _Pattern(
        lanes=lanes,
        examples=examples,
        columns=columns,
        kept=find_independent(columns),
        region=region,
        active_ratio=active_ratio,
        trips=float(counts.mean()),
        has_equal_trips=int(counts.min()) == int(counts.max()),
        is_together=len(rows)
        <= (1 + TOLERANCE_RATIO) * _count_least_requests(lanes, prod(context.trace.block_threads)),
        solved={},
    )


def _count_least_requests(lanes: RowLanes, block: int) -> int:
    """Requests of the same executions by warps whose lanes stay together; *block* threads are in a block."""
    threads = np.flatnonzero(lanes.executions)
    slot, thread = np.divmod(threads, block)
    warps = slot * block + thread // WARP_LANES  # one number each
    order = np.lexsort((lanes.executions[threads], warps))
    is_last = np.append(warps[order][1:] != warps[order][:-1], True)
    return int(lanes.executions[threads][order][is_last].sum())


def _find_array(trace: Trace, low: int, high: int) -> int | None:
    """Index of the array that all addresses from the lowest to the highest are in; None when there are several, or none."""
    for index, buffer in enumerate(trace.buffers):
        if buffer.base <= low and high < buffer.base + buffer.size_bytes:
            return index
    return None


def _list_unseen(trace: Trace, kept: Sequence[int]) -> list[str]:
    """Variables that vary in the launch, but not (or not by themselves) in the traced blocks."""
    extents = (*trace.block_threads, *trace.grid)
    return [VARIABLE_NAMES[index] for index in range(_WHO) if extents[index] > 1 and index not in kept]


def _sample(
    context: _Context, instruction: StaticInstruction, lanes: LaneRows, array: int | None, why: Sentence
) -> SampledAccess:
    context.touched[instruction.index] = find_touched(context.trace, lanes)
    if context.continuation is not None:
        whole = len(context.touched[instruction.index])
        context.growths[instruction.index] = count_growth(lanes, context.continuation, instruction.index, whole)
    return sample_instruction(context.trace, instruction, lanes, array, why)


def _list_traced(trace: Trace) -> Integers:
    """Global indexes of every traced thread, int64[threads, 3], by block."""
    size = trace.block_threads
    threads = np.stack(place_block(size, np.arange(prod(size), dtype=np.int64)), axis=1)
    blocks = np.stack(place_block(trace.grid, trace.traced_blocks.astype(np.int64)), axis=1)
    places: Integers = (blocks[:, np.newaxis, :] * np.array(size) + threads).reshape(-1, 3)
    return places


def _find_region(lanes: RowLanes, trace: Trace) -> tuple[ThreadRegion | None, float]:
    """Box of the threads that made an access, and the part of its threads that did: see the fields of :class:`_Pattern`.

    A side of the box that coincides with the traced threads' own is taken as open: nothing beyond it was seen to be left out.
    """
    threads = np.flatnonzero(lanes.executions)
    if len(threads) == prod(trace.block_threads) * len(trace.traced_blocks):
        return None, 1.0
    traced = _list_traced(trace)
    size = np.array(trace.block_threads, dtype=np.int64)
    who = np.stack(lanes.place_threads(threads), axis=1)
    active = who[:, 3:] * size + who[:, :3]
    low, high = active.min(axis=0), active.max(axis=0) + 1
    inside = np.all((traced >= low) & (traced < high), axis=1)
    if np.count_nonzero(inside) != len(threads):
        return None, len(threads) / len(traced)
    extent = np.array(trace.grid, dtype=np.int64) * size
    lows = np.where(low == traced.min(axis=0), 0, low)
    highs = np.where(high == traced.max(axis=0) + 1, extent, high)
    return ThreadRegion(low=make_triple(lows.tolist()), high=make_triple(highs.tolist())), 1.0


def predict_traced(
    recovered: KernelAccesses,
    trace: Trace,
    device: VolumeDevice,
    *,
    mode: VolumeMode,
    registers: int = 0,
    shared_bytes: int = 0,
    piece: PieceRows | None = None,
    counts_requests: bool = True,
) -> VolumePrediction:
    """Data volumes of a launch whose expressions were recovered; the corrected model's are held to what the traced blocks did.

    Args:
        counts_requests: the trace has all requests of its blocks.

    Raises:
        InputError: no SM holds a block.
    """
    piece = PieceRows(trace) if piece is None else piece
    shape = find_launch_shape(recovered, trace.block_threads, trace.grid)
    predicted = predict_volumes(recovered, shape, device, registers=registers, shared_bytes=shared_bytes, mode=mode)
    if mode is VolumeMode.PAPER:
        return predicted
    miscounts = find_miscounts(recovered, trace, piece) if counts_requests else ()
    found = (*predicted.contradictions, *miscounts, *find_shortfalls(predicted, trace, piece))
    return replace(predicted, contradictions=found)


def find_miscounts(kernel: KernelAccesses, trace: Trace, piece: PieceRows | None = None) -> tuple[Contradiction, ...]:
    """Sectors that a kernel's expressions give for the traced blocks, where the trace itself has others."""
    piece = PieceRows(trace) if piece is None else piece
    x, y, z = (count * size for count, size in zip(trace.grid, trace.block_threads, strict=True))
    launch = LaunchShape(block=trace.block_threads, grid=trace.grid, updates=(x, y, z))
    everywhere = ThreadRegion(low=(0, 0, 0), high=(x, y, z))
    found = []
    for name, loads in (("loads", True), ("stores and atomics", False)):
        is_counted = np.zeros(len(trace.instructions), dtype=np.bool_)
        is_counted[
            [one.instruction for one in kernel.accesses if one.instruction is not None and one.is_store is not loads]
        ] = True
        counted = count_traced(piece, is_counted) * SECTOR_BYTES
        given = SECTOR_BYTES * sum(
            count_requested_sectors(group, entry.array.base_bytes, launch, everywhere, box)
            for entry in group_accesses(kernel)
            for group in entry.groups
            if group.is_store is not loads
            for box in _list_boxes(trace)
        )
        if abs(given - counted) > TOLERANCE_RATIO * max(given, counted):
            least, most = sorted(((given, f"{name} by expressions"), (counted, f"{name} as emulated")))
            # They must be equal, so that the larger one breaks the rule.
            found.append(
                Contradiction(
                    rule=Rule.COUNTED, low_name=most[1], low_bytes=most[0], high_name=least[1], high_bytes=least[0]
                )
            )
    return tuple(found)


def find_shortfalls(
    prediction: VolumePrediction, trace: Trace, piece: PieceRows | None = None
) -> tuple[Contradiction, ...]:
    """Bytes that the traced blocks alone touch, where the whole launch is predicted to move fewer to or from DRAM."""
    piece = PieceRows(trace) if piece is None else piece
    kinds = np.array([-1 if one.kind is None else one.kind for one in trace.instructions], dtype=np.int8)
    found = []
    for verb, way, kind, moved in (
        ("read", "loads from DRAM", AccessKind.STORE, prediction.volumes.dram_load),
        ("write", "stores to DRAM", AccessKind.LOAD, prediction.volumes.dram_store),
    ):
        touched = piece.count_sectors(kinds != kind) * SECTOR_BYTES
        given = prediction.scale_to_launch(moved)
        if touched > given * (1 + TOLERANCE_RATIO):
            found.append(
                Contradiction(
                    rule=Rule.COUNTED,
                    low_name=f"sectors the traced blocks {verb}",
                    low_bytes=float(touched),
                    high_name=way,
                    high_bytes=given,
                )
            )
    return tuple(found)


def _list_boxes(trace: Trace) -> Iterator[BlockBox]:
    """Boxes of the traced blocks, one for each run of neighbours along x."""
    width, height, _ = trace.grid
    blocks = np.sort(trace.traced_blocks.astype(np.int64))
    starts = np.flatnonzero((np.diff(blocks, prepend=-2) != 1) | (blocks % width == 0))
    for first, count in zip(blocks[starts].tolist(), np.diff(starts, append=len(blocks)).tolist(), strict=True):
        x, y, z = first % width, first // width % height, first // (width * height)
        yield BlockBox(low=(x, y, z), high=(x + count, y + 1, z + 1))


def count_traced(piece: PieceRows, is_counted: Marks) -> int:
    """Distinct sectors of each warp-level access of some instructions, summed."""
    is_of_kind = is_counted[piece.piece.accesses.instruction[piece.kinds.rows]]
    return int((piece.measured.sectors * piece.kinds.counts)[is_of_kind].sum())
