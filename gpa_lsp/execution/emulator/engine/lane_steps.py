"""Instructions that each lane executes by itself, and those across the lanes of a warp."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpa_lsp.execution.emulator.engine.binder import Binder, read_as
from gpa_lsp.execution.emulator.engine.fragments import Fragment, Step
from gpa_lsp.execution.emulator.engine.values import BOOL, WARP_LANES, Value
from gpa_lsp.execution.emulator.model import FaultKind
from gpa_lsp.execution.emulator.operations.find import find_zero_divisors
from gpa_lsp.execution.emulator.operations.model import LaneOperation, WarpOperation

DType = np.dtype[Any]


def bind_lane_operation(binder: Binder, operation: LaneOperation) -> None:
    """Add the steps of a lane-wise instruction.

    Raises:
        UnsupportedInstruction: an operand is of a kind it cannot have.
    """
    instruction = binder.instruction
    sources = binder.read_all(instruction.sources, operation.source_types)
    dtypes = [kind.natural_dtype for kind in operation.source_types]
    if operation.can_divide_by_zero:
        binder.steps.append(_check_divisor(binder, sources[1], dtypes[1]))
    results = binder.write_all(instruction.destinations, operation.result_types)
    carry = binder.layout.carry
    if operation.reads_carry:
        sources.append(carry)
        dtypes.append(BOOL)
    if operation.writes_carry:
        results.append(carry)
    binder.steps.append(_make_step(operation.evaluate, sources, dtypes, results))
    binder.finish()


def _make_step(evaluate: Callable[..., Any], sources: list[int], dtypes: list[DType], results: list[int]) -> Step:
    if len(results) != 1:
        return _make_general(evaluate, sources, dtypes, results)
    match len(sources):
        case 1:
            return _make_one(evaluate, sources[0], dtypes[0], results[0])
        case 2:
            return _make_two(evaluate, sources, dtypes, results[0])
        case 3:
            return _make_three(evaluate, sources, dtypes, results[0])
    return _make_general(evaluate, sources, dtypes, results)


def _make_one(evaluate: Callable[..., Any], source: int, dtype: DType, result: int) -> Step:
    def step(fragment: Fragment) -> None:
        registers = fragment.registers
        value = registers[source]
        if value.dtype is not dtype:
            value = value.view(dtype)
        registers[result] = evaluate(value)

    return step


def _make_two(evaluate: Callable[..., Any], sources: list[int], dtypes: list[DType], result: int) -> Step:
    (source_a, source_b), (dtype_a, dtype_b) = sources, dtypes

    def step(fragment: Fragment) -> None:
        registers = fragment.registers
        first, second = registers[source_a], registers[source_b]
        if first.dtype is not dtype_a:
            first = first.view(dtype_a)
        if second.dtype is not dtype_b:
            second = second.view(dtype_b)
        registers[result] = evaluate(first, second)

    return step


def _make_three(evaluate: Callable[..., Any], sources: list[int], dtypes: list[DType], result: int) -> Step:
    (source_a, source_b, source_c), (dtype_a, dtype_b, dtype_c) = sources, dtypes

    def step(fragment: Fragment) -> None:
        registers = fragment.registers
        first, second, third = registers[source_a], registers[source_b], registers[source_c]
        if first.dtype is not dtype_a:
            first = first.view(dtype_a)
        if second.dtype is not dtype_b:
            second = second.view(dtype_b)
        if third.dtype is not dtype_c:
            third = third.view(dtype_c)
        registers[result] = evaluate(first, second, third)

    return step


def _make_general(evaluate: Callable[..., Any], sources: list[int], dtypes: list[DType], results: list[int]) -> Step:
    pairs = list(zip(sources, dtypes, strict=True))

    def step(fragment: Fragment) -> None:
        found = evaluate(*[read_as(fragment, source, dtype) for source, dtype in pairs])
        if len(results) == 1:
            fragment.registers[results[0]] = found
            return
        for slot, value in zip(results, found, strict=True):
            fragment.registers[slot] = value

    return step


def _check_divisor(binder: Binder, source: int, dtype: DType) -> Step:
    faults, static, guard = binder.machine.faults, binder.static, binder.guard

    def step(fragment: Fragment) -> None:
        zero = find_zero_divisors(read_as(fragment, source, dtype))
        if zero is None:
            return
        wrong = zero & fragment.active()
        if guard is not None:
            wrong = wrong & fragment.registers[guard]
        message = "the divisor is 0; the quotient is not defined"
        faults.add_lanes(FaultKind.DIVISION_BY_ZERO, message, fragment.warps, np.flatnonzero(wrong), instruction=static)

    return step


def bind_warp_operation(binder: Binder, operation: WarpOperation) -> None:
    """Add the steps of an instruction across the lanes of warps; its lanes have met already.

    Raises:
        UnsupportedInstruction: an operand is of a kind it cannot have.
    """
    instruction = binder.instruction
    sources = binder.read_all(instruction.sources, operation.source_types)
    pairs = list(zip(sources, [kind.natural_dtype for kind in operation.source_types], strict=True))
    results = binder.write_all(instruction.destinations, operation.result_types)
    evaluate, guard = operation.evaluate, binder.guard

    def step(fragment: Fragment) -> None:
        shape = (len(fragment.warps.ids), WARP_LANES)
        active = guarded_mask(fragment, guard).reshape(shape)
        found = evaluate(active, *[_spread(read_as(fragment, slot, dtype), shape) for slot, dtype in pairs])
        for slot, value in zip(results, found if isinstance(found, tuple) else (found,), strict=True):
            whole = np.broadcast_to(value, shape) if value.shape != shape else value
            fragment.registers[slot] = np.ascontiguousarray(whole).reshape(-1)

    binder.steps.append(step)
    binder.finish()


def _spread(value: Value, shape: tuple[int, int]) -> Value:
    return value.reshape(shape) if value.ndim else np.broadcast_to(value, shape)


def guarded_mask(fragment: Fragment, guard: int | None) -> Value:
    """Lanes of a fragment whose guard is true: bool[n]."""
    if guard is None:
        return fragment.active()
    chosen = fragment.registers[guard]
    if not chosen.ndim:
        return fragment.active() if chosen else np.zeros(fragment.warps.lanes, np.bool_)
    return np.ascontiguousarray(chosen) if fragment.mask is None else chosen & fragment.mask


def narrow_mask(fragment: Fragment, guard: int | None) -> Value:
    """As :func:`guarded_mask`, but None when these are all lanes of the warp set."""
    if guard is None:
        return fragment.mask
    chosen = fragment.registers[guard]
    if not chosen.ndim and chosen:
        return fragment.mask
    return guarded_mask(fragment, guard)
