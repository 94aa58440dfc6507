"""Loads, stores and atomic operations as steps of numpy, in place of what the core does; nothing is watched for races."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpa_lsp.code.ptx.model import Address, Immediate, Operand, PtxInstruction, Space, Symbol
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.emulator.engine.arena import ARENA_BASE, Region
from gpa_lsp.execution.emulator.engine.faults import Access
from gpa_lsp.execution.emulator.engine.fragments import Fragment, guarded_mask
from gpa_lsp.execution.emulator.engine.functions import find_space
from gpa_lsp.execution.emulator.engine.geometry import Value, pack_lanes
from gpa_lsp.execution.emulator.engine.tracing import Tracer
from gpa_lsp.execution.emulator.semantics.model import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BYTES, flatten
from tests.emulator.oracle.atomics import AtomicFunction, atomic_function
from tests.emulator.oracle.binder import Binder, Step, Writer

_PENDING_SHIFT, _PHASE_SHIFT = 20, 63
_COUNT_MASK = (1 << _PENDING_SHIFT) - 1
# Takes the results of all lanes, a fragment, the memory that lanes go to, their positions in the fragment, and where in the memory each accesses:
# int64[k] both
Mover = Callable[[list[Value], Fragment, Value, Value, Value], None]


def find_binder(instruction: PtxInstruction) -> Callable[[Binder], Step] | None:
    """Maker of the step of an access; None for other instructions."""
    words = instruction.suffixes
    match instruction.opcode, words[:1]:
        case (("ld" | "ldu"), _):
            return _bind_load
        case "st", _:
            return _bind_store
        case (("atom" | "red"), _):
            return _bind_atomic
        case ("mbarrier", ("init" | "arrive" | "arrive_drop",)):
            return _bind_arrival
        case "cp", _ if words[1:3] == ("mbarrier", "arrive") and "noinc" in words:
            return _bind_arrival
    return None


def _bind_load(binder: Binder) -> Step:
    instruction = binder.instruction
    kind, operand = instruction.types[-1], instruction.sources[0]
    results = flatten(instruction.destinations) or [None]
    writers, dtype = [binder.write(result, kind) for result in results], kind.natural_dtype
    pieces = _list_pieces(binder, operand, dtype.itemsize, len(results))
    if pieces is not None:

        def copy(fragment: Fragment) -> None:
            for slot, write in zip(pieces, writers, strict=True):
                write(fragment, fragment.registers[slot].view(dtype))

        return binder.count(copy)

    def move(out: list[Value], fragment: Fragment, data: Value, lanes: Value, offsets: Value) -> None:
        for number, value in enumerate(out):
            value[lanes] = data[_spread(offsets, number, dtype)].view(dtype)[:, 0]

    return _bind(binder, AccessKind.LOAD, dtype, len(results), move, writers=writers)


def _bind_store(binder: Binder) -> Step:
    instruction = binder.instruction
    kind, operand = instruction.types[-1], instruction.sources[0]
    readers = [binder.read(value, kind) for value in flatten(instruction.sources[1:2])]
    dtype = kind.natural_dtype
    pieces = _list_pieces(binder, operand, dtype.itemsize, len(readers))
    if pieces is not None:
        writers = [binder.write_slot(slot, dtype) for slot in pieces]

        def copy(fragment: Fragment) -> None:
            for read, write in zip(readers, writers, strict=True):
                write(fragment, read(fragment))

        return binder.count(copy)

    def move(_: list[Value], fragment: Fragment, data: Value, lanes: Value, offsets: Value) -> None:
        for number, read in enumerate(readers):
            value = np.broadcast_to(read(fragment), (fragment.warps.lanes,))[lanes]
            data[_spread(offsets, number, dtype)] = np.ascontiguousarray(value)[:, None].view(np.uint8)

    return _bind(binder, AccessKind.STORE, dtype, len(readers), move, writers=[])


def _list_pieces(binder: Binder, operand: Operand, size: int, count: int) -> list[int] | None:
    """The slots of parts of a parameter; None for kernels' own, and for memory."""
    if find_space(binder.instruction.suffixes) is not Space.PARAM or not isinstance(operand, Address):
        return None
    base = operand.base
    if not isinstance(base, Symbol) or (binder.is_kernel and binder.machine.is_kernel_parameter(base.name)):
        return None
    first, parts = base.offset_bytes + operand.offset_bytes, binder.pieces[base.name]
    return [parts[first + size * one, size] for one in range(count)]


