"""Reads what ``nvdisasm -bbcfg -poff`` prints: one graphviz cluster per routine, one node per basic block.

::

    digraph f {
    subgraph "cluster_kernel" {
    node [fontname="Courier",fontsize=10,shape=Mrecord];
    ".L_x_1"
    [label="{<entry>.L_x_1:\\l0160:\\ \\ \\ FADD\\ R0,\\ R0,\\ R2\\ ;\\l|<exit0>0170:\\ \\ \\ @P1\\ BRA\\ `(.L_x_1)\\ ;\\l}"]
    ".L_x_1":exit0:e -> ".L_x_1":entry:n [style=solid];
    }
    }

A node's name stands on a line of its own before its label. Names are unique in the whole output.

Three differences to our graphs are no errors; each is checked for being exactly that and nothing else:

* nvdisasm leaves out the filler at a section's end (a branch to itself and NOPs), which we keep as unreachable blocks;
* it draws the call of a routine by itself as an edge to its first instruction, where we have a call;
* it refuses images older than CUDA 13, and does not know architectures before 7.5; those cannot be compared.
"""

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from gpa_lsp.code.binary.model import INSTRUCTION_BYTES, Flow, Instructions
from gpa_lsp.code.control_flow.build import build_flow_graph
from gpa_lsp.code.control_flow.model import FlowGraph
from tests.control_flow.assembly import assemble
from tests.control_flow.divergence_regions import list_divergence_regions

_CLUSTER = re.compile(r'subgraph "cluster_(.*)" \{$')
_NODE = re.compile(r'"([^"]*)"$')
_EDGE = re.compile(r'"([^"]*)":\w+:\w -> "([^"]*)":\w+:\w \[style=solid\];$')
_OFFSET = re.compile(r"(?:\\l|[>{|])([0-9a-f]{4,}):\\ ")
_IGNORED = re.compile(r"digraph \w+ \{$|node \[|\}$")


@dataclass
class RoutineGraph:
    """One cluster.

    Attributes:
        instructions: pc offsets of all its instructions.
        steps: (pc offset, pc offset of a possible next instruction), inside and between blocks.
    """

    instructions: set[int] = field(default_factory=set)
    steps: set[tuple[int, int]] = field(default_factory=set)


def read_block_graphs(output: str) -> dict[str, RoutineGraph]:
    """Routine name → its graph.

    Raises:
        ValueError: a line that is none of the known ones, or a name that is used twice: the format has changed.
    """
    routines: dict[str, RoutineGraph] = {}
    blocks: dict[str, tuple[str, list[int]]] = {}
    edges: list[tuple[str, str]] = []
    cluster, node = "", ""
    for line in output.splitlines():
        if opened := _CLUSTER.match(line):
            cluster = opened[1]
            if cluster in routines:
                raise ValueError(f"two clusters {cluster}")
            routines[cluster] = RoutineGraph()
        elif edge := _EDGE.match(line):
            edges.append((edge[1], edge[2]))
        elif line.startswith("[label="):
            if node in blocks:
                raise ValueError(f"two nodes {node}")
            blocks[node] = (cluster, [int(offset, 16) for offset in _OFFSET.findall(line)])
        elif named := _NODE.match(line):
            node = named[1]
        elif line and not _IGNORED.match(line):
            raise ValueError(f"unknown line {line[:80]!r}")
    for name, offsets in blocks.values():
        routines[name].instructions.update(offsets)
        routines[name].steps.update(itertools.pairwise(offsets))
    for source, target in edges:
        name, offsets = blocks[source]
        routines[name].steps.add((offsets[-1], blocks[target][1][0]))
    return routines


_FILLER = {"BRA", "NOP"}
_SECTION = re.compile(r"^\s*//-+ \.text\.(\S+).*\n", re.MULTILINE)
_INSTRUCTION = re.compile(r"\s+/\*[0-9a-f]{4,}\*/")
_LABEL = re.compile(r"(?!\.text)\S+:$")


def build_listed_graphs(listing: str) -> list[tuple[FlowGraph, Instructions]]:
    """The flow graphs of all sections of what ``nvdisasm -c`` prints."""
    parts = _SECTION.split(listing)
    graphs = []
    for name, text in zip(parts[1::2], parts[2::2], strict=True):
        rows = [row for row in text.splitlines() if _INSTRUCTION.match(row) or _LABEL.match(row)]
        function, instructions = assemble("\n".join(rows), name)
        graphs.append((build_flow_graph(function, instructions), instructions))
    return graphs


def list_steps(graph: FlowGraph) -> set[tuple[int, int]]:
    return {
        (INSTRUCTION_BYTES * index, INSTRUCTION_BYTES * following)
        for index in range(len(graph.block_of_instruction))
        for following in graph.next_instructions(index)
    }


def list_self_calls(graph: FlowGraph) -> set[tuple[int, int]]:
    """Calls of a routine by itself, which nvdisasm draws as edges."""
    found = set()
    for call in graph.calls:
        caller = graph.procedure_of_block[graph.block_of_instruction[call.instruction]]
        if call.callee_procedure == caller:
            found.add((INSTRUCTION_BYTES * call.instruction, graph.procedures[caller].start_offset))
    return found


def compare_steps(graphs: Iterable[tuple[FlowGraph, Instructions]], said: dict[str, RoutineGraph]) -> int:
    """Assert that an image's graphs are what nvdisasm drew, and return the number of steps compared."""
    compared = 0
    for graph, instructions in graphs:
        routines = [said.pop(procedure.name, RoutineGraph()) for procedure in graph.procedures]
        drawn = set().union(*(routine.instructions for routine in routines))
        steps = set().union(*(routine.steps for routine in routines))
        ours = {step for step in list_steps(graph) if step[0] in drawn}
        assert steps == ours | list_self_calls(graph), graph.function
        for index, mnemonic in enumerate(instructions.mnemonic_index):
            if index * INSTRUCTION_BYTES not in drawn:
                assert instructions.mnemonics[mnemonic] in _FILLER, (graph.function, index)
                assert not graph.is_reachable[graph.block_of_instruction[index]]
        # Every BSSY has its BSYNC, and no BSYNC is left over.
        waits = [region.wait_instruction for region in list_divergence_regions(instructions, graph)]
        assert set(waits) == {index for index, flow in enumerate(instructions.flow) if flow == Flow.BARRIER_WAIT}
        assert len(waits) == len(set(waits))
        assert graph.problems == ()
        compared += len(steps)
    assert said == {}, "routines that we do not have"
    return compared
