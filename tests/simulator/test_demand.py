"""Demand through spilled registers, and the stand-ins for blocks that are not simulated to their end."""

from pathlib import Path

import pytest

from gpa_lsp.execution.simulator.execution.demand import find_demand, find_stack_words
from gpa_lsp.execution.simulator.simulate import GridShape, simulate_grid
from gpa_lsp.execution.simulator.warp_walk import Streams
from tests.simulator.sm_notation import ALU, EXIT, make_block, make_model, make_program
from tests.simulator.walking import build

_SPILLING = Path(__file__).parents[2] / "fixtures" / "kernels" / "register_spill" / "original.cu"


def test_what_is_spilled_is_asked_for_word_by_word() -> None:
    (kernel,) = build(_SPILLING, 80).kernels.values()
    rows = kernel.rows
    opcodes = [rows.opcode(row) for row in range(len(rows))]
    words = find_stack_words(rows, opcodes)
    spills = [row for row, one in enumerate(opcodes) if one.name in ("STL", "LDL")]
    assert spills
    assert sorted(words) == spills
    demand = find_demand(rows)
    arithmetic = [row for row, one in enumerate(opcodes) if one.name in ("FFMA", "FADD", "FMUL")]
    assert not any(demand.rows[row] for row in arithmetic), "what is spilled between decides nothing"
    asked = {word for row in spills if opcodes[row].name == "LDL" and demand.rows[row] for word in words[row]}
    stored = {word for row in spills if opcodes[row].name == "STL" and demand.stored[row] for word in words[row]}
    assert asked == stored


@pytest.mark.parametrize("left", [0, 40])
def test_a_run_that_is_cut_stands_for_all_of_its_blocks(left: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpa_lsp.execution.simulator.simulate._MOST_WHOLE", 0)
    program = make_program(*[(ALU, {"stall": 4})] * 400, (EXIT, {"stall": 5}))
    block = make_block(program, warps=4)
    streams = Streams(blocks=(block,), left_out=0.0)
    shape = GridShape(blocks=2 + left, sm_count=1, resident=2)
    cut = simulate_grid(program, make_model(), streams, shape, most_issues=400)
    assert cut.is_cut
    selected = cut.all_cycles[:, 0].sum()
    assert selected == pytest.approx(shape.blocks * len(block.rows), rel=0.01)
    whole = simulate_grid(program, make_model(), streams, shape, most_issues=100_000)
    assert not whole.is_cut
    assert cut.cycles == pytest.approx(whole.cycles, rel=0.1)
