"""Loads and stores, and where the lanes of any memory instruction go: its space and its address operand."""

from collections.abc import Callable

import numpy as np

from gpa_lsp.code.ptx.model import Address, Operand, Register, Space, Symbol
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.emulator.engine.accesses import Access, Place
from gpa_lsp.execution.emulator.engine.binder import Binder, UnsupportedInstruction, flatten
from gpa_lsp.execution.emulator.engine.fragments import Fragment, Step
from gpa_lsp.execution.emulator.engine.lane_steps import narrow_mask
from gpa_lsp.execution.emulator.engine.values import U32, U64, Value
from gpa_lsp.execution.emulator.semantics.model import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BYTES


def bind_load(binder: Binder) -> None:
    """``ld``, ``ldu``: parameters of a kernel are constants, those of functions are registers, all else is memory.

    Raises:
        UnsupportedInstruction: an operand or type is of a kind it cannot have.
    """
    instruction = binder.instruction
    kind = instruction.types[-1]
    dtype = kind.natural_dtype
    results = flatten(instruction.destinations)
    operand = instruction.sources[0]
    is_parameter = find_space(instruction.suffixes) is Space.PARAM
    if is_parameter and _bind_parameter_load(binder, operand, results, kind):
        return
    find, offset = bind_address(binder, operand)
    access = make_access(binder, AccessKind.LOAD, dtype, len(results), offset)
    binder.share_memo(access, operand)
    slots = [binder.write(result, kind) for result in results]
    binder.steps.append(_make_load(binder, access, find, slots))
    binder.finish()


def _bind_parameter_load(binder: Binder, operand: Operand, results: list[Operand | None], kind: ScalarType) -> bool:
    if not isinstance(operand, Address) or not isinstance(operand.base, Symbol):
        return False
    if binder.function.is_entry and binder.machine.is_kernel_parameter(operand.base.name):
        return False
    size = kind.natural_dtype.itemsize
    start = operand.base.offset_bytes + operand.offset_bytes
    for place, result in enumerate(results):
        source = binder.load_piece(operand.base.name, start + place * size, size)
        slot = binder.write(result, kind)
        binder.steps.append(_copy_as(source, slot, kind))
    binder.finish()
    return True


def _copy_as(source: int, result: int, kind: ScalarType) -> Step:
    dtype = kind.storage_dtype

    def step(fragment: Fragment) -> None:
        value = fragment.registers[source]
        fragment.registers[result] = value if value.dtype is dtype else value.view(dtype)

    return step


# Takes addresses and mask, gives where lanes go, by space: each lane is in the mask of at most one place
Resolver = Callable[[Fragment, Value, Value], list[tuple[Space, Place]]]
# Gives the addresses of lanes without the instruction's offset: uint64 or uint32, over the lanes or uniform
Finder = Callable[[Fragment], Value]


def _make_load(binder: Binder, access: Access, find: Finder, slots: list[int]) -> Step:
    resolve, guard = make_resolver(binder, access), binder.guard
    tracer = binder.machine.tracer
    watched = access.space in (Space.SHARED, Space.GENERIC)
    zero = access.dtype.type(0)

    def step(fragment: Fragment) -> None:
        mask = narrow_mask(fragment, guard)
        address = find(fragment)
        registers = fragment.registers
        places = resolve(fragment, address, mask)
        for number, (space, (views, index, allowed, bad)) in enumerate(places):
            if watched and space is Space.SHARED and fragment.batch.checks is not None:
                fragment.batch.checks.check_load(access, fragment, index, allowed)
            if tracer is not None:
                tracer.record(access, fragment, space, address, _join(allowed, bad))
            for view, slot in zip(views, slots, strict=True):
                value = view[index] if type(index) is int else view.take(index, mode="wrap")
                if bad is not None:
                    value = np.where(bad, zero, value)
                if number:
                    value = np.where(allowed if bad is None else allowed | bad, value, registers[slot])
                registers[slot] = value
        if not places:
            for slot in slots:
                registers[slot] = zero

    return step


def _join(allowed: Value, bad: Value) -> Value:
    return allowed if bad is None else allowed | bad


