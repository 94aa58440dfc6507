"""Instrumented PTX records the emulator's trace, for every kernel of the emulator's tests and every fixture."""

import pytest

from gpa_lsp.execution.emulator.emulate import find_kernel
from gpa_lsp.execution.emulator.model import Emulation, FaultKind
from gpa_lsp.execution.instrumentation.instrument import instrument
from tests.emulator.kernels.compiling import read_source
from tests.emulator.kernels.running import BUDGET, Case, load_module
from tests.emulator.kernels.test_truth import FIXTURES, OWN, UNOPTIMISED
from tests.instrumentation.comparing import emulate_instrumented, emulate_traced, list_different, list_own

_ARCHITECTURE = 80
_CASES = {
    (case.source, case.flags, case.launch.kernel): case
    for case in (*OWN, *UNOPTIMISED, *FIXTURES)
    if case.architecture == _ARCHITECTURE or read_source(case.source).least > _ARCHITECTURE
}.values()
"""Each kernel with one launch for one architecture: on others it has the same accesses and branches."""
_BULK = {"bulk_pipeline", "bulk_multicast"}
"""Kernels whose bulk copies the emulator alone traces."""


def _list_faults(emulation: Emulation) -> list[tuple[object, ...]]:
    """Faults without numbers of instructions, which differ, and without bypassed barriers: blocks that only return record it now."""
    faults = [one for one in emulation.faults if one.kind is not FaultKind.DIVERGENT_BARRIER]
    return [(one.kind, one.message, one.chain, one.count, one.block, one.thread) for one in faults]


@pytest.mark.parametrize("case", [case for case in _CASES if case.launch.kernel in _BULK], ids=str)
def test_bulk_copies_are_named_as_not_recorded(case: Case) -> None:
    module = load_module(case.source, case.architecture, *case.flags)
    unrecorded = instrument(module, find_kernel(module, case.launch.kernel).name).unrecorded
    assert any(one.startswith("cp.async.bulk.") for one in unrecorded)


@pytest.mark.parametrize("case", [case for case in _CASES if case.launch.kernel not in _BULK], ids=str)
def test_both_traces_are_equal(case: Case) -> None:
    module = load_module(case.source, case.architecture, *case.flags)
    expected = emulate_traced(module, case.launch, BUDGET)
    assert expected.trace is not None and expected.is_complete
    emulation, trace = emulate_instrumented(module, case.launch, BUDGET, expected.trace)
    assert _list_faults(emulation) == _list_faults(expected)
    assert trace.is_complete
    assert list_different(expected.trace, trace) == []
    assert list_own(emulation) == list_own(expected)
