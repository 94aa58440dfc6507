"""Tables and charts of occupancy: what each resource allows, and what other blocks would have.

Kernels of one program often ask for the same blocks, so tables are built once for each.
"""

from collections.abc import Sequence
from functools import lru_cache

from gpa_lsp.diagnosis.analyses.answers import Chart, ChartKind, Finding, Series, Table, Weight, list_columns
from gpa_lsp.foundation.numbers import Cell, Quantity
from gpa_lsp.foundation.prose import NOTHING, Code, Sentence, count, join, list_of, say, size
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.occupancy import BlockShape, Occupancy, OccupancyLimit, find_occupancy
from gpa_lsp.gpu.arch.occupancy_steps import (
    FreeRoom,
    OccupancyCurve,
    OccupancyStep,
    build_block_size_curve,
    build_register_curve,
    build_shared_curve,
    find_free_registers,
    find_free_shared,
    find_needed_carveout,
    list_steps_up,
)

# Sizes people choose; whole warps
BLOCK_SIZES = (32, 64, 96, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 896, 1024)

_LARGEST = "largest carve-out"  # Of a column and a series: the driver gives as much shared memory as there is


def tabulate_limits(architecture: Architecture, block: BlockShape, occupancy: Occupancy) -> Table:
    """Tabulate what a block asks for, what it is allocated, and how many blocks each resource alone would allow."""
    rules = architecture.occupancy
    most = rules.max_blocks_per_sm.value
    threads = architecture.sm.warp_size_threads.value
    asked: dict[OccupancyLimit, tuple[Cell, Cell]] = {
        OccupancyLimit.WARPS: (str(count(block.threads, "thread")), str(count(occupancy.warps_per_block, "warp"))),
        OccupancyLimit.BLOCKS: (str(count(1, "block")), str(count(1, "block"))),
        OccupancyLimit.REGISTERS: (
            say("{asked} per thread", asked=count(block.registers_per_thread)),
            say(
                "{thread} per thread, {block} per block",
                thread=count(occupancy.registers_per_warp // threads),
                block=count(occupancy.registers_per_warp * occupancy.warps_per_block),
            ),
        ),
        OccupancyLimit.SHARED_MEMORY: (
            str(count(block.shared_bytes, "byte")),
            say(
                "{given} of {all}",
                given=count(occupancy.shared_per_block_bytes, "byte"),
                all=count(occupancy.carveout_bytes),
            ),
        ),
        OccupancyLimit.BARRIERS: (
            str(count(block.barriers)),
            say("{asked} of {all}", asked=count(block.barriers), all=count(rules.block_barriers_per_sm.value)),
        ),
    }
    rows = tuple(
        (
            resource.value,
            *asked[resource],
            min(allowed, most) if resource is OccupancyLimit.BARRIERS else allowed,
            "limits" if resource in occupancy.limiters else "",
        )
        for resource, allowed in occupancy.limits
    )
    return Table(
        title="What limits the blocks of an SM",
        columns=list_columns("resource | a block asks for | is allocated | blocks per SM [count] | role"),
        rows=rows,
        note=say(
            "Registers are allocated in steps of {step} per thread, shared memory in steps of {unit}{reserved}.",
            step=count(_find_register_step(architecture)),
            unit=count(rules.shared_allocation_unit_bytes.value, "byte"),
            reserved=say(
                " with {driver} for the driver on top", driver=count(rules.shared_reserved_per_block_bytes.value)
            )
            if rules.shared_reserved_per_block_bytes.value
            else NOTHING,
        ),
    )


@lru_cache(maxsize=512)
def tabulate_block_sizes(
    architecture: Architecture,
    block: BlockShape,
    carveout_bytes: int | None,
    *,
    dynamic_bytes: int = 0,
    is_current: bool = True,
) -> tuple[Table, Chart]:
    """Occupancy over the size of a block, with its shared memory as it is and, where that divides evenly, with the dynamic part per thread.

    ``carveout_bytes``: as in :func:`~gpa_lsp.gpu.arch.occupancy.find_occupancy`.
    """
    curve = build_block_size_curve(architecture, block, carveout_bytes)
    scaled = _build_scaled(architecture, block, dynamic_bytes)
    free = None if carveout_bytes is None else _drop_equal(build_block_size_curve(architecture, block), curve)
    sizes = sorted({*BLOCK_SIZES, *((block.threads,) if is_current else ())})
    sizes = [size for size in sizes if size <= curve.end]
    heads = [
        "threads per block [count] | blocks per SM [count] | warps per SM [warps] | occupancy [ratio] | limited by"
    ]
    series = [_draw("as it is", curve)]
    for other, name in ((free, _LARGEST), (scaled, "shared memory scaled")):
        if other is not None:
            heads.append(f"occupancy, {name} [ratio]")
            series.append(_draw(name, other))
    rows = [
        (
            size,
            *_describe(curve.at(size)),
            *(other.at(size).ratio for other in (free, scaled) if other is not None),
        )
        for size in sizes
    ]
    table = Table(
        title="Occupancy over the size of a block",
        columns=list_columns(*heads),
        rows=tuple(rows),
        current_row=sizes.index(block.threads) if is_current else None,
        note=_note_shared(block, dynamic_bytes, is_scaled=scaled is not None, is_free=free is not None),
    )
    return table, _chart("block size", "threads per block", series, block.threads if is_current else None)


@lru_cache(maxsize=512)
def tabulate_registers(
    architecture: Architecture, block: BlockShape, carveout_bytes: int | None
) -> tuple[Table, Chart]:
    """Occupancy over the registers of a thread."""
    curve = build_register_curve(architecture, block, carveout_bytes)
    free = None if carveout_bytes is None else _drop_equal(build_register_curve(architecture, block), curve)
    title = "Occupancy over the registers of a thread"
    what = "registers per thread, from [count] | to [count]"
    table = _tabulate_jumps(curve, free, title, what, now=block.registers_per_thread)
    series = _draw_both(curve, free)
    return table, _chart("registers", "registers per thread", series, block.registers_per_thread)


@lru_cache(maxsize=512)
def tabulate_shared_memory(
    architecture: Architecture, block: BlockShape, carveout_bytes: int | None
) -> tuple[Table, Chart]:
    """Occupancy over the shared memory of a block."""
    curve = build_shared_curve(architecture, block, carveout_bytes)
    largest = architecture.occupancy.shared_per_sm_bytes.value
    is_set = carveout_bytes is not None and carveout_bytes < largest
    free = build_shared_curve(architecture, block) if is_set else None
    title = "Occupancy over the shared memory of a block"
    default = size(architecture.occupancy.default_shared_per_block_bytes.value)
    note = say("More than {default} must be dynamic and opted in to.", default=default)
    if is_set:
        note = say(
            "{note} The carve-out is {carveout}, or as much as one block needs; the driver can raise it to {largest} at the cost of L1.",
            note=note,
            carveout=size(carveout_bytes),
            largest=size(largest),
        )
    what = "shared memory per block, from [bytes] | to [bytes]"
    table = _tabulate_jumps(curve, free, title, what, now=block.shared_bytes, note=note)
    return table, _chart("shared memory", "bytes per block", _draw_both(curve, free), block.shared_bytes)


def _build_scaled(architecture: Architecture, block: BlockShape, dynamic_bytes: int) -> OccupancyCurve | None:
    """Build the curve with dynamic shared memory per thread; None without any, or where it does not divide evenly."""
    if not dynamic_bytes or dynamic_bytes % block.threads:
        return None
    return build_block_size_curve(architecture, block, scaled_bytes=dynamic_bytes)


def _drop_equal(curve: OccupancyCurve, other: OccupancyCurve) -> OccupancyCurve | None:
    """Return the curve, or None where it allows as many warps as the other everywhere."""
    is_equal = all(a.warps_per_sm == b.warps_per_sm for a, b in zip(curve.found, other.found, strict=True))
    return None if is_equal else curve


def _note_shared(block: BlockShape, dynamic_bytes: int, *, is_scaled: bool, is_free: bool) -> Sentence:
    notes = []
    if dynamic_bytes:
        notes.append(
            say(
                "Each block has {shared} of shared memory; tiles usually grow with their blocks.",
                shared=count(block.shared_bytes, "byte"),
            )
        )
    if is_scaled:
        notes.append(
            say(
                "Scaled: {each} of dynamic shared memory per thread, with the largest carve-out.",
                each=count(dynamic_bytes // block.threads, "byte"),
            )
        )
    if is_free:
        notes.append(say("In the other columns the carve-out is as it was set."))
    return join(notes)


def _tabulate_jumps(
    curve: OccupancyCurve, free: OccupancyCurve | None, title: str, what: str, *, now: int, note: Sentence = NOTHING
) -> Table:
    """A row per part on which nothing changes; ``free`` is the same with the largest carve-out, where that differs."""
    starts = sorted({start for one in (curve, free) if one is not None for start, _, _ in one.list_jumps()})
    ends = [start - 1 for start in starts[1:]] + [curve.end]
    heads = [what, "blocks per SM [count] | warps per SM [warps] | occupancy [ratio]"]
    if free is not None:
        heads.append(f"occupancy, {_LARGEST} [ratio]")
    return Table(
        title=title,
        columns=list_columns(*heads),
        rows=tuple(
            (start, end, *_describe(curve.at(start))[:3], *(() if free is None else (free.at(start).ratio,)))
            for start, end in zip(starts, ends, strict=True)
        ),
        current_row=next((i for i, end in enumerate(ends) if starts[0] <= now <= end), None),
        note=note,
    )


def _draw_both(curve: OccupancyCurve, free: OccupancyCurve | None) -> list[Series]:
    return [_draw("as it is", curve), *(() if free is None else (_draw(_LARGEST, free),))]


def _describe(found: Occupancy) -> tuple[int, int, float, str]:
    return found.blocks_per_sm, found.warps_per_sm, found.ratio, " and ".join(found.limiters)


def _draw(label: str, curve: OccupancyCurve) -> Series:
    """A step from each jump on, and the end."""
    parts = curve.list_jumps()
    points = [(first, found.ratio) for first, _, found in parts]
    if curve.end > points[-1][0]:
        points.append((curve.end, points[-1][1]))
    return Series(label=label, xs=tuple(float(x) for x, _ in points), ys=tuple(y for _, y in points))


def _chart(name: str, x_label: str, series: Sequence[Series], now: int | None) -> Chart:
    return Chart(
        title=f"Occupancy over {name}",
        kind=ChartKind.STEPS,
        x_label=x_label,
        y_label="occupancy",
        y_quantity=Quantity.RATIO,
        series=tuple(series),
        current_x=None if now is None else float(now),
    )


def _find_register_step(architecture: Architecture) -> int:
    return architecture.occupancy.register_allocation_unit_registers.value // architecture.sm.warp_size_threads.value


def tabulate_carveouts(architecture: Architecture, block: BlockShape, occupancy: Occupancy) -> Table | None:
    """Occupancy over the carve-outs that hold a block; None where they make no difference."""
    sizes = [
        size for size in architecture.occupancy.shared_carveouts_bytes.value if size >= occupancy.shared_per_block_bytes
    ]
    found = [find_occupancy(architecture, block, size) for size in sizes]
    if len({one.warps_per_sm for one in found}) < 2:
        return None
    return Table(
        title="Occupancy over the carve-out of shared memory",
        columns=list_columns(
            "carve-out [bytes] | blocks per SM [count] | warps per SM [warps] | occupancy [ratio] | limited by"
        ),
        rows=tuple((size, *_describe(one)) for size, one in zip(sizes, found, strict=True)),
        current_row=sizes.index(occupancy.carveout_bytes) if occupancy.carveout_bytes in sizes else None,
        note=say("What shared memory does not take is L1."),
    )


_REMEDIES = {
    OccupancyLimit.REGISTERS: say(
        "{bounds} or {option} makes the compiler use fewer; spills to local memory can cost more than the warps gain.",
        bounds=Code(text="__launch_bounds__"),
        option=Code(text="-maxrregcount"),
    ),
    OccupancyLimit.SHARED_MEMORY: say(
        "Use smaller tiles or narrower types; smaller tiles may read global memory more often."
    ),
    OccupancyLimit.WARPS: say("Another block size changes which threads share a block's memory and barriers."),
}

_CARVEOUT_REMEDY = say(
    "Call {function} with {attribute}; what shared memory takes is lost to L1.",
    function=Code(text="cudaFuncSetAttribute"),
    attribute=Code(text="cudaFuncAttributePreferredSharedMemoryCarveout"),
)


def describe_steps_up(
    architecture: Architecture,
    block: BlockShape,
    now: Occupancy,
    weight: Weight,
    remark: Sentence = NOTHING,
    *,
    keeps_size: bool = False,
) -> tuple[Finding, ...]:
    """A finding per smallest change that lets an SM hold more warps."""
    steps = list_steps_up(architecture, block, now.carveout_bytes)
    return tuple(
        Finding(
            text=join([_describe_step(architecture, block, now, step), remark]),
            weight=weight,
            remedy=_CARVEOUT_REMEDY if step.block == block else _REMEDIES[step.resources[0]],
        )
        for step in steps
        if not (keeps_size and OccupancyLimit.WARPS in step.resources)
    )


def _describe_step(architecture: Architecture, block: BlockShape, now: Occupancy, step: OccupancyStep) -> Sentence:
    return say(
        "{change}: {gained} more, {held} of {most} in all.",
        change=_say_change(architecture, block, now, step),
        gained=count(step.gained_warps, "warp"),
        held=count(step.occupancy.warps_per_sm),
        most=count(step.occupancy.max_warps_per_sm),
    )


def describe_free_room(architecture: Architecture, block: BlockShape, now: Occupancy) -> Finding | None:
    """Describe resources that a block can use without losing a warp; None where no block fits."""
    registers = find_free_registers(architecture, block, now.carveout_bytes)
    shared = find_free_shared(architecture, block, now.carveout_bytes)
    raised = find_free_shared(architecture, block)
    if registers is None or shared is None:
        return None
    parts = [
        _say_room(registers, "register", "per thread", now),
        _say_room(shared, "byte", "of shared memory per block", now),
    ]
    if raised is not None and raised.most > shared.most and raised.after != shared.after:
        parts.append(say("with the largest carve-out {spare} are free", spare=count(raised.spare, "byte")))
    return Finding(text=say("Room without losing a warp: {parts}.", parts=join(parts, "; ")))


def _say_room(room: FreeRoom, unit: str, words: str, now: Occupancy) -> Sentence:
    if room.after is None:
        return say("up to {most} {words}, the maximum", most=count(room.most, unit), words=words)
    lost = count(now.warps_per_sm - room.after.warps_per_sm, "warp")
    if not room.spare:
        return say("no {unit} {words}: one more costs {lost}", unit=unit, words=words, lost=lost)
    spare = count(room.spare, f"more {unit}")
    return say("{spare} {words}, the next one costs {lost}", spare=spare, words=words, lost=lost)


def _say_change(architecture: Architecture, block: BlockShape, now: Occupancy, step: OccupancyStep) -> Sentence:
    if step.block == block:
        larger = size(step.occupancy.carveout_bytes)
        return say("A carve-out of {larger} instead of {now}", larger=larger, now=size(now.carveout_bytes))
    if OccupancyLimit.WARPS in step.resources:
        threads = count(step.block.threads, "thread")
        change = say("Blocks of {threads} instead of {now}", threads=threads, now=count(block.threads))
    else:
        change = _say_resources(block, step)
    needed = find_needed_carveout(architecture, step.occupancy)
    if needed > now.carveout_bytes and step.occupancy.carveout_bytes > now.carveout_bytes:
        change = say("{change}, with the carve-out set to {needed}", change=change, needed=size(needed))
    return change


def _say_resources(block: BlockShape, step: OccupancyStep) -> Sentence:
    parts = []
    if OccupancyLimit.REGISTERS in step.resources:
        parts.append(
            say(
                "{fewer} per thread instead of {now}",
                fewer=count(step.block.registers_per_thread, "register"),
                now=count(block.registers_per_thread),
            )
        )
    if OccupancyLimit.SHARED_MEMORY in step.resources:
        parts.append(
            say(
                "{less} of shared memory per block instead of {now}",
                less=count(step.block.shared_bytes, "byte"),
                now=count(block.shared_bytes),
            )
        )
    return list_of(parts)