def bind_store(binder: Binder) -> None:
    """``st``: arguments and results of functions are registers, all else is memory. Of lanes that store to one address the highest one wins.

    Raises:
        UnsupportedInstruction: an operand or type is of a kind it cannot have.
    """
    instruction = binder.instruction
    if "async" in instruction.suffixes:
        raise UnsupportedInstruction("stores to other blocks of a cluster")
    kind = instruction.types[-1]
    values = flatten(instruction.sources[1:2])
    operand = instruction.sources[0]
    sources = [binder.read(value, kind) for value in values]
    is_parameter = find_space(instruction.suffixes) is Space.PARAM
    if is_parameter and isinstance(operand, Address) and isinstance(operand.base, Symbol):
        _bind_parameter_store(binder, operand, operand.base, sources, kind)
        return
    find, offset = bind_address(binder, operand)
    access = make_access(binder, AccessKind.STORE, kind.storage_dtype, len(sources), offset)
    binder.share_memo(access, operand)
    binder.steps.append(_make_store(binder, access, find, sources))
    binder.finish()


def _bind_parameter_store(binder: Binder, operand: Address, base: Symbol, sources: list[int], kind: ScalarType) -> None:
    size = kind.natural_dtype.itemsize
    start = base.offset_bytes + operand.offset_bytes
    for place, source in enumerate(sources):
        slot = binder.store_piece(base.name, start + place * size, size)
        binder.steps.append(_store_piece(source, slot, binder.layout.dtypes[slot], binder.guard))
    binder.finish()


def _store_piece(source: int, slot: int, dtype: "np.dtype[np.generic]", guard: int | None) -> Step:
    def step(fragment: Fragment) -> None:
        registers = fragment.registers
        value = registers[source]
        value = value if value.dtype is dtype else value.view(dtype)
        if guard is not None:
            value = np.where(registers[guard], value, registers[slot])
        registers[slot] = value

    return step


def _make_store(binder: Binder, access: Access, find: Finder, sources: list[int]) -> Step:
    resolve, guard = make_resolver(binder, access), binder.guard
    tracer = binder.machine.tracer
    watched = access.space in (Space.SHARED, Space.GENERIC)
    dtype = access.dtype

    def step(fragment: Fragment) -> None:
        mask = narrow_mask(fragment, guard)
        address = find(fragment)
        registers = fragment.registers
        for space, (views, index, allowed, bad) in resolve(fragment, address, mask):
            values = []
            for source in sources:
                value = registers[source]
                values.append(value if value.dtype is dtype else value.view(dtype))
            checks = fragment.batch.checks if watched and space is Space.SHARED else None
            if checks is not None:
                checks.check_store(access, fragment, index, allowed)
            if tracer is not None:
                tracer.record(access, fragment, space, address, _join(allowed, bad))
            for view, value in zip(views, values, strict=True):
                store_lanes(view, index, value, allowed)
            if checks is not None:
                checks.check_values(access, fragment, index, allowed, views=views, values=values)

    return step


def store_lanes(view: Value, index: "Value | int", value: Value, mask: Value) -> None:
    """Store what lanes hold; the highest lane wins.

    Args:
        index: int64[n], or an int for all.
        mask: bool[n]; None for all.
    """
    if type(index) is int:
        if mask is None:
            view[index] = value[-1] if value.ndim else value
            return
        lanes = np.flatnonzero(mask)
        if len(lanes):
            view[index] = value[lanes[-1]] if value.ndim else value
        return
    if mask is None:
        view[index] = value
        return
    view[index[mask]] = value[mask] if value.ndim else value  # type: ignore[index]


STRONG = frozenset({"volatile", "relaxed", "acquire", "release", "mmio"})
_SPACES = {
    "global": Space.GLOBAL,
    "shared": Space.SHARED,
    "local": Space.LOCAL,
    "const": Space.CONST,
    "param": Space.PARAM,
}


def find_space(suffixes: tuple[str, ...]) -> Space:
    """The state space an instruction names; GENERIC when it names none."""
    for suffix in suffixes:
        found = _SPACES.get(suffix.partition("::")[0])
        if found is not None:
            return found
    return Space.GENERIC


def make_access(binder: Binder, kind: AccessKind, dtype: "np.dtype[np.generic]", elements: int, offset: int) -> Access:
    """The access of the instruction that is being bound."""
    suffixes = binder.instruction.suffixes
    return Access(
        instruction=binder.static,
        kind=kind,
        space=find_space(suffixes),
        dtype=dtype,
        elements=elements,
        offset_bytes=offset,
        is_strong=kind in (AccessKind.ATOMIC, AccessKind.REDUCTION) or not STRONG.isdisjoint(suffixes),
    )