def _bind_atomic(binder: Binder) -> Step:
    function = atomic_function(binder.instruction)
    assert function is not None
    return _bind_function(binder, function, binder.instruction.sources[1 : 1 + function.operands])


def _bind_arrival(binder: Binder) -> Step:
    words, sources = binder.instruction.suffixes, binder.instruction.sources
    evaluate: Callable[..., Any] = {"init": _begin, "arrive_drop": _arrive_and_drop}.get(words[0], _arrive)
    has_count = len(sources) > 1 and "expect_tx" not in words
    function = AtomicFunction(name="mbarrier", evaluate=evaluate, type=ScalarType.U64)
    return _bind_function(binder, function, (sources[1] if has_count else Immediate(1),))


def _begin(_: Value, count: Value) -> Value:
    return count | count << np.uint64(_PENDING_SHIFT)


def _arrive(word: Value, count: Value) -> Value:
    expected = word & np.uint64(_COUNT_MASK)
    pending = word >> np.uint64(_PENDING_SHIFT) & np.uint64(_COUNT_MASK)
    left = pending - min(count, pending)
    phase = word >> np.uint64(_PHASE_SHIFT) ^ np.uint64(left == 0)
    return expected | (left or expected) << np.uint64(_PENDING_SHIFT) | phase << np.uint64(_PHASE_SHIFT)


def _arrive_and_drop(word: Value, count: Value) -> Value:
    expected = word & np.uint64(_COUNT_MASK)
    return _arrive((word & ~np.uint64(_COUNT_MASK)) | (expected - min(count, expected)), count)


def _bind_function(binder: Binder, function: AtomicFunction, operands: tuple[Operand, ...]) -> Step:
    instruction, kind = binder.instruction, function.type
    sources = [[binder.read(one, kind) for one in flatten((operand,))] for operand in operands]
    writers = [binder.write(result, kind) for result in flatten(instruction.destinations)]
    is_kept = any(one is not None for one in flatten(instruction.destinations))

    dtype = kind.natural_dtype

    def move(out: list[Value], fragment: Fragment, data: Value, lanes: Value, offsets: Value) -> None:
        every = fragment.warps.lanes
        for element in range(len(sources[0])):
            given = [np.broadcast_to(part[element](fragment), every) for part in sources]
            found = out[element] if out else np.zeros(every, dtype)
            for lane, place in zip(lanes.tolist(), _spread(offsets, element, dtype), strict=True):
                found[lane] = data[place].view(dtype)[0]
                changed = function.evaluate(found[lane], *(part[lane] for part in given))
                data[place] = np.array([changed], dtype).view(np.uint8)

    access = AccessKind.ATOMIC if is_kept else AccessKind.REDUCTION
    return _bind(binder, access, dtype, len(sources[0]), move, writers=writers)


def _spread(offsets: Value, element: int, dtype: "np.dtype[Any]") -> Value:
    """Places of the bytes of an element: int64[k, bytes]."""
    return offsets[:, None] + element * dtype.itemsize + np.arange(dtype.itemsize)


