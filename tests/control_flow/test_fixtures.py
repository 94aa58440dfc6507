"""Structuring our own compiled kernels, whose source says what must be found."""

from pathlib import Path

import pytest

from gpa_lsp.code.binary.disassembler import disassemble
from gpa_lsp.code.binary.line_table import read_line_table
from gpa_lsp.code.binary.tool_location import find_tool
from gpa_lsp.code.control_flow.build import build_flow_graph
from gpa_lsp.code.control_flow.model import FlowGraph
from tests.binary.seeds import FIXTURES, read_fixture

pytestmark = pytest.mark.skipif(find_tool("nvdisasm") is None, reason="nvdisasm is not installed")

ARCHITECTURES = [75, 80, 90, 120]


def structure(path: Path) -> FlowGraph:
    """The graph of the only function."""
    cubin = read_fixture(path)
    (name,) = cubin.functions
    return build_flow_graph(cubin.functions[name], disassemble(cubin, [name])[name], read_line_table(cubin, name))


def find_cubin(architecture: int, name: str) -> Path:
    return FIXTURES / "cubins" / f"sm_{architecture}" / f"{name}.cubin"


def find_line(pattern: str, text: str) -> int:
    """The only line of a pattern's original source with this text, 1-based."""
    source = (FIXTURES / "kernels" / pattern / "original.cu").read_text(encoding="utf-8").splitlines()
    (found,) = [number for number, line in enumerate(source, 1) if text in line]
    return found


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_loop_is_where_its_source_says(architecture: int):
    graph = structure(find_cubin(architecture, "loop_not_unrolled_original"))
    (loop,) = graph.loops
    first = find_line("loop_not_unrolled", "for (int tap = 0")
    assert loop.lines is not None
    assert (loop.lines.frame.line, loop.lines.callers) == (first, ())
    assert (loop.lines.first_line, loop.lines.last_line) == (first, find_line("loop_not_unrolled", "sum += weights"))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_jump_table_has_all_its_targets(architecture: int):
    graph = structure(find_cubin(architecture, "jump_table_original"))
    assert len(graph.unknown_targets) == 0
    assert max(len(graph.successors(block)) for block in range(graph.block_count)) > 3
