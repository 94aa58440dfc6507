"""One emulation by each engine, side by side."""

import numpy as np
import pytest

from gpa_lsp.code.ptx.model import PtxModule
from gpa_lsp.execution.emulator.compiled.core_functions import find_core
from gpa_lsp.execution.emulator.emulate import emulate
from gpa_lsp.execution.emulator.model import Budget, Emulation, TraceSettings
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.foundation.machine_code import VARIABLE


def require_core() -> None:
    """Skip where numpy is all there is."""
    if find_core() is None:
        pytest.skip("there is no compiled core")


def list_different(
    module: PtxModule, launch: LaunchDescription, budget: Budget, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[str], Emulation]:
    """What the engines do not agree on, with everything recorded; and what the core gave."""
    monkeypatch.setenv(VARIABLE, "0")
    settings = TraceSettings(entries=True)
    expected = emulate(module, launch, budget=budget, trace=settings)
    monkeypatch.delenv(VARIABLE)
    found = emulate(module, launch, budget=budget, trace=settings)
    assert not expected.is_compiled
    pairs = {
        "faults": (expected.faults, found.faults),
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
