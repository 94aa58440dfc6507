"""One emulation by operations of the core, and one by steps of numpy, side by side."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from gpa_lsp.code.ptx.model import PtxInstruction, PtxModule
from gpa_lsp.execution.emulator.compiled import program
from gpa_lsp.execution.emulator.compiled.lowering import Lowering, Operation, Report
from gpa_lsp.execution.emulator.compiled.model import NOT_ZERO
from gpa_lsp.execution.emulator.compiled.scheduler import CompiledScheduler
from gpa_lsp.execution.emulator.emulate import emulate
from gpa_lsp.execution.emulator.model import Budget, Emulation, FaultKind, TraceSettings
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.foundation.machine_code import VARIABLE
from tests.emulator.oracle.accesses import find_binder
from tests.emulator.oracle.binder import Binder, Step
from tests.emulator.oracle.steps import bind_step, find_operation

_WATCHED = (FaultKind.SHARED_RACE, FaultKind.WARP_RACE, FaultKind.UNINITIALISED)


@contextmanager
def by_numpy() -> Iterator[None]:
    """Every instruction that numpy knows is a step of it: the core stops as for a report, and sends lanes from one to the next."""
    lower, report = program.lower_instruction, CompiledScheduler._report

    def lower_one(lowering: Lowering, instruction: PtxInstruction) -> list[Operation]:
        access, operation = find_binder(instruction), find_operation(instruction)
        if access is None and operation is None:
            return lower(lowering, instruction)
        lowering.begin(instruction)
        binder = Binder(lowering)
        step = bind_step(binder, operation) if operation is not None and access is None else access and access(binder)
        zero = lowering.frames.constant(np.uint64(0))
        # Lanes may read those of others, and memory that others write
        fields = {"a": zero, "element_bytes": 8, "exchanges": 1, "is_strong": 1}
        return [{"code": NOT_ZERO, "instruction": lowering.static, "report": step, **fields}]

    def report_one(scheduler: CompiledScheduler, told: Report | Step) -> None:
        if isinstance(told, Report):
            report(scheduler, told)
            return
        fragment = scheduler._build_fragment()
        told(fragment)
        fragment.registers.write_back(fragment.mask)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, "interpreter")
        patch.setattr(program, "lower_instruction", lower_one)
        patch.setattr(CompiledScheduler, "_report", report_one)
        yield


def list_facts(emulation: Emulation, *unseen: FaultKind) -> dict[str, object]:
    """Facts that engines must agree on, without faults of some kinds."""
    facts: dict[str, object] = {
        "faults": tuple(one for one in emulation.faults if one.kind not in unseen),
        "printed": emulation.printed,
        "warp instructions": emulation.warp_instructions,
        "warp executions": emulation.counts.warp_executions.tolist(),
        "lane executions": emulation.counts.lane_executions.tolist(),
    }
    return facts | {name: array.tobytes() for name, array in emulation.arrays.items()}


def list_different(module: PtxModule, launch: LaunchDescription, budget: Budget) -> tuple[list[str], Emulation]:
    """Differences of both, with everything recorded but races, which numpy does not find; and the core's emulation."""
    settings = TraceSettings(entries=True)
    with by_numpy():
        expected = emulate(module, launch, budget=budget, trace=settings, check_races=False)
    found = emulate(module, launch, budget=budget, trace=settings)
    first, second = list_facts(expected), list_facts(found, *_WATCHED)
    assert (expected.trace is None) is (found.trace is None)
    for part in ("accesses", "branches", "entries") if expected.trace is not None else ():
        for facts, emulation in ((first, expected), (second, found)):
            rows = getattr(emulation.trace, part)
            facts |= {f"{part}.{name}": _read(getattr(rows, name)) for name in rows.__slots__}
    return [name for name, fact in first.items() if fact != second[name]], found


def _read(column: object) -> tuple[object, object]:
    assert isinstance(column, np.ndarray)
    return column.dtype, column.tolist()
