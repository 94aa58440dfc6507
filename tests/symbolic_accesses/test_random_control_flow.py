"""Programs whose lanes jump wherever they like: what is said of a warp's addresses holds for every request the emulator sees."""

from collections import Counter

import numpy as np
import pytest

from gpa_lsp.code.symbolic_accesses.find import find_symbolic_accesses
from gpa_lsp.code.symbolic_accesses.model import SymbolicAccess, WarpPattern
from gpa_lsp.execution.accesses.lane_addresses import spread_lanes
from gpa_lsp.execution.emulator.model import Trace, TraceSettings
from tests.emulator.engine.running import build_module, run_text
from tests.emulator.engine.test_random_control_flow import ProgramMaker

COUNT = 256
ACCESS = "and.b32 %r31, {index}, 255; mul.wide.u32 %d21, %r31, 4; add.u64 %d22, %d0, %d21; ld.global.u32 %r32, [%d22];"


def make_body(seed: int) -> str:
    """A random program that loads by a register in every block."""
    lines = []
    for number, line in enumerate(ProgramMaker(seed).make().split("\n")):
        lines.append(line)
        if line.startswith("B") and line.endswith(":"):
            lines.append(ACCESS.format(index=f"%r{1 + (seed + number) % 5}"))
    return "\n".join(lines)


def hold(access: SymbolicAccess, trace: Trace) -> bool:
    """Whether something was said that requests were held against."""
    rows = np.flatnonzero(trace.accesses.instruction == access.instruction.index)
    is_strided = len(access.stride) == 1 and not access.stride[0].factors
    if not len(rows) or not access.is_certain or not (is_strided or access.pattern is WarpPattern.UNIFORM):
        return False
    step = access.stride[0].bytes if access.stride else 0
    addresses, active = spread_lanes(trace.accesses, rows)
    for row, marks in zip(addresses.astype(np.int64), active, strict=True):
        expected = np.arange(32) * step
        left = (row - expected)[marks]
        assert (left == left[0]).all()
    return True


@pytest.mark.parametrize("first", range(0, 160, 20))
def test_what_is_said_of_warps_holds(first: int) -> None:
    held: Counter[bool] = Counter()
    for seed in range(first, first + 20):
        body = make_body(seed)
        arrays = {"in": np.arange(COUNT, dtype=np.uint32) % 61, "out": np.zeros(4 * COUNT, np.uint32)}
        emulation = run_text(body, arrays, grid=4, block=64, trace=TraceSettings())
        assert emulation.trace is not None
        found = find_symbolic_accesses(build_module(body, ("d", "d")), "k")
        held.update(hold(one, emulation.trace) for one in found.accesses)
    assert held[True] >= 10
