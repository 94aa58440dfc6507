"""What structuring finds in our own compiled kernels, whose source says what must be found."""

from pathlib import Path

import pytest

from gpa_lsp.binary.disassembler import disassemble
from gpa_lsp.binary.line_table import read_line_table
from gpa_lsp.binary.tool_location import find_tool
from gpa_lsp.program.build import build_program
from gpa_lsp.program.call_model import CallKind, Recursion
from gpa_lsp.program.model import Program
from tests.binary.seeds import CONTAINERS, FIXTURES, read_fixture

pytestmark = pytest.mark.skipif(find_tool("nvdisasm") is None, reason="nvdisasm is not installed")

ARCHITECTURES = [75, 80, 90, 120]


def structure(path: Path) -> Program:
    cubin = read_fixture(path)
    lines = {name: read_line_table(cubin, name) for name in cubin.functions}
    return build_program(cubin, disassemble(cubin, cubin.functions), lines)


def find_cubin(architecture: int, name: str) -> Path:
    return FIXTURES / "cubins" / f"sm_{architecture}" / f"{name}.cubin"


def find_line(pattern: str, text: str) -> int:
    """The only line of a pattern's original source with this text, 1-based."""
    source = (FIXTURES / "kernels" / pattern / "original.cu").read_text(encoding="utf-8").splitlines()
    (found,) = [number for number, line in enumerate(source, 1) if text in line]
    return found


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_loop_is_where_its_source_says(architecture: int):
    (graph,) = structure(find_cubin(architecture, "loop_not_unrolled_original")).flow_graphs.values()
    (loop,) = graph.loops
    first = find_line("loop_not_unrolled", "for (int tap = 0")
    assert loop.lines is not None
    assert (loop.lines.frame.line, loop.lines.callers) == (first, ())
    assert (loop.lines.first_line, loop.lines.last_line) == (first, find_line("loop_not_unrolled", "sum += weights"))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_recursion_is_found(architecture: int):
    calls = structure(find_cubin(architecture, "recursion_original")).call_graph
    kernel, routine = calls.nodes
    assert (kernel.recursion, routine.recursion) == (Recursion.NONE, Recursion.CERTAIN)
    assert kernel.is_entry
    assert not routine.is_entry
    assert [(edge.caller, edge.callee, edge.kind) for edge in calls.edges] == [
        (0, 1, CallKind.DIRECT),
        (1, 1, CallKind.DIRECT),
        (1, 1, CallKind.DIRECT),
    ]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_call_through_a_pointer_has_no_callee(architecture: int):
    calls = structure(find_cubin(architecture, "indirect_call_original")).call_graph
    assert [(edge.callee, edge.kind) for edge in calls.edges] == [(None, CallKind.INDIRECT)]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_jump_table_has_all_its_targets(architecture: int):
    (graph,) = structure(find_cubin(architecture, "jump_table_original")).flow_graphs.values()
    assert not graph.has_unknown_targets
    assert max(len(graph.successors(block)) for block in range(graph.block_count)) > 3


def test_linked_units_call_by_symbol():
    calls = structure(CONTAINERS / "two_units_linked.sm_90.cubin").call_graph
    (edge,) = calls.edges
    assert edge.kind == CallKind.SYMBOL
    assert edge.callee is not None
    assert calls.nodes[edge.callee].name == edge.callee_name == "_ZN5units4dampEff"
