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
"""

import itertools
import re
from dataclasses import dataclass, field

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
