"""Loads and stores, and where the lanes of any memory instruction go: its space and its address operand."""

from collections.abc import Callable, Sequence

import numpy as np

from gpa_lsp.code.ptx.model import Address, Operand, Register, Space, Symbol
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.emulator.engine.accesses import Access, Place
from gpa_lsp.execution.emulator.engine.binder import Binder, UnsupportedInstruction, flatten, read_as
from gpa_lsp.execution.emulator.engine.fragments import Fragment
from gpa_lsp.execution.emulator.engine.lane_steps import narrow_mask
from gpa_lsp.execution.emulator.engine.values import U32, U64, Value
from gpa_lsp.execution.emulator.semantics.changes import find_change
from gpa_lsp.execution.emulator.semantics.model import LOCAL_WINDOW, LONGEST_VECTOR, SHARED_WINDOW, WINDOW_BYTES

# Takes addresses and mask, gives where lanes go, by space: each lane is in the mask of at most one place
Resolver = Callable[[Fragment, Value, Value], list[tuple[Space, Place]]]
# Gives the addresses of lanes without the instruction's offset: uint64 or uint32, over the lanes or uniform
Finder = Callable[[Fragment], Value]


def bind_load(binder: Binder) -> None:
    """``ld``, ``ldu``: parameters of a kernel are constants, those of functions are registers, all else is memory.

    Raises:
        UnsupportedInstruction: an operand or type is of a kind it cannot have.
    """
    instruction = binder.instruction
    kind, operand = instruction.types[-1], instruction.sources[0]
    results = flatten(instruction.destinations) or [None]
    _check_registers(binder, results, kind.bytes)
    if not _bind_parameter(binder, operand, binder.load_piece, kind, len(results)):
        check_address(binder, operand)
    binder.finish()


def bind_store(binder: Binder) -> None:
    """``st``: arguments and results of functions are registers, all else is memory. Of lanes that store to one address the highest one wins.

    Raises:
        UnsupportedInstruction: an operand or type is of a kind it cannot have.
    """
    instruction = binder.instruction
    if "async" in instruction.suffixes:
        raise UnsupportedInstruction("stores to other blocks of a cluster")
    kind, operand = instruction.types[-1], instruction.sources[0]
    values = flatten(instruction.sources[1:2])
    _check_registers(binder, values, kind.bytes)
    for value in values:
        binder.check(value, kind)
    if not _bind_parameter(binder, operand, binder.store_piece, kind, len(values)):
        check_address(binder, operand)
    binder.finish()


def bind_change(binder: Binder) -> None:
    """``atom``, ``red``, and arrivals at barriers: lanes one after the other.

    Raises:
        UnsupportedInstruction: a form that is not known.
    """
    instruction = binder.instruction
    change = find_change(instruction)
    if change is None:
        raise UnsupportedInstruction
    parts = [flatten((operand,)) for operand in change.operands]
    results = flatten(instruction.destinations)
    count = len(parts[0])
    if any(len(part) != count for part in parts) or len(results) not in (0, count) or (count > 1 and len(parts) > 1):
        raise UnsupportedInstruction("operands of this number")
    for one in (one for part in parts for one in part):
        binder.check(one, change.type)
    _check_registers(binder, results, change.type.bytes, is_exact=True)
    check_address(binder, instruction.sources[0])
    binder.finish()


def bind_mbarrier(binder: Binder) -> None:
    """``mbarrier`` objects, as words of memory: expected arrivals, pending ones, and the phase in the highest bit.

    Raises:
        UnsupportedInstruction: a form that is not known.
    """
    words = binder.instruction.suffixes
    if words[:1] in (("inval",), ("expect_tx",)):
        binder.finish()
    elif words[:1] in (("test_wait",), ("try_wait",)):
        _bind_wait(binder, has_parity="parity" in words)
    else:
        bind_change(binder)


_PHASE_SHIFT = 63


def _bind_wait(binder: Binder, *, has_parity: bool) -> None:
    """Whether the phase that a token (or parity) stands for has ended."""
    instruction = binder.instruction
    kind = ScalarType.U32 if has_parity else ScalarType.U64
    token = binder.read(instruction.sources[1], kind)
    find, offset = bind_address(binder, instruction.sources[0])
    access = make_access(binder, AccessKind.LOAD, U64, 1, offset)
    access.is_strong = True
    result = binder.write(flatten(instruction.destinations)[0], ScalarType.PRED)
    resolve, guard = make_resolver(binder, access), binder.guard

    def step(fragment: Fragment) -> None:
        done: Value = np.bool_(False)
        for _, (views, index, _, _) in resolve(fragment, find(fragment), narrow_mask(fragment, guard)):
            word = views[0].take(index, mode="wrap")
            phase = word >> np.uint64(_PHASE_SHIFT)
            given = read_as(fragment, token, kind.storage_dtype)
            asked = (given & given.dtype.type(1)).astype(np.uint64) if has_parity else given >> np.uint64(_PHASE_SHIFT)
            done = phase != asked
        fragment.registers[result] = done

    binder.steps.append(step)
    binder.finish()


def _check_registers(
    binder: Binder, operands: Sequence[Operand | None], size_bytes: int, *, is_exact: bool = False
) -> None:
    """Refuse registers that an access of elements of a size cannot have, and vectors that are too long.

    Raises:
        UnsupportedInstruction: one is narrower, or not as wide as the others.
    """
    widths = {binder.layout.dtypes[one.slot].itemsize for one in operands if isinstance(one, Register)}
    if len(operands) > LONGEST_VECTOR or any(isinstance(one, Register) and one.selector for one in operands):
        raise UnsupportedInstruction("vector of this kind")
    if len(widths) > 1 or min(widths, default=size_bytes) < size_bytes or (is_exact and widths > {size_bytes}):
        raise UnsupportedInstruction("registers of this width")


def _bind_parameter(
    binder: Binder, operand: Operand, find_piece: Callable[[str, int, int], int], kind: ScalarType, count: int
) -> bool:
    """Note the parts of a parameter that are accessed; False for all else than what functions are given and give."""
    is_parameter = find_space(binder.instruction.suffixes) is Space.PARAM
    if not is_parameter or not isinstance(operand, Address) or not isinstance(operand.base, Symbol):
        return False
    base, size = operand.base, kind.natural_dtype.itemsize
    if binder.function.is_entry and binder.machine.is_kernel_parameter(base.name):
        return False
    for place in range(count):
        find_piece(base.name, base.offset_bytes + operand.offset_bytes + place * size, size)
    return True


def store_lanes(view: Value, index: Value, value: Value, mask: Value) -> None:
    """Store what lanes hold; the highest lane wins.

    Args:
        index: int64[n].
        mask: bool[n]; None for all.
    """
    if mask is None:
        view[index] = value
        return
    view[index[mask]] = value[mask] if value.ndim else value


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


def check_address(binder: Binder, operand: Operand) -> None:
    """Refuse an operand that is no address.

    Raises:
        UnsupportedInstruction: it is none, or in a register that none is in.
    """
    if not isinstance(operand, Address):
        raise UnsupportedInstruction("address of this kind")
    if isinstance(operand.base, Symbol):
        binder.check(operand.base, ScalarType.U64)
    elif operand.base is not None and binder.layout.dtypes[operand.base.slot].itemsize not in (4, 8):
        raise UnsupportedInstruction("address in a register of this width")


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
