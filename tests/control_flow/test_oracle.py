"""Control flow graphs of the fixtures, compared with nvdisasm's own basic-block graphs and with their sources."""

import re
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from gpa_lsp.code.binary.line_table import read_line_table
from gpa_lsp.code.binary.model import Cubin, Flow, Instructions, LineTable
from gpa_lsp.code.binary.tool_location import find_tool
from gpa_lsp.code.control_flow.build import build_flow_graph
from gpa_lsp.code.control_flow.model import FlowGraph
from tests.binary.representatives import choose_by_flow
from tests.binary.seeds import CONTAINERS, FIXTURES, find_fixture_cubins, name_of, read_fixture
from tests.binary.together import disassemble_fixtures
from tests.control_flow.bbcfg import compare_steps, read_block_graphs
from tests.control_flow.divergence_regions import list_divergence_regions

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(find_tool("nvdisasm") is None, reason="nvdisasm is not installed"),
]

TOO_OLD = re.compile(r"_nvrtc12|sm_7[0-4]")


def leave_out_old(paths: Sequence[Path]) -> list[Path]:
    """The images of which nvdisasm draws graphs."""
    return [path for path in paths if not TOO_OLD.search(str(path))]


def run_nvdisasm(path: Path, *flags: str) -> str:
    tool = find_tool("nvdisasm")
    assert tool is not None
    return subprocess.run([tool, *flags, path], capture_output=True, text=True, check=True).stdout


def build_graphs(
    cubin: Cubin, instructions: Mapping[str, Instructions], lines: Mapping[str, LineTable] | None = None
) -> dict[str, FlowGraph]:
    return {
        name: build_flow_graph(cubin.functions[name], columns, lines[name] if lines else None)
        for name, columns in instructions.items()
    }


def compare(path: Path) -> int:
    """Number of steps compared."""
    cubin = read_fixture(path)
    instructions = disassemble_fixtures()[cubin.sha256]
    graphs = build_graphs(cubin, instructions)
    said = read_block_graphs(run_nvdisasm(path, "-bbcfg", "-poff"))
    return compare_steps([(graphs[name], instructions[name]) for name in graphs], said)


def test_steps_as_nvdisasm_draws_them():
    cubins = leave_out_old(choose_by_flow())
    disassemble_fixtures()
    with ThreadPoolExecutor(2) as executor:
        compared = list(executor.map(compare, cubins))
    assert all(compared), [name_of(path) for path, count in zip(cubins, compared, strict=True) if not count]


def test_every_loop_is_on_the_line_of_its_statement():
    """All loops of the fixtures' sources are ``for`` and ``while`` statements."""
    found = 0
    for path in leave_out_old(find_fixture_cubins()):
        cubin = read_fixture(path)
        lines = {name: read_line_table(cubin, name) for name in cubin.functions}
        graphs = build_graphs(cubin, disassemble_fixtures()[cubin.sha256], lines)
        for loop in (loop for graph in graphs.values() for loop in graph.loops):
            assert loop.lines is not None
            frame = loop.lines.frame
            source = FIXTURES / frame.file[frame.file.index("kernels/") :]
            text = source.read_text(encoding="utf-8").splitlines()[frame.line - 1]
            assert re.search(r"\b(for|while) \(", text), (path, frame, text)
            found += 1
    assert found > 20


def test_volta_which_nvdisasm_draws_no_graph_of():
    """The structure is sound: branches have their targets, barriers their partners, and only filler is unreachable."""
    for path in sorted(CONTAINERS.glob("*.sm_70.cubin")):
        cubin = read_fixture(path)
        instructions = disassemble_fixtures()[cubin.sha256]
        for name, graph in build_graphs(cubin, instructions).items():
            assert graph.problems == (), path.name
            waits = {region.wait_instruction for region in list_divergence_regions(instructions[name], graph)}
            assert waits == set(np.flatnonzero(instructions[name].flow == Flow.BARRIER_WAIT).tolist()), path.name
            unreachable = np.flatnonzero(~graph.is_reachable[graph.block_of_instruction]).tolist()
            texts = {instructions[name].texts[index].split()[0] for index in unreachable}
            assert texts <= {"BRA", "NOP"}, path.name