def bind_address(binder: Binder, operand: Operand) -> tuple[Finder, int]:
    """What reads an address operand, and the constant offset beside it.

    Raises:
        UnsupportedInstruction: it is none.
    """
    if not isinstance(operand, Address):
        raise UnsupportedInstruction("address of this kind")
    if operand.base is None:
        absolute = np.uint64(operand.offset_bytes % (1 << 64))
        return lambda _fragment: absolute, 0
    if isinstance(operand.base, Symbol):
        symbol = Symbol(operand.base.name, operand.base.offset_bytes + operand.offset_bytes)
        slot = binder.read_address(symbol)
        return lambda fragment: fragment.registers[slot], 0
    return _make_finder(binder, operand.base), operand.offset_bytes


def _make_finder(binder: Binder, base: Register) -> Finder:
    slot = base.slot
    width = binder.layout.dtypes[slot].itemsize
    if width not in (4, 8):
        raise UnsupportedInstruction("address in a register of this width")
    if width == 4:

        def find_narrow(fragment: Fragment) -> Value:
            value = fragment.registers[slot]
            return value if value.dtype is U32 else value.view(U32)

        return find_narrow

    def find(fragment: Fragment) -> Value:
        value = fragment.registers[slot]
        return value if value.dtype is U64 else value.view(U64)

    return find


def make_resolver(binder: Binder, access: Access) -> Resolver:
    """What finds the places of an access, for its space."""
    arena = binder.machine.arena
    space = access.space
    if space is Space.SHARED:
        return lambda fragment, address, mask: [
            (Space.SHARED, fragment.batch.memory.resolve_shared(access, fragment.warps, address, mask))
        ]
    if space is Space.LOCAL:
        return lambda fragment, address, mask: [
            (Space.LOCAL, fragment.batch.memory.resolve_local(access, fragment.warps, address, mask))
        ]
    if space is not Space.GENERIC:

        def resolve(fragment: Fragment, address: Value, mask: Value) -> list[tuple[Space, Place]]:
            wide = address if address.dtype is U64 else address.astype(U64)
            return [(space, arena.resolve(access, fragment.warps, wide, mask))]

        return resolve
    return lambda fragment, address, mask: _resolve_generic(binder, access, fragment, address, mask)


def _resolve_generic(
    binder: Binder, access: Access, fragment: Fragment, address: Value, mask: Value
) -> list[tuple[Space, Place]]:
    arena = binder.machine.arena
    wide = address if address.dtype is U64 else address.astype(U64)
    moved = wide + access.wide_offset
    if not moved.ndim:
        windowed = SHARED_WINDOW <= int(moved) < LOCAL_WINDOW + WINDOW_BYTES
    else:
        seen = moved if mask is None else moved[mask]
        windowed = len(seen) > 0 and int(seen.max()) >= SHARED_WINDOW
    if not windowed:
        place = arena.resolve(access, fragment.warps, wide, mask)
        return [(access.guess_space if place[0] is access.guess_views else Space.GLOBAL, place)]
    return _resolve_windows(binder, access, fragment, wide, mask)


def _resolve_windows(
    binder: Binder, access: Access, fragment: Fragment, wide: Value, mask: Value
) -> list[tuple[Space, Place]]:
    """Lanes that go to several spaces, or all to a window."""
    memory, lanes = fragment.batch.memory, fragment.warps.lanes
    moved = np.broadcast_to(wide + access.wide_offset, (lanes,))
    wanted = np.ones(lanes, np.bool_) if mask is None else mask
    in_shared = (moved - np.uint64(SHARED_WINDOW)) < np.uint64(WINDOW_BYTES)
    in_local = (moved - np.uint64(LOCAL_WINDOW)) < np.uint64(WINDOW_BYTES)
    places = []
    for space, window, where in (
        (Space.SHARED, SHARED_WINDOW, wanted & in_shared),
        (Space.LOCAL, LOCAL_WINDOW, wanted & in_local),
    ):
        if where.any():
            resolve = memory.resolve_shared if space is Space.SHARED else memory.resolve_local
            places.append((space, resolve(access, fragment.warps, wide - np.uint64(window), where)))
    rest = wanted & ~in_shared & ~in_local
    if rest.any():
        places.append((Space.GLOBAL, binder.machine.arena.resolve(access, fragment.warps, wide, rest)))
    return places
