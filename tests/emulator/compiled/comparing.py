"""One emulation by operations of the core, and one by steps of numpy, side by side."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from gpa_lsp.code.ptx.model import PtxInstruction, PtxModule, SpecialRegister
from gpa_lsp.execution.emulator.compiled import program
from gpa_lsp.execution.emulator.compiled.core_functions import LaneOperation, prepare_meanings
from gpa_lsp.execution.emulator.compiled.lowering import Lowering, Operation
from gpa_lsp.execution.emulator.emulate import emulate
from gpa_lsp.execution.emulator.engine import functions
from gpa_lsp.execution.emulator.engine.binder import CLOCKS, Binder, read_as
from gpa_lsp.execution.emulator.engine.fragments import Fragment, guarded_mask
from gpa_lsp.execution.emulator.engine.values import BOOL, WARP_LANES
from gpa_lsp.execution.emulator.model import Budget, Emulation, FaultKind, TraceSettings
from gpa_lsp.execution.emulator.semantics.find import find_meaning
from gpa_lsp.execution.emulator.semantics.model import Meaning, flatten
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.foundation.machine_code import VARIABLE
from tests.emulator.compiled.access_steps import find_binder

_WATCHED = (FaultKind.SHARED_RACE, FaultKind.WARP_RACE, FaultKind.UNINITIALISED)


def _find_meaning(instruction: PtxInstruction) -> Meaning | None:
    """The meaning for each lane; None where only the core knows it, as the time of a clock."""
    has_clock = any(isinstance(one, SpecialRegister) and one.name in CLOCKS for one in instruction.sources)
    return None if has_clock else find_meaning(instruction)


def _bind_meaning(binder: Binder, meaning: Meaning) -> None:
    """Add a step that reads operands and writes results in numpy, and has the core evaluate this one meaning."""
    operation = LaneOperation(meaning)
    sources, destinations = flatten(binder.instruction.sources), flatten(binder.instruction.destinations)
    slots = [binder.read(one, kind) for one, kind in zip(sources, meaning.sources, strict=True)]
    dtypes = [kind.natural_dtype for kind in meaning.sources]
    results = [binder.write(one, kind) for one, kind in zip(destinations, meaning.results, strict=True)]
    if operation.reads_carry:
        slots.append(binder.layout.carry)
        dtypes.append(BOOL)
    if meaning.carry:
        results.append(binder.layout.carry)
    guard = binder.guard

    def step(fragment: Fragment) -> None:
        shape = (fragment.warps.lanes // WARP_LANES, WARP_LANES)
        given = [read_as(fragment, slot, dtype) for slot, dtype in zip(slots, dtypes, strict=True)]
        spread = [one.reshape(shape) if one.ndim else np.broadcast_to(one, shape) for one in given]
        found = operation.evaluate(guarded_mask(fragment, guard).reshape(shape), *spread)
        for slot, value in zip(results, found if isinstance(found, tuple) else (found,), strict=True):
            fragment.registers[slot] = value.reshape(-1)

    binder.steps.append(step)
    binder.finish()


@contextmanager
def by_numpy() -> Iterator[None]:
    """Every instruction of lanes, and every access, is a step of numpy; the core only sends lanes from one to the next."""
    bind, lower = functions.bind_instruction, program.lower_instruction
    prepared: set[str] = set()

    def bind_one(binder: Binder) -> None:
        if binder.function.name not in prepared:
            prepared.add(binder.function.name)
            prepare_meanings(one for each in binder.function.instructions if (one := _find_meaning(each)) is not None)
        mark = len(binder.steps)
        bind(binder)
        access, meaning = find_binder(binder.instruction), _find_meaning(binder.instruction)
        if access is not None:
            del binder.steps[mark:]
            access(binder)
        elif meaning is not None:
            _bind_meaning(binder, meaning)

    def lower_one(lowering: Lowering, instruction: PtxInstruction) -> list[Operation] | None:
        is_known = _find_meaning(instruction) is not None or find_binder(instruction) is not None
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
