"""Loads and stores."""

import numpy as np

from gpa_lsp.code.ptx.model import Address, Operand, Space, Symbol
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.emulator.engine.accesses import Access
from gpa_lsp.execution.emulator.engine.binder import Binder, UnsupportedInstruction, flatten
from gpa_lsp.execution.emulator.engine.fragments import Fragment, Step
from gpa_lsp.execution.emulator.engine.lane_steps import narrow_mask
from gpa_lsp.execution.emulator.engine.resolving import Finder, bind_address, find_space, make_access, make_resolver
from gpa_lsp.execution.emulator.engine.values import Value


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
