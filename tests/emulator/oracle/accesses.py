"""Loads, stores and atomic operations as steps of numpy, in place of what the core does."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpa_lsp.code.ptx.model import Address, Immediate, Operand, Space, Symbol
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.emulator.engine.accesses import Access, Place
from gpa_lsp.execution.emulator.engine.binder import Binder, flatten, read_as
from gpa_lsp.execution.emulator.engine.fragments import Fragment
from gpa_lsp.execution.emulator.engine.lane_steps import narrow_mask
from gpa_lsp.execution.emulator.engine.memory_steps import (
    bind_address,
    find_space,
    make_access,
    make_resolver,
    store_lanes,
)
from gpa_lsp.execution.emulator.engine.values import Value
from tests.emulator.oracle.atomics import AtomicFunction, atomic_function

_PENDING_SHIFT, _PHASE_SHIFT = 20, 63
_COUNT_MASK = (1 << _PENDING_SHIFT) - 1
Mover = Callable[[Fragment, Place], None]


def find_binder(binder: Binder) -> Callable[[Binder], None] | None:
    """What binds an access; None for other instructions."""
    instruction = binder.instruction
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


def _bind_load(binder: Binder) -> None:
    instruction = binder.instruction
    kind, operand = instruction.types[-1], instruction.sources[0]
    results = flatten(instruction.destinations) or [None]
    slots = [binder.write(result, kind) for result in results]
    pieces = _list_pieces(binder, operand, binder.load_piece, kind, len(results))
    if pieces is not None:
        _copy(binder, pieces, slots)
        return

    def move(fragment: Fragment, place: Place) -> None:
        views, index, allowed, _ = place
        for view, slot in zip(views, slots, strict=True):
            value = view.take(index, mode="wrap")
            if allowed is not None:
                value = np.where(allowed, value, fragment.registers[slot])
            fragment.registers[slot] = value

    _bind(binder, AccessKind.LOAD, kind.natural_dtype, len(results), move, slots=slots)


def _bind_store(binder: Binder) -> None:
    instruction = binder.instruction
    kind, operand = instruction.types[-1], instruction.sources[0]
    sources = [binder.read(value, kind) for value in flatten(instruction.sources[1:2])]
    pieces = _list_pieces(binder, operand, binder.store_piece, kind, len(sources))
    if pieces is not None:
        _copy(binder, sources, pieces)
        return

    def move(fragment: Fragment, place: Place) -> None:
        views, index, allowed, _ = place
        values = [read_as(fragment, source, kind.storage_dtype) for source in sources]
        for view, value in zip(views, values, strict=True):
            store_lanes(view, index, value, allowed)

    _bind(binder, AccessKind.STORE, kind.storage_dtype, len(sources), move, slots=[], sources=sources)


def _list_pieces(
    binder: Binder, operand: Operand, find: Callable[[str, int, int], int], kind: ScalarType, count: int
) -> list[int] | None:
    """The slots of parts of a parameter; None for kernels' own, and for memory."""
    if find_space(binder.instruction.suffixes) is not Space.PARAM or not isinstance(operand, Address):
        return None
    base, size = operand.base, kind.natural_dtype.itemsize
    if not isinstance(base, Symbol) or (binder.function.is_entry and binder.machine.is_kernel_parameter(base.name)):
        return None
    return [find(base.name, base.offset_bytes + operand.offset_bytes + size * one, size) for one in range(count)]


def _copy(binder: Binder, sources: list[int], results: list[int]) -> None:
    dtypes, guard = [binder.layout.dtypes[slot] for slot in results], binder.guard

    def step(fragment: Fragment) -> None:
        registers = fragment.registers
        for source, result, dtype in zip(sources, results, dtypes, strict=True):
            value = read_as(fragment, source, dtype)
            registers[result] = value if guard is None else np.where(registers[guard], value, registers[result])

    binder.steps.append(step)
    binder.finish()


def _bind_atomic(binder: Binder) -> None:
    function = atomic_function(binder.instruction)
    assert function is not None
    _bind_function(binder, function, binder.instruction.sources[1 : 1 + function.operands])


def _bind_arrival(binder: Binder) -> None:
    words, sources = binder.instruction.suffixes, binder.instruction.sources
    evaluate: Callable[..., Any] = {"init": _begin, "arrive_drop": _arrive_and_drop}.get(words[0], _arrive)
    has_count = len(sources) > 1 and "expect_tx" not in words
    function = AtomicFunction(name="mbarrier", evaluate=evaluate, type=ScalarType.U64)
    _bind_function(binder, function, (sources[1] if has_count else Immediate(1),))


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


def _bind_function(binder: Binder, function: AtomicFunction, operands: tuple[Operand, ...]) -> None:
    instruction, kind = binder.instruction, function.type
    sources = [[binder.read(one, kind) for one in flatten((operand,))] for operand in operands]
    slots = [binder.write(result, kind) for result in flatten(instruction.destinations)]
    is_kept = any(one is not None for one in flatten(instruction.destinations))

    def move(fragment: Fragment, place: Place) -> None:
        views, index, allowed, _ = place
        every = fragment.warps.lanes
        lanes = np.arange(every) if allowed is None else np.flatnonzero(allowed)
        for element, view in enumerate(views):
            found = np.zeros(every, view.dtype)
            given = [np.broadcast_to(read_as(fragment, one[element], view.dtype), every) for one in sources]
            for lane in lanes.tolist():
                at = index[lane]
                found[lane] = view[at]
                view[at] = function.evaluate(view[at], *(one[lane] for one in given))
            if slots:
                before = fragment.registers[slots[element]]
                fragment.registers[slots[element]] = found if allowed is None else np.where(allowed, found, before)

    access = AccessKind.ATOMIC if is_kept else AccessKind.REDUCTION
    _bind(binder, access, kind.natural_dtype, len(sources[0]), move, slots=slots)


def _bind(
    binder: Binder,
    kind: AccessKind,
    dtype: "np.dtype[Any]",
    elements: int,
    move: Mover,
    *,
    slots: list[int],
    sources: "list[int] | tuple[()]" = (),
) -> None:
    find, offset = bind_address(binder, binder.instruction.sources[0])
    access: Access = make_access(binder, kind, dtype, elements, offset)
    resolve, guard, tracer = make_resolver(binder, access), binder.guard, binder.machine.tracer

    def step(fragment: Fragment) -> None:
        mask, address = narrow_mask(fragment, guard), find(fragment)
        places = resolve(fragment, address, mask)
        for slot in slots:
            fragment.registers[slot] = np.zeros(fragment.warps.lanes, dtype)
        for space, place in places:
            views, index, allowed, bad = place
            checks = fragment.batch.checks if space is Space.SHARED else None
            if checks is not None:
                check = checks.check_load if kind is AccessKind.LOAD else checks.check_store
                check(access, fragment, index, allowed)
            if tracer is not None:
                tracer.record(access, fragment, space, address, allowed if bad is None else allowed | bad)
            with np.errstate(all="ignore"):
                move(fragment, place)
            if checks is not None and sources:
                values = [read_as(fragment, source, dtype) for source in sources]
                checks.check_values(access, fragment, index, allowed, views=views, values=values)

    binder.steps.append(step)
    binder.finish()