def _bind(
    binder: Binder, kind: AccessKind, dtype: "np.dtype[Any]", elements: int, move: Mover, *, writers: list[Writer]
) -> Step:
    operand, named = binder.instruction.sources[0], find_space(binder.instruction.suffixes)
    assert isinstance(operand, Address)
    slot, offset, read = getattr(operand.base, "slot", None), operand.offset_bytes, None
    if isinstance(operand.base, Symbol):
        read = binder.read(Symbol(operand.base.name, operand.base.offset_bytes + offset), ScalarType.U64)
        offset = 0
    access = Access(instruction=binder.static, kind=kind, bytes=dtype.itemsize * elements)
    guard, tracer, arena = binder.guard, binder.machine.tracer, binder.machine.arena

    def find_addresses(fragment: Fragment) -> Value:
        value = np.uint64(0) if slot is None else fragment.registers[slot]
        value = value if read is None else read(fragment)
        found = np.broadcast_to(value.view(f"u{value.dtype.itemsize}"), (fragment.warps.lanes,)).astype(np.uint64)
        found = found + np.uint64(offset % (1 << 64))
        is_narrow = named in (Space.SHARED, Space.LOCAL) and value.dtype.itemsize == 4
        return found & np.uint64(0xFFFFFFFF) if is_narrow else found

    def step(fragment: Fragment) -> None:
        mask, addresses = guarded_mask(fragment, guard), find_addresses(fragment)
        parts = _part(named, addresses, mask)
        out = [np.zeros(fragment.warps.lanes, dtype) for _ in writers]
        for space, lanes, places in parts:
            data, offsets, fits = _locate(
                fragment, arena.regions, space=space, lanes=lanes, addresses=places, access=access
            )
            report = arena if data is None else fragment.batch.memory
            report.report(access, space, fragment.warps, lanes[~fits], places[~fits])
            if tracer is not None and space is not Space.PARAM:
                _record(tracer, access, fragment, space, lanes=lanes, addresses=places)
            with np.errstate(all="ignore"):
                move(out, fragment, arena.data if data is None else data, lanes[fits], offsets[fits])
        for write, value in zip(writers, out, strict=True):
            write(fragment, value)

    return binder.count(step)


def _record(
    tracer: Tracer, access: Access, fragment: Fragment, space: Space, *, lanes: Value, addresses: Value
) -> None:
    """Add the rows of an access to the trace."""
    if not tracer._has_room() or not len(lanes):
        return
    wanted = np.zeros(fragment.warps.lanes, np.bool_)
    wanted[lanes] = True
    masks = pack_lanes(wanted)
    rows = np.flatnonzero(masks)
    number = tracer._paths.number(fragment.frame, access.instruction)
    assert tracer._rows is not None
    ids = fragment.warps.ids[rows]
    tracer._rows.append(ids, masks[rows], number, size_bytes=access.bytes, space=int(space), addresses=addresses)
    tracer.held_bytes = tracer._rows.held_bytes


def _part(named: Space, addresses: Value, mask: Value) -> list[tuple[Space, Value, Value]]:
    """Lanes by the space they go to, int64[k], and their addresses in it, uint64[k]."""
    if named is not Space.GENERIC:
        lanes = np.flatnonzero(mask)
        return [(named, lanes, addresses[lanes])] if len(lanes) else []
    found, rest = [], mask
    for space, window in ((Space.SHARED, SHARED_WINDOW), (Space.LOCAL, LOCAL_WINDOW)):
        inside = addresses - np.uint64(window) < np.uint64(WINDOW_BYTES)
        lanes = np.flatnonzero(mask & inside)
        found.append((space, lanes, addresses[lanes] - np.uint64(window)))
        rest = rest & ~inside
    lanes = np.flatnonzero(rest)
    found.append((Space.GLOBAL, lanes, addresses[lanes]))
    return [one for one in found if len(one[1])]


def _locate(
    fragment: Fragment, regions: list[Region], *, space: Space, lanes: Value, addresses: Value, access: Access
) -> tuple[Value, Value, Value]:
    """Bytes of a space (None for the arena's), where in them each lane accesses, int64[k], and whether it may, bool[k]."""
    memory, size = fragment.batch.memory, access.bytes
    fits = addresses % np.uint64(size) == 0
    low = (addresses & np.uint64((1 << 62) - 1)).astype(np.int64)
    if space in (Space.SHARED, Space.LOCAL):
        owner, geometry = fragment.warps.slots()[lanes // 32], memory.geometry
        stride, room = geometry.shared_stride_bytes, geometry.shared_bytes
        if space is Space.LOCAL:
            owner, stride = fragment.warps.ids[lanes // 32] * 32 + lanes % 32, memory.local_stride_bytes
            room = stride
        data = memory.shared if space is Space.SHARED else memory.local
        return data, owner * stride + low, fits & (addresses < 1 << 62) & (low + size <= room)
    inside = np.zeros(len(lanes), np.bool_)
    for region in regions:
        if access.kind is AccessKind.LOAD or region.space is Space.GLOBAL:
            end = region.base + region.size_bytes
            inside |= (low >= region.base) & (low + size <= end) & (addresses < 1 << 62)
    return None, low - ARENA_BASE, fits & inside
