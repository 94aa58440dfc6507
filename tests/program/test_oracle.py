"""Our graphs of the fixtures against nvdisasm's own basic-block graphs, and against what their sources say."""

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from gpa_lsp.binary.disassembler import disassemble
from gpa_lsp.binary.line_table import read_line_table
from gpa_lsp.binary.model import Flow
from gpa_lsp.binary.tool_location import find_tool
from gpa_lsp.program.build import build_program
from tests.binary.seeds import CONTAINERS, FIXTURES, find_fixture_cubins, name_of, read_fixture
from tests.program.bbcfg import compare_steps, read_block_graphs

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(find_tool("nvdisasm") is None, reason="nvdisasm is not installed"),
]

TOO_OLD = re.compile(r"_nvrtc12|sm_7[0-4]")


def choose_cubins() -> list[Path]:
    """Every fixture nvdisasm draws graphs of."""
    return [path for path in find_fixture_cubins() if not TOO_OLD.search(str(path))]


def run_nvdisasm(path: Path, *flags: str) -> str:
    tool = find_tool("nvdisasm")
    assert tool is not None
    return subprocess.run([tool, *flags, path], capture_output=True, text=True, check=True, timeout=120).stdout


def compare(path: Path) -> int:
    """Number of steps compared."""
    cubin = read_fixture(path)
    instructions = disassemble(cubin, cubin.functions)
    graphs = build_program(cubin, instructions).flow_graphs
    said = read_block_graphs(run_nvdisasm(path, "-bbcfg", "-poff"))
    return compare_steps([(graphs[name], instructions[name]) for name in graphs], said)


def test_steps_as_nvdisasm_draws_them():
    cubins = choose_cubins()
    with ThreadPoolExecutor(2) as executor:
        compared = list(executor.map(compare, cubins))
    assert all(compared), [name_of(path) for path, count in zip(cubins, compared, strict=True) if not count]


def test_every_loop_is_on_the_line_of_its_statement():
    """All loops of the fixtures' sources are ``for`` and ``while`` statements."""
    found = 0
    for path in choose_cubins():
        cubin = read_fixture(path)
        lines = {name: read_line_table(cubin, name) for name in cubin.functions}
        graphs = build_program(cubin, disassemble(cubin, cubin.functions), lines).flow_graphs
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
        instructions = disassemble(cubin, cubin.functions)
        for name, graph in build_program(cubin, instructions).flow_graphs.items():
            assert graph.problems == (), path.name
            waits = {region.wait_instruction for region in graph.divergence_regions}
            assert waits == set(np.flatnonzero(instructions[name].flow == Flow.BARRIER_WAIT).tolist()), path.name
            unreachable = np.flatnonzero(~graph.is_reachable[graph.block_of_instruction]).tolist()
            texts = {instructions[name].texts[index].split()[0] for index in unreachable}
            assert texts <= {"BRA", "NOP"}, path.name
