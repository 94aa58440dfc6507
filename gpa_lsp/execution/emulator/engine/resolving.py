"""Where the lanes of a memory instruction go: its space, its address operand, and what finds the places."""

from collections.abc import Callable

import numpy as np

from gpa_lsp.code.ptx.model import Address, Operand, Register, Space, Symbol
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.emulator.engine.accesses import Access, Place
from gpa_lsp.execution.emulator.engine.binder import Binder, UnsupportedInstruction
from gpa_lsp.execution.emulator.engine.fragments import Fragment
from gpa_lsp.execution.emulator.engine.private_memory import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BYTES
from gpa_lsp.execution.emulator.engine.values import U32, U64, Value

# Takes addresses and mask, gives where lanes go, by space: each lane is in the mask of at most one place
Resolver = Callable[[Fragment, Value, Value], list[tuple[Space, Place]]]
# Gives the addresses of lanes without the instruction's offset: uint64 or uint32, over the lanes or uniform
Finder = Callable[[Fragment], Value]

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
