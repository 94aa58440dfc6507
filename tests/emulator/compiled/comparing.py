"""One emulation by operations of the core, and one by steps of numpy, side by side."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from gpa_lsp.code.ptx.model import PtxInstruction, PtxModule
from gpa_lsp.execution.emulator.compiled import program
from gpa_lsp.execution.emulator.compiled.lowering import Lowering, Operation
from gpa_lsp.execution.emulator.emulate import emulate
from gpa_lsp.execution.emulator.engine import functions
from gpa_lsp.execution.emulator.engine.binder import Binder
from gpa_lsp.execution.emulator.model import Budget, Emulation, FaultKind, TraceSettings
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.foundation.machine_code import VARIABLE
from tests.emulator.oracle.accesses import find_binder
from tests.emulator.oracle.steps import bind_step, find_operation

_WATCHED = (FaultKind.SHARED_RACE, FaultKind.WARP_RACE, FaultKind.UNINITIALISED)


@contextmanager
def by_numpy() -> Iterator[None]:
    """Every instruction that numpy knows is a step of it; the core only sends lanes from one to the next."""
    bind, lower = functions.bind_instruction, program.lower_instruction

    def bind_one(binder: Binder) -> None:
        mark = len(binder.steps)
        bind(binder)
        access, operation = find_binder(binder.instruction), find_operation(binder.instruction)
        if access is not None:
            del binder.steps[mark:]
            access(binder)
        elif operation is not None:
            bind_step(binder, operation)

    def lower_one(lowering: Lowering, instruction: PtxInstruction) -> list[Operation] | None:
        is_known = find_operation(instruction) is not None or find_binder(instruction) is not None
        return None if is_known else lower(lowering, instruction)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, "interpreter")
        patch.setattr(functions, "bind_instruction", bind_one)
        patch.setattr(program, "lower_instruction", lower_one)
        yield


def list_different(module: PtxModule, launch: LaunchDescription, budget: Budget) -> tuple[list[str], Emulation]:
    """Differences of both, with everything recorded but races, which numpy does not find; and the core's emulation."""
    settings = TraceSettings(entries=True)
    with by_numpy():
        expected = emulate(module, launch, budget=budget, trace=settings, check_races=False)
    found = emulate(module, launch, budget=budget, trace=settings)
    pairs = {
        "faults": (expected.faults, tuple(one for one in found.faults if one.kind not in _WATCHED)),
        "printed": (expected.printed, found.printed),
        "warp instructions": (expected.warp_instructions, found.warp_instructions),
        "warp executions": (expected.counts.warp_executions.tolist(), found.counts.warp_executions.tolist()),
        "lane executions": (expected.counts.lane_executions.tolist(), found.counts.lane_executions.tolist()),
    }
    pairs |= {name: (array.tobytes(), found.arrays[name].tobytes()) for name, array in expected.arrays.items()}
    for part in ("accesses", "branches", "entries"):
        if expected.trace is None or found.trace is None:
            assert expected.trace is found.trace
            break
        one, other = getattr(expected.trace, part), getattr(found.trace, part)
        pairs |= {f"{part}.{name}": _read(one, other, name) for name in one.__slots__}
    return [name for name, (first, second) in pairs.items() if first != second], found


def _read(one: object, other: object, name: str) -> tuple[object, object]:
    first, second = getattr(one, name), getattr(other, name)
    assert isinstance(first, np.ndarray) and isinstance(second, np.ndarray)
    return (first.dtype, first.tolist()), (second.dtype, second.tolist())
