"""Operations of numpy as steps of the emulator, in place of what the core does."""

from typing import Any

import numpy as np

from gpa_lsp.code.ptx.model import PtxInstruction, SpecialRegister
from gpa_lsp.execution.emulator.compiled.lowering import CLOCKS
from gpa_lsp.execution.emulator.engine.fragments import Fragment, guarded_mask
from gpa_lsp.execution.emulator.engine.geometry import BOOL, WARP_LANES
from gpa_lsp.execution.emulator.model import FaultKind
from gpa_lsp.execution.emulator.semantics.find import find_meaning
from gpa_lsp.execution.emulator.semantics.model import flatten
from tests.emulator.oracle.binder import Binder, Step
from tests.emulator.oracle.find import bind_operation
from tests.emulator.oracle.model import LaneOperation, Operation, WarpOperation


def find_operation(instruction: PtxInstruction) -> Operation | None:
    """The operation in numpy; None where only the core knows it, as the time of a clock."""
    if any(isinstance(one, SpecialRegister) and one.name in CLOCKS for one in instruction.sources):
        return None
    return bind_operation(instruction)


def bind_step(binder: Binder, operation: Operation) -> Step:
    """The step of an operation."""
    sources = flatten(binder.instruction.sources)
    readers = [binder.read(one, kind) for one, kind in zip(sources, operation.source_types, strict=True)]
    destinations = flatten(binder.instruction.destinations)
    writers = [binder.write(one, kind) for one, kind in zip(destinations, operation.result_types, strict=True)]
    if isinstance(operation, LaneOperation):
        if operation.reads_carry:
            readers.append(lambda fragment: fragment.registers[binder.carry])
        if operation.writes_carry:
            writers.append(binder.write_slot(binder.carry, BOOL))
    guard, faults, static = binder.guard, binder.machine.faults, binder.static
    meaning = find_meaning(binder.instruction)
    divides = meaning is not None and meaning.divides

    def step(fragment: Fragment) -> None:
        given, mask = [read(fragment) for read in readers], guarded_mask(fragment, guard)
        if divides:
            message, wrong = "the divisor is 0; the quotient is not defined", np.flatnonzero(mask & (given[1] == 0))
            faults.add_lanes(FaultKind.DIVISION_BY_ZERO, message, fragment.warps, wrong, instruction=static)
        found = _evaluate(operation, given, mask)
        for write, value in zip(writers, found if isinstance(found, tuple) else (found,), strict=True):
            write(fragment, value)

    return binder.count(step)


def _evaluate(operation: Operation, given: list[Any], active: Any) -> Any:
    shape = (len(active) // WARP_LANES, WARP_LANES) if isinstance(operation, WarpOperation) else active.shape
    spread = [one.reshape(shape) if one.ndim else np.ascontiguousarray(np.broadcast_to(one, shape)) for one in given]
    with np.errstate(all="ignore"):
        if not isinstance(operation, WarpOperation):
            return operation.evaluate(*spread)
        found = operation.evaluate(active.reshape(shape), *spread)
    several = found if isinstance(found, tuple) else (found,)
    return tuple(np.ascontiguousarray(np.broadcast_to(one, shape)).reshape(-1) for one in several)
