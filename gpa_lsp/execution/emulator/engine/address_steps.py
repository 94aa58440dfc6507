"""Addresses: ``cvta``, ``isspacep``, ``mapa``, and ``mov`` of what is no ordinary operand."""

from collections.abc import Callable

import numpy as np

from gpa_lsp.code.ptx.model import Immediate, Register, SpecialRegister, Symbol
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.engine.binder import Binder, UnsupportedInstruction, read_as
from gpa_lsp.execution.emulator.engine.fragments import Fragment, Step
from gpa_lsp.execution.emulator.engine.private_memory import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BYTES
from gpa_lsp.execution.emulator.engine.values import U32, U64, Value, pack_lanes

_WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}


def bind_mov(binder: Binder) -> None:
    """``mov`` between registers of one width, of literals, special registers and addresses.

    Raises:
        UnsupportedInstruction: an operand is of another kind.
    """
    instruction = binder.instruction
    if len(instruction.destinations) != 1 or not isinstance(
        instruction.sources[0], Register | Immediate | SpecialRegister | Symbol
    ):
        raise UnsupportedInstruction("mov of these operands")
    kind = instruction.types[-1]
    source = binder.read(instruction.sources[0], kind)
    binder.steps.append(_copy(source, binder.write(instruction.destinations[0], kind)))
    binder.finish()


def _copy(source: int, result: int) -> Step:
    def step(fragment: Fragment) -> None:
        fragment.registers[result] = fragment.registers[source]

    return step


def bind_cvta(binder: Binder) -> None:
    """``cvta`` and ``cvta.to``: shared and local memory have windows in generic addresses, all else is the same.

    Raises:
        UnsupportedInstruction: an operand is of a kind it cannot have.
    """
    instruction = binder.instruction
    kind = instruction.types[-1]
    window = _find_window(instruction.suffixes)
    source = binder.read(instruction.sources[0], kind)
    result = binder.write(instruction.destinations[0], kind)
    if window == 0:
        binder.steps.append(_copy(source, result))
    else:
        away = "to" in instruction.suffixes
        binder.steps.append(_shift(source, result, kind, -window if away else window))
    binder.finish()


def _find_window(suffixes: tuple[str, ...]) -> int:
    for suffix in suffixes:
        found = _WINDOWS.get(suffix.partition("::")[0])
        if found is not None:
            return found
    return 0


def _shift(source: int, result: int, kind: ScalarType, distance: int) -> Step:
    dtype = kind.storage_dtype
    added = dtype.type(distance % (1 << 8 * dtype.itemsize))

    def step(fragment: Fragment) -> None:
        fragment.registers[result] = read_as(fragment, source, dtype) + added

    return step


def bind_isspacep(binder: Binder) -> None:
    """``isspacep``: which window an address lies in.

    Raises:
        UnsupportedInstruction: an operand is of a kind it cannot have.
    """
    instruction = binder.instruction
    source = binder.read(instruction.sources[0], ScalarType.U64)
    result = binder.write(instruction.destinations[0], ScalarType.PRED)
    window = _find_window(instruction.suffixes)
    space = next((suffix for suffix in instruction.suffixes if suffix.isalpha()), "")
    holds = _make_space_test(space, window, binder)

    def step(fragment: Fragment) -> None:
        fragment.registers[result] = holds(read_as(fragment, source, U64))

    binder.steps.append(step)
    binder.finish()


def _make_space_test(space: str, window: int, binder: Binder) -> Callable[[Value], Value]:
    if window:
        return lambda address: (address - np.uint64(window)) < np.uint64(WINDOW_BYTES)
    arena = binder.machine.arena
    if space == "global":
        # Everything that is not in another window counts as global, as on the hardware.
        return lambda address: (
            ((address - np.uint64(SHARED_WINDOW)) >= np.uint64(LOCAL_WINDOW - SHARED_WINDOW + WINDOW_BYTES))
            & ~arena.is_within(address, fixed=True)
        )
    return lambda address: arena.is_within(address, fixed=True)


def bind_mapa(binder: Binder) -> None:
    """``mapa``: clusters have one block, so an address in it is the same address.

    Raises:
        UnsupportedInstruction: an operand is of a kind it cannot have.
    """
    instruction = binder.instruction
    kind = instruction.types[-1]
    source = binder.read(instruction.sources[0], kind)
    binder.steps.append(_copy(source, binder.write(instruction.destinations[0], kind)))
    binder.finish()


def bind_activemask(binder: Binder) -> None:
    """``activemask``: lanes of the warp that are together here.

    Raises:
        UnsupportedInstruction: an operand is of a kind it cannot have.
    """
    result = binder.write(binder.instruction.destinations[0], ScalarType.U32)

    def step(fragment: Fragment) -> None:
        everyone = np.uint32(0xFFFFFFFF)
        masks = everyone if fragment.mask is None else np.repeat(pack_lanes(fragment.mask), 32).astype(U32, copy=False)
        fragment.registers[result] = masks

    binder.steps.append(step)
    binder.finish()
